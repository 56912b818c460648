//! Topics: what events are published on, and the channels on which a run waits for them.

mod failed;

pub use failed::{failed_event, failed_topic};

use crate::{Name, NameError, Payload, Timestamp, check_name, limits::EVENT_KEY_BYTES_MAX};

/// How the channels begin on which a run waits for published events.
pub const EVENT_CHANNEL: &str = "~event/";

/// How the topics begin that only the engine publishes on.
pub const ENGINE_TOPIC: &str = "kagzi/";

/// Where the engine publishes that a run has ended as FAILED or TIMED_OUT; the key is its workflow type.
pub const WORKFLOW_FAILED: &str = "kagzi/workflow.failed";

/// Stands between topic and key in a channel, and so in no topic.
const SEPARATOR: char = '#';

/// What an event is about: the name of its kind, and which one of that kind is meant. A wait and an event
/// meet when both are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Topic {
    pub name: Name,
    /// Empty when the event is about no one thing.
    pub key: Name,
}

/// A topic of one namespace: what waits and events are put in order by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicKey {
    pub namespace: Name,
    pub topic: Topic,
}

/// Why a text is no topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("'{0}' is not allowed; use letters, digits and . _ - / :")]
    Character(char),
    #[error("topics that begin with '{ENGINE_TOPIC}' are the engine's own; choose another")]
    Engine,
    #[error("it has {len} bytes, at most {EVENT_KEY_BYTES_MAX} are allowed; use a shorter one")]
    KeyTooLong { len: usize },
}

impl Topic {
    pub fn new(name: impl Into<Name>, key: impl Into<Name>) -> Self {
        Topic { name: name.into(), key: key.into() }
    }

    /// The channel on which a run waits for it.
    pub fn channel(&self) -> Name {
        let Topic { name, key } = self;
        match key.is_empty() {
            true => Name::from(format!("{EVENT_CHANNEL}{name}")),
            false => Name::from(format!("{EVENT_CHANNEL}{name}{SEPARATOR}{key}")),
        }
    }

    /// The topic whose events come on this channel, if it is such a channel.
    pub fn of_channel(channel: &str) -> Option<Topic> {
        let rest = channel.strip_prefix(EVENT_CHANNEL)?;
        let (name, key) = rest.split_once(SEPARATOR).unwrap_or((rest, ""));
        Some(Topic::new(name, key))
    }

    /// Only the engine publishes on it.
    pub fn is_engines(&self) -> bool {
        self.name.starts_with(ENGINE_TOPIC)
    }

    /// In words, for people.
    pub fn words(&self) -> String {
        match self.key.is_empty() {
            true => format!("'{}'", self.name),
            false => format!("'{}' with key '{}'", self.name, self.key),
        }
    }
}

/// Published events come on this channel.
pub fn is_event_channel(channel: &str) -> bool {
    channel.starts_with(EVENT_CHANNEL)
}

/// Checks the name of a topic that somebody waits for.
pub fn check_topic(name: &str) -> Result<(), TopicError> {
    check_name(name)?;
    let is_allowed = |c: &char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ':');
    match name.chars().find(|c| !is_allowed(c)) {
        Some(wrong) => Err(TopicError::Character(wrong)),
        None => Ok(()),
    }
}

/// Checks the name of a topic that somebody else than the engine publishes on.
pub fn check_published_topic(name: &str) -> Result<(), TopicError> {
    check_topic(name)?;
    if name.starts_with(ENGINE_TOPIC) { Err(TopicError::Engine) } else { Ok(()) }
}

/// Checks a key; an empty one says that there is none.
pub fn check_event_key(key: &str) -> Result<(), TopicError> {
    if key.len() > EVENT_KEY_BYTES_MAX {
        return Err(TopicError::KeyTooLong { len: key.len() });
    }
    if key.is_empty() { Ok(()) } else { Ok(check_name(key)?) }
}

