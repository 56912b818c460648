//! Triggers: each starts a run for every event that is published on its topic.

use serde::{Deserialize, Serialize};

use crate::{
    Command, Labels, Name, Noun, NounChange, NounKey, NounRejection, NounRow, NounRule, PublishedEvent,
    RunId, RunOptions, StartRun, Timestamp, Topic, limits::TRIGGERS_MAX,
};

/// The label of runs that a trigger started: its id.
pub const TRIGGER_LABEL: &str = "kagzi.trigger";

/// The label of runs that a trigger started: the topic of the event.
pub const TOPIC_LABEL: &str = "kagzi.topic";

/// What is started, and for which events. Its id is the noun's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    pub topic: Name,
    /// Only events with this key; none = whatever their key is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Name>,
    pub workflow_type: Name,
    pub task_queue: Name,
}

impl Noun for Trigger {
    const KIND: &'static str = "trigger";
}

impl Trigger {
    /// Events of this topic are among those that it waits for.
    pub fn wants(&self, topic: &Topic) -> bool {
        self.topic == topic.name && self.key.as_ref().is_none_or(|key| *key == topic.key)
    }

    /// The run that this event starts: the same one whenever it is decided again. Its input is what was
    /// published.
    pub fn start(&self, id: &Name, event: &PublishedEvent) -> Command {
        let PublishedEvent { key, id: event_id, at, .. } = event;
        let parts = [&*key.namespace, id, &key.topic.name, &key.topic.key, event_id];
        // No name has such a byte, so no two lists of parts make the same bytes.
        let parts: Vec<&[u8]> = parts.iter().flat_map(|part| [part.as_bytes(), b"\0"]).collect();
        Command::start(StartRun {
            namespace: key.namespace.clone(),
            id: RunId::derived(*at, &parts),
            business_id: None,
            workflow_type: self.workflow_type.clone(),
            task_queue: self.task_queue.clone(),
            input: event.payload.clone(),
            deadline_at: None,
            options: RunOptions::default(),
            labels: Labels::default()
                .with(TRIGGER_LABEL.into(), id.clone())
                .with(TOPIC_LABEL.into(), key.topic.name.clone()),
            signals: Vec::new(),
        })
    }
}

/// Makes a trigger. It hears of events that are published from then on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTrigger {
    pub namespace: Name,
    pub id: Name,
    pub trigger: Trigger,
}

impl NounRule for CreateTrigger {
    fn key(&self) -> NounKey {
        NounKey::of::<Trigger>(self.namespace.clone(), self.id.clone())
    }

    fn creates(&self) -> bool {
        true
    }

    fn max(&self) -> usize {
        TRIGGERS_MAX
    }

    fn decide(&self, now: Timestamp, known: Option<&NounRow>) -> Result<NounChange, NounRejection> {
        let new = NounRow::new(self.namespace.clone(), self.id.clone(), &self.trigger, now);
        NounChange::create(known, new)
    }
}

/// Deletes a trigger. Runs that it started go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteTrigger {
    pub namespace: Name,
    pub id: Name,
}

impl NounRule for DeleteTrigger {
    fn key(&self) -> NounKey {
        NounKey::of::<Trigger>(self.namespace.clone(), self.id.clone())
    }

    fn creates(&self) -> bool {
        false
    }

    fn decide(&self, _: Timestamp, known: Option<&NounRow>) -> Result<NounChange, NounRejection> {
        NounChange::delete(known, self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Delivery, Payload, TopicKey};

    fn event(key: &str, id: &str) -> PublishedEvent {
        PublishedEvent {
            key: TopicKey { namespace: "shop".into(), topic: Topic::new("order.paid", key) },
            id: id.into(),
            at: Timestamp(7_000),
            expires_at: Timestamp(9_000),
            delivery: Delivery::Due { at: Timestamp(7_000), behind: None },
            payload: Payload::new("1"),
        }
    }

    fn trigger(key: Option<&str>) -> Trigger {
        let key = key.map(Name::from);
        Trigger { topic: "order.paid".into(), key, workflow_type: "ship".into(), task_queue: "ships".into() }
    }

    #[test]
    fn a_trigger_without_a_key_wants_every_key_and_one_with_a_key_only_that() {
        let (paid, other) = (Topic::new("order.paid", "42"), Topic::new("order.lost", "42"));

        assert!(trigger(None).wants(&paid) && trigger(Some("42")).wants(&paid));
        assert!(!trigger(Some("43")).wants(&paid) && !trigger(None).wants(&other));
    }

    #[test]
    fn one_event_starts_the_same_run_again_and_another_event_another_one() {
        let start = |key: &str, id: &str| trigger(None).start(&"t".into(), &event(key, id)).run.id;

        assert_eq!(start("42", "a"), start("42", "a"));
        assert_ne!(start("42", "a"), start("42", "b"));
        assert_ne!(start("42", "a"), start("43", "a"));
        assert_ne!(trigger(None).start(&"u".into(), &event("42", "a")).run.id, start("42", "a"));
    }
}
