//! Checks of what names a wait: channels and promises.

use kagzi_model::{
    Millis, Name, PROMISE_CHANNEL, Topic, TopicKey, check_event_key, check_published_topic, check_topic,
    child_of, limits::PROMISE_HEARTBEAT_MS_MIN,
};
use tonic::Status;

use super::{invalid, name, wait_ms};

/// A channel of a run; those of the engine itself are not for callers.
pub fn channel(value: &str) -> Result<Name, Status> {
    if value.starts_with('~') {
        return Err(invalid("channel", value, "channels that begin with '~' are the engine's own"));
    }
    name("channel", value)
}

/// A topic and a key that events are waited for by; an empty key says that there is none.
pub fn topic(name: &str, key: &str) -> Result<Topic, Status> {
    check_topic(name).map_err(|rule| invalid("topic", name, format_args!("it is no topic: {rule}")))?;
    check_event_key(key).map_err(|rule| invalid("key", key, rule))?;
    Ok(Topic::new(name, key))
}

/// A topic and a key that callers may publish on.
pub fn published_topic(namespace: Name, name: &str, key: &str) -> Result<TopicKey, Status> {
    let topic = topic(name, key)?;
    check_published_topic(name).map_err(|rule| invalid("topic", name, rule))?;
    Ok(TopicKey { namespace, topic })
}

/// A channel on which a run waits: one of its own, that of a child, of a promise, or of a topic.
pub fn awaited_channel(value: &str) -> Result<Name, Status> {
    if let Some(Topic { name, key }) = Topic::of_channel(value) {
        return topic(&name, &key).map(|topic| topic.channel());
    }
    let is_given = child_of(value).is_some() || value.starts_with(PROMISE_CHANNEL);
    if is_given { name("channel", value) } else { channel(value) }
}

/// How often a promise demands a sign of life; unset means never.
pub fn heartbeat_ms(ms: Option<i64>) -> Result<Option<Millis>, Status> {
    let checked = wait_ms("heartbeat_ms", ms)?;
    match checked {
        Some(ms) if ms < PROMISE_HEARTBEAT_MS_MIN => {
            let rule = format_args!("it must be at least {PROMISE_HEARTBEAT_MS_MIN}, or left out");
            Err(invalid("heartbeat_ms", ms, rule))
        }
        Some(_) | None => Ok(checked),
    }
}
