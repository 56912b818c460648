//! Which questions to people a command has opened, and which nobody waits for any more.

use kagzi_model::{Act, Aggregate, Command, Mail, Name, Report, intervention::InterventionKey};
use uuid::Uuid;

use crate::turn::Asking;

/// The open questions of a run, by step. Most runs have none, and cost nothing.
#[inline(always)]
pub fn questions(seen: &Aggregate) -> Vec<(Name, Uuid)> {
    seen.mail.as_deref().map_or_else(Vec::new, of)
}

fn of(mail: &Mail) -> Vec<(Name, Uuid)> {
    let mut open: Vec<_> = mail.questions().iter().map(|(step, id)| (step.clone(), *id)).collect();
    open.sort_unstable();
    open
}

/// Compares what was open before a command with what is open after it.
pub fn note(command: &Command, before: Vec<(Name, Uuid)>, after: &Aggregate, asking: &mut Vec<Asking>) {
    let open = |step: &Name| after.mail.as_deref().and_then(|mail| mail.questions().get(step).copied());
    let run = &after.run;
    for (step, id) in before.iter().filter(|(step, id)| open(step) != Some(*id)) {
        let question = InterventionKey { namespace: run.namespace.clone(), id: *id };
        let why = if run.state.finished() {
            "its run has ended"
        } else if after.steps.contains_key(step) {
            "its run does not wait for it any more"
        } else {
            "its run has begun anew"
        };
        asking.push(Asking::Over { question, why });
    }
    if let Act::Report { report: Report::Ask(ask), .. } = &command.act
        && let Some(question) = open(&ask.step.path)
        && !before.iter().any(|(_, id)| *id == question)
    {
        let step = ask.step.path.clone();
        asking.push(Asking::Asked { run: run.id, step, question, ask: ask.ask.clone() });
    }
}
