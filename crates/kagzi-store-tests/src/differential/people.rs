//! Moves about questions to people.

use kagzi_model::{
    Name,
    intervention::{
        Answer, Answering, Ask, Choice, Escalation, InterventionCommand, InterventionType, Quorum,
    },
};

use super::{moves::Move, world::World};

/// Few, so that one of them is soon asked more than he may be.
const PEOPLE: [&str; 3] = ["ada", "bob", "group:ops"];

impl World {
    pub(super) fn question(&mut self) -> Ask {
        let kind = InterventionType::ALL[self.random.below(3)];
        let mut ask = Ask::new(kind, "Refund 30?");
        if self.random.chance(80) {
            let first = self.random.below(PEOPLE.len());
            ask.assignees = PEOPLE[first..].iter().map(|name| Name::from(*name)).collect();
        }
        if kind == InterventionType::Approval && self.random.chance(40) {
            ask.quorum = Quorum { approve: 2, reject: 1 };
        }
        if kind == InterventionType::Decision {
            let choice = |id: &str, default| Choice {
                id: id.into(),
                label: id.into(),
                description: String::new(),
                default,
                destructive: false,
            };
            ask.options = vec![choice("post", self.random.chance(50)), choice("truck", false)];
        }
        ask.timeout_ms = self.random.chance(80).then(|| 1 + self.random.below(40_000) as i64);
        ask.remind_ms = self.random.chance(40).then(|| 1 + self.random.below(20_000) as i64);
        if self.random.chance(40) {
            let after_ms = 1 + self.random.below(10_000) as i64;
            ask.escalation = vec![Escalation { after_ms, to: "boss".into() }];
        }
        ask
    }

    pub(super) fn about_question(&mut self) -> Move {
        let (namespace, place) = (self.namespace(), self.random.below(50));
        let by = Name::from(["ada", "bob", "boss", "eve"][self.random.below(4)]);
        let command = match self.random.below(10) {
            0 => InterventionCommand::Claim { by },
            1 => InterventionCommand::Release { by },
            2 => InterventionCommand::Assign { by, assignees: vec!["eve".into()] },
            3 => InterventionCommand::Snooze { by, ms: 5_000 },
            4 => InterventionCommand::Comment { by, text: "why?".into() },
            5 => InterventionCommand::Cancel { by, why: "a mistake".into() },
            _ => {
                let answer = match self.random.below(4) {
                    0 => Answer::Rejected,
                    1 => Answer::Option("post".into()),
                    2 => Answer::Data(true.into()),
                    _ => Answer::Approved { edited: None },
                };
                let id = format!("{by}-{}", self.random.below(3)).into();
                let (note, if_version, force) = (String::new(), None, self.random.chance(30));
                let answering = Answering { by, answer, id, note, if_version, force };
                InterventionCommand::Answer(Box::new(answering))
            }
        };
        Move::Question { namespace, place, command: Box::new(command) }
    }
}
