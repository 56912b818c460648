//! The gate: what an operator sets before a queue, a type on a queue, or a whole namespace. A run that is due
//! goes to a worker only when every gate before it lets it through.

use crate::{Mark, Name, Timestamp};

/// One gate. One that neither stops nor limits anything does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    pub key: GateKey,
    /// Nothing new is claimed while set; what is leased goes on.
    pub paused: Option<Mark>,
    /// Runs leased at once, over all workers and servers.
    pub max_concurrent: Option<u32>,
    pub updated_at: Timestamp,
}

/// Where a gate stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GateKey {
    pub namespace: Name,
    pub scope: GateScope,
}

/// What is behind a gate.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GateScope {
    Namespace,
    Queue(Name),
    Type { task_queue: Name, workflow_type: Name },
}

/// A change of a gate, as plain data. Each is safe to send twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateCommand {
    Pause {
        by: Name,
        note: String,
    },
    Resume,
    /// None = no limit.
    Limit {
        max_concurrent: Option<u32>,
    },
}

impl Gate {
    /// A gate that lets everything through.
    pub fn open(key: GateKey, now: Timestamp) -> Self {
        Gate { key, paused: None, max_concurrent: None, updated_at: now }
    }

    /// It stops and limits nothing.
    pub fn is_open(&self) -> bool {
        self.paused.is_none() && self.max_concurrent.is_none()
    }

    /// The gate after a command; none when it changes nothing.
    pub fn decide(&self, now: Timestamp, command: &GateCommand) -> Option<Gate> {
        let changed = match command {
            // Asked twice, the first keeps its name and time.
            GateCommand::Pause { .. } if self.paused.is_some() => self.clone(),
            GateCommand::Pause { by, note } => {
                let mark = Mark { by: by.clone(), note: note.clone(), since: now };
                Gate { paused: Some(mark), ..self.clone() }
            }
            GateCommand::Resume => Gate { paused: None, ..self.clone() },
            GateCommand::Limit { max_concurrent } => Gate { max_concurrent: *max_concurrent, ..self.clone() },
        };
        (changed != *self).then_some(Gate { updated_at: now, ..changed })
    }

    /// How many more runs it lets through when so many behind it are leased.
    pub fn room(&self, leased: u32) -> u32 {
        match (&self.paused, self.max_concurrent) {
            (Some(_), _) => 0,
            (None, Some(most)) => most.saturating_sub(leased),
            (None, None) => u32::MAX,
        }
    }
}

impl GateKey {
    pub fn namespace(namespace: &Name) -> Self {
        GateKey { namespace: namespace.clone(), scope: GateScope::Namespace }
    }

    pub fn queue(namespace: &Name, task_queue: &Name) -> Self {
        GateKey { namespace: namespace.clone(), scope: GateScope::Queue(task_queue.clone()) }
    }

    pub fn of_type(namespace: &Name, task_queue: &Name, workflow_type: &Name) -> Self {
        let scope = GateScope::Type { task_queue: task_queue.clone(), workflow_type: workflow_type.clone() };
        GateKey { namespace: namespace.clone(), scope }
    }

    /// The gates that a run of this queue and type would pass, the widest first.
    pub fn before(namespace: &Name, task_queue: &Name, workflow_type: &Name) -> [GateKey; 3] {
        [
            GateKey::namespace(namespace),
            GateKey::queue(namespace, task_queue),
            GateKey::of_type(namespace, task_queue, workflow_type),
        ]
    }

    /// Whether runs of this queue and type are behind it.
    pub fn covers(&self, namespace: &Name, task_queue: &Name, workflow_type: &Name) -> bool {
        self.namespace == *namespace
            && match &self.scope {
                GateScope::Namespace => true,
                GateScope::Queue(queue) => queue == task_queue,
                GateScope::Type { task_queue: queue, workflow_type: name } => {
                    queue == task_queue && name == workflow_type
                }
            }
    }

    /// Queue and type as they are stored: the empty text, which no name can be, stands for all.
    pub fn columns(&self) -> (&str, &str) {
        match &self.scope {
            GateScope::Namespace => ("", ""),
            GateScope::Queue(queue) => (queue, ""),
            GateScope::Type { task_queue, workflow_type } => (task_queue, workflow_type),
        }
    }

    /// The key from its columns.
    pub fn from_columns(namespace: Name, task_queue: Name, workflow_type: Name) -> Self {
        let scope = match (task_queue.is_empty(), workflow_type.is_empty()) {
            (true, _) => GateScope::Namespace,
            (false, true) => GateScope::Queue(task_queue),
            (false, false) => GateScope::Type { task_queue, workflow_type },
        };
        GateKey { namespace, scope }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn names() -> [Name; 3] {
        ["shop".into(), "orders".into(), "charge".into()]
    }

    fn gate() -> Gate {
        let [namespace, queue, _] = names();
        Gate::open(GateKey::queue(&namespace, &queue), NOW)
    }

    #[test]
    fn a_gate_covers_what_is_behind_it_and_nothing_else() {
        let [namespace, queue, kind] = names();
        let other = Name::from("other");

        for key in GateKey::before(&namespace, &queue, &kind) {
            assert!(key.covers(&namespace, &queue, &kind));
            assert!(!key.covers(&other, &queue, &kind));
        }
        assert!(!GateKey::queue(&namespace, &queue).covers(&namespace, &other, &kind));
        assert!(GateKey::queue(&namespace, &queue).covers(&namespace, &queue, &other));
        assert!(!GateKey::of_type(&namespace, &queue, &kind).covers(&namespace, &queue, &other));
    }

    #[test]
    fn a_key_is_read_as_it_was_stored() {
        let [namespace, queue, kind] = names();

        for key in GateKey::before(&namespace, &queue, &kind) {
            let (queue, kind) = key.columns();
            assert_eq!(GateKey::from_columns(namespace.clone(), queue.into(), kind.into()), key);
        }
    }

    #[test]
    fn a_gate_lets_through_what_fits_and_nothing_while_paused() {
        let limited = gate().decide(NOW, &GateCommand::Limit { max_concurrent: Some(3) }).unwrap();
        let pause = GateCommand::Pause { by: "ada".into(), note: String::new() };
        let paused = limited.decide(NOW, &pause).unwrap();

        assert_eq!(
            (gate().room(1_000), limited.room(1), limited.room(3), limited.room(9)),
            (u32::MAX, 2, 0, 0)
        );
        assert_eq!(paused.room(0), 0);
        assert_eq!(paused.decide(NOW, &GateCommand::Resume).unwrap(), limited);
    }

    #[test]
    fn a_repeat_changes_nothing_and_the_first_pause_keeps_its_name() {
        let pause = |by: &str| GateCommand::Pause { by: by.into(), note: "deploy".into() };
        let paused = gate().decide(NOW, &pause("ada")).unwrap();

        assert_eq!(paused.decide(NOW.plus_ms(1), &pause("bob")), None);
        assert_eq!(gate().decide(NOW, &GateCommand::Resume), None);
        assert!(gate().is_open() && !paused.is_open());
    }
}
