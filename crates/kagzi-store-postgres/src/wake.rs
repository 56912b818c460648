//! What servers tell each other: hints, never truth.

use kagzi_model::{GateKey, Name, RunId, WorkerId};
use kagzi_store::{LostLease, QueueKey, SignalNotice};
use uuid::Uuid;

/// The one channel. Its name is part of the protocol between servers of different versions.
pub const CHANNEL: &str = "kagzi_wake";

/// Between the fields. No name can hold it: control characters are refused.
const SEPARATOR: char = '\u{1f}';

/// Ids in one hint: with 33 bytes each it stays below the 8000 that NOTIFY takes.
pub const IDS_MAX: usize = 200;

/// A hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// Runs of this key wait.
    Waiting(QueueKey),
    /// A gate may let something through.
    Opened(GateKey),
    /// A server is there. Others ring only when somebody is.
    Here,
    /// These runs ended, and somebody elsewhere may wait for one.
    Ended(Vec<RunId>),
    /// A schedule was made or changed.
    Schedules,
    /// So much waits that naming it is not worth it.
    Everything,
    /// A worker, perhaps connected elsewhere, lost a lease.
    Lost { worker: WorkerId, run: RunId, epoch: u64, cancelled: bool, why: String },
    /// Something was told to a run whose worker may be connected elsewhere.
    Signalled(SignalNotice),
}

impl Hint {
    /// The hint about a lost lease.
    pub fn lost(lost: &LostLease) -> Self {
        let LostLease { worker, run, epoch, why, cancelled } = lost.clone();
        Hint::Lost { worker, run, epoch, cancelled, why }
    }

    /// The text to send, beginning with who sends it.
    pub fn encode(&self, server: &str) -> String {
        let fields: Vec<String> = match self {
            Hint::Waiting(key) => {
                let QueueKey { namespace, task_queue, workflow_type } = key;
                vec!["q".into(), namespace.to_string(), task_queue.to_string(), workflow_type.to_string()]
            }
            Hint::Opened(gate) => {
                let (task_queue, workflow_type) = gate.columns();
                vec!["g".into(), gate.namespace.to_string(), task_queue.into(), workflow_type.into()]
            }
            Hint::Here => vec!["h".into()],
            Hint::Ended(runs) => {
                let ids = runs.iter().map(|run| run.0.simple().to_string());
                ["e".to_owned()].into_iter().chain(ids).collect()
            }
            Hint::Schedules => vec!["s".into()],
            Hint::Everything => vec!["*".into()],
            Hint::Lost { worker, run, epoch, cancelled, why } => vec![
                "l".into(),
                worker.to_string(),
                run.to_string(),
                epoch.to_string(),
                u8::from(*cancelled).to_string(),
                why.clone(),
            ],
            Hint::Signalled(SignalNotice { worker, run, epoch, channel }) => {
                vec!["m".into(), worker.to_string(), run.to_string(), epoch.to_string(), channel.to_string()]
            }
        };
        let separator = SEPARATOR.to_string();
        format!("{server}{separator}{}", fields.join(&separator))
    }

    /// Reads a text: who sent it, and what it says. What a newer server says in words we do not know is taken
    /// as "look everywhere".
    pub fn decode(text: &str) -> (&str, Hint) {
        let mut fields = text.split(SEPARATOR);
        let server = fields.next().unwrap_or_default();
        let fields: Vec<&str> = fields.collect();
        let hint = match fields[..] {
            ["q", namespace, task_queue, workflow_type] => Some(Hint::Waiting(QueueKey {
                namespace: Name::from(namespace),
                task_queue: Name::from(task_queue),
                workflow_type: Name::from(workflow_type),
            })),
            ["g", namespace, task_queue, workflow_type] => Some(Hint::Opened(GateKey::from_columns(
                namespace.into(),
                task_queue.into(),
                workflow_type.into(),
            ))),
            ["h"] => Some(Hint::Here),
            ["s"] => Some(Hint::Schedules),
            ["e", ref ids @ ..] => {
                Some(Hint::Ended(ids.iter().filter_map(|id| Uuid::try_parse(id).ok()).map(RunId).collect()))
            }
            ["m", worker, run, epoch, channel] => signalled(worker, run, epoch, channel),
            ["l", worker, run, epoch, cancelled, why] => lost((worker, run), (epoch, cancelled), why),
            _ => None,
        };
        (server, hint.unwrap_or(Hint::Everything))
    }
}

fn signalled(worker: &str, run: &str, epoch: &str, channel: &str) -> Option<Hint> {
    Some(Hint::Signalled(SignalNotice {
        worker: WorkerId(Uuid::try_parse(worker).ok()?),
        run: RunId(Uuid::try_parse(run).ok()?),
        epoch: epoch.parse().ok()?,
        channel: Name::from(channel),
    }))
}

fn lost((worker, run): (&str, &str), (epoch, cancelled): (&str, &str), why: &str) -> Option<Hint> {
    Some(Hint::Lost {
        worker: WorkerId(Uuid::try_parse(worker).ok()?),
        run: RunId(Uuid::try_parse(run).ok()?),
        epoch: epoch.parse().ok()?,
        cancelled: cancelled == "1",
        why: why.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(count: usize) -> Hint {
        Hint::Ended((0..count).map(|n| RunId(Uuid::from_u128(n as u128))).collect())
    }

    #[test]
    fn a_hint_is_read_as_it_was_sent() {
        let key = QueueKey {
            namespace: "shop".into(),
            task_queue: "orders | eilig".into(),
            workflow_type: "charge/€".into(),
        };
        let lost = Hint::Lost {
            worker: WorkerId(Uuid::from_u128(1)),
            run: RunId(Uuid::from_u128(2)),
            epoch: 3,
            cancelled: true,
            why: "the run was cancelled".into(),
        };
        let gates = GateKey::before(&"shop".into(), &"orders".into(), &"charge".into()).map(Hint::Opened);
        let others = [Hint::Waiting(key), Hint::Here, Hint::Schedules, ended(2), Hint::Everything, lost];
        for hint in gates.into_iter().chain(others) {
            assert_eq!(Hint::decode(&hint.encode("me")), ("me", hint));
        }
    }

    #[test]
    fn the_longest_hint_fits_into_a_notification() {
        let name = Name::from("x".repeat(kagzi_model::limits::NAME_BYTES_MAX));
        let key = QueueKey { namespace: name.clone(), task_queue: name.clone(), workflow_type: name };

        for hint in [Hint::Waiting(key), ended(IDS_MAX)] {
            assert!(hint.encode(&Uuid::nil().to_string()).len() < 8000);
        }
    }

    #[test]
    fn an_unknown_word_means_look_everywhere() {
        assert_eq!(Hint::decode("other\u{1f}new\u{1f}thing"), ("other", Hint::Everything));
        assert_eq!(Hint::decode(""), ("", Hint::Everything));
    }
}