/// An event that was published and is kept for those that come later.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedEvent {
    pub key: TopicKey,
    /// Counts once on its topic for as long as it is kept.
    pub id: Name,
    /// When it was published, which is its place among the events of its topic: no two have the same.
    pub at: Timestamp,
    pub expires_at: Timestamp,
    /// How far it was delivered to those who waited for it.
    pub delivery: Delivery,
    pub payload: Payload,
}

/// How far an event was delivered to the runs whose waits were open when it was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// To runs up to this one; whoever is due earlier is served earlier.
    Due { at: Timestamp, behind: Option<crate::RunId> },
    /// To all of them.
    Done,
}

/// Asks to publish an event.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishEvent {
    pub key: TopicKey,
    pub id: Name,
    pub payload: Payload,
    pub keep_ms: crate::Millis,
}

impl PublishEvent {
    /// The event as it is kept, behind the newest one of its topic: places never repeat, and never go back.
    pub fn row(&self, now: Timestamp, newest: Option<Timestamp>) -> PublishedEvent {
        let at = newest.map_or(now, |newest| now.max(Timestamp(newest.0.saturating_add(1))));
        PublishedEvent {
            key: self.key.clone(),
            id: self.id.clone(),
            at,
            expires_at: now.plus_ms(self.keep_ms),
            delivery: Delivery::Due { at, behind: None },
            payload: self.payload.clone(),
        }
    }
}

/// What a publisher is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishReply {
    /// An event with this id was published on this topic before, and nothing was done.
    pub already: bool,
    /// When it was published, then or now.
    pub at: Timestamp,
}

/// Why an event was not published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishRejection {
    #[error(transparent)]
    NotAdmitted(crate::Rejection),
    #[error(
        "namespace '{namespace}' keeps {count} events of {bytes} bytes together, and at most {max} of \
         {bytes_max} bytes are allowed; wait until some have expired, or keep events for a shorter time"
    )]
    TooManyEvents { namespace: Name, count: u64, bytes: u64, max: u64, bytes_max: u64 },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_says_which_topic_it_is_of() {
        for topic in [Topic::new("order.paid", "42"), Topic::new("tick", ""), Topic::new("a/b", "x#y z")] {
            assert_eq!(Topic::of_channel(&topic.channel()), Some(topic));
        }
        assert_eq!(Topic::of_channel("order.paid"), None);
        assert_eq!(Topic::of_channel("~child/order.paid"), None);
    }

    #[test]
    fn a_topic_that_cannot_be_is_refused_with_what_is_wrong() {
        assert_eq!(check_topic("order.paid"), Ok(()));
        assert_eq!(check_topic("a#b"), Err(TopicError::Character('#')));
        assert_eq!(check_topic("~x"), Err(TopicError::Character('~')));
        assert_eq!(check_topic(""), Err(TopicError::Name(NameError::Empty)));
        assert_eq!(check_topic("kagzi/workflow.failed"), Ok(()));
        assert_eq!(check_published_topic("kagzi/workflow.failed"), Err(TopicError::Engine));
        assert_eq!(check_event_key(""), Ok(()));
        assert!(matches!(check_event_key(&"k".repeat(256)), Err(TopicError::KeyTooLong { len: 256 })));
    }

    #[test]
    fn the_places_of_events_on_a_topic_only_rise() {
        let key = TopicKey { namespace: "shop".into(), topic: Topic::new("tick", "") };
        let publish = PublishEvent { key, id: "1".into(), payload: Payload::new("1"), keep_ms: 1_000 };

        assert_eq!(publish.row(Timestamp(50), None).at, Timestamp(50));
        assert_eq!(publish.row(Timestamp(50), Some(Timestamp(50))).at, Timestamp(51));
        assert_eq!(publish.row(Timestamp(50), Some(Timestamp(99))).at, Timestamp(100));
        assert_eq!(publish.row(Timestamp(50), Some(Timestamp(99))).expires_at, Timestamp(1_000_050));
    }
}
