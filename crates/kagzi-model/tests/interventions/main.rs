//! Questions to people: every state against every command, as a reviewed table, and what time may never do.

mod table;
mod time;

use kagzi_model::{
    Name, RunId, Timestamp,
    intervention::{
        Answer, Answering, Ask, Choice, Intervention, InterventionCommand, InterventionKey, InterventionType,
        NewIntervention, create,
    },
};
use uuid::Uuid;

pub const NOW: Timestamp = Timestamp(1_000_000_000);
pub const HOUR_MS: i64 = 3_600_000;

pub fn ask(kind: InterventionType) -> Ask {
    let mut ask = Ask::new(kind, "Refund 30?");
    ask.assignees = vec!["ada".into(), "bob".into()];
    ask.timeout_ms = Some(24 * HOUR_MS);
    if kind == InterventionType::Decision {
        let choice = |id: &str, default| Choice {
            id: id.into(),
            label: id.into(),
            description: String::new(),
            default,
            destructive: false,
        };
        ask.options = vec![choice("post", true), choice("truck", false)];
    }
    ask
}

pub fn asked(ask: Ask) -> Intervention {
    let new = NewIntervention {
        key: InterventionKey { namespace: "shop".into(), id: Uuid::from_u128(5) },
        run: RunId(Uuid::from_u128(1)),
        step: "refund".into(),
        workflow_type: "refund".into(),
        ask,
        user: Some("zoe".into()),
    };
    create(NOW, new, 24 * HOUR_MS, false).row
}

pub fn answer(by: &str, answer: Answer) -> InterventionCommand {
    answer_of(by, by, answer)
}

pub fn answer_of(by: &str, id: &str, answer: Answer) -> InterventionCommand {
    let (by, id): (Name, Name) = (by.into(), id.into());
    let (note, if_version, force) = (String::new(), None, false);
    InterventionCommand::Answer(Box::new(Answering { by, answer, id, note, if_version, force }))
}

pub const YES: Answer = Answer::Approved { edited: None };
