//! Keys for things that must happen once: each names one operation, and the same operation always has the
//! same key.
//!
//! | what is done once | key |
//! |---|---|
//! | what a user clicked | [`user_action`] |
//! | a step of a run, however often it is tried | [`step`] |
//! | the run of a timetable's time | [`schedule`] |
//! | what one handler does about an event | [`event`] |
//! | a call with this body | [`api`] |
//! | an operation on this content | [`content`] |
//! | at most one in a while | [`window`] |
//! | a change of a thing of the business | [`business`] |
//! | telling somebody something | [`notification`] |
//!
//! Fields are escaped, so no two different ones meet: `a:b` and `c` give another key than `a` and `b:c`.
//! Content is hashed in the one form that RFC 8785 gives to JSON, so the order of fields does not matter. A
//! key has at most 255 bytes, which is what most receivers take; a longer one is hashed, never cut.

mod canonical_json;

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use kagzi_proto::{IDEMPOTENCY_KEY_BYTES_MAX, idempotency_key};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Content that has no key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It is no JSON: a map whose keys are no text, or an error of its own.
    #[error("the content cannot be written as JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// A number that JSON's numbers would round, so that two different contents would have one key.
    #[error("the number {0} has more digits than JSON numbers keep; write it as text")]
    NotExact(String),
    /// A window of no length.
    #[error("a window must be at least a millisecond long")]
    NoWindow,
}

/// What a user asked for once: `user:USER:action:ACTION`. The action is an id that the user's program makes
/// when the button is pressed, not when the request is sent.
///
/// ```
/// assert_eq!(kagzi::keys::user_action("ada", "7c1e"), "user:ada:action:7c1e");
/// assert_ne!(kagzi::keys::user_action("a:b", "c"), kagzi::keys::user_action("a", "b:c"));
/// ```
pub fn user_action(user: &str, action: &str) -> String {
    bounded("user", format!("user:{}:action:{}", escape(user), escape(action)))
}

/// A step of a run, over all its attempts: `wf:RUN:step:PATH`. The same as
/// [`StepContext::idempotency_key`](crate::StepContext::idempotency_key) inside that step. The attempt is no
/// part of it, or a retry would do everything again.
///
/// ```
/// assert_eq!(kagzi::keys::step("0190-1", "item-7/charge"), "wf:0190-1:step:item-7/charge");
/// ```
pub fn step(run_id: &str, path: &str) -> String {
    idempotency_key(&escape(run_id), path)
}

/// The run of one time of a timetable: `schedule:ID:ts:MILLISECONDS`.
///
/// ```
/// let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(60);
/// assert_eq!(kagzi::keys::schedule("nightly", at), "schedule:nightly:ts:60000");
/// ```
pub fn schedule(schedule_id: &str, nominal: SystemTime) -> String {
    bounded("schedule", format!("schedule:{}:ts:{}", escape(schedule_id), millis(nominal)))
}

/// What one handler does about one event: `event:ID:handler:HANDLER`.
///
/// ```
/// assert_eq!(kagzi::keys::event("evt_1", "ship"), "event:evt_1:handler:ship");
/// ```
pub fn event(event_id: &str, handler: &str) -> String {
    bounded("event", format!("event:{}:handler:{}", escape(event_id), escape(handler)))
}

/// A call of this endpoint with this body: `api:ENDPOINT:hash:HASH`.
///
/// ```
/// # fn main() -> Result<(), kagzi::keys::KeyError> {
/// let body = serde_json::json!({ "cents": 1200, "to": "ada" });
/// let key = kagzi::keys::api("POST /refunds", &body)?;
/// assert!(key.starts_with("api:POST /refunds:hash:"));
/// # Ok(())
/// # }
/// ```
pub fn api(endpoint: &str, body: &impl Serialize) -> Result<String, KeyError> {
    Ok(bounded("api", format!("api:{}:hash:{}", escape(endpoint), hash_of(body)?)))
}

/// An operation on this content: `content:OPERATION:HASH`.
///
/// ```
/// # fn main() -> Result<(), kagzi::keys::KeyError> {
/// use serde_json::json;
/// let one = kagzi::keys::content("import", &json!({ "a": 1, "b": 2.0 }))?;
/// let other = kagzi::keys::content("import", &json!({ "b": 2, "a": 1 }))?;
/// assert_eq!(one, other, "the order of fields and the spelling of numbers do not matter");
/// # Ok(())
/// # }
/// ```
pub fn content(operation: &str, value: &impl Serialize) -> Result<String, KeyError> {
    Ok(bounded("content", format!("content:{}:{}", escape(operation), hash_of(value)?)))
}

/// At most one in each window: `window:USER:OPERATION:NUMBER`. Take `now` from `ctx.now()`, so that a replay
/// makes the same key.
///
/// Windows lie side by side and do not move along: two calls a second apart have two keys when the border of
/// a window is between them.
///
/// ```
/// # fn main() -> Result<(), kagzi::keys::KeyError> {
/// use std::time::{Duration, UNIX_EPOCH};
/// let five_minutes = Duration::from_secs(300);
/// let second = |n| UNIX_EPOCH + Duration::from_secs(n);
/// let at = |n| kagzi::keys::window("ada", "report", five_minutes, second(n));
/// assert_eq!(at(0)?, at(299)?);
/// assert_ne!(at(299)?, at(300)?, "one second apart, and both are done");
/// # Ok(())
/// # }
/// ```
pub fn window(user: &str, operation: &str, length: Duration, now: SystemTime) -> Result<String, KeyError> {
    let length_ms = i128::try_from(length.as_millis()).unwrap_or(i128::MAX);
    if length_ms == 0 {
        return Err(KeyError::NoWindow);
    }
    let number = millis(now).div_euclid(length_ms);
    Ok(bounded("window", format!("window:{}:{}:{number}", escape(user), escape(operation))))
}

/// A change of a thing of the business: `biz:TYPE:ID:OPERATION`, and `:vVERSION` for one that is done once
/// per version of the thing.
///
/// ```
/// use kagzi::keys;
/// assert_eq!(keys::business("invoice", "2026-7", "send", None), "biz:invoice:2026-7:send");
/// assert_eq!(keys::business("invoice", "2026-7", "send", Some(3)), "biz:invoice:2026-7:send:v3");
/// ```
pub fn business(entity: &str, id: &str, operation: &str, version: Option<u64>) -> String {
    let mut key = format!("biz:{}:{}:{}", escape(entity), escape(id), escape(operation));
    if let Some(version) = version {
        key = format!("{key}:v{version}");
    }
    bounded("biz", key)
}

/// Telling this person this: `notify:RECIPIENT:HASH`.
///
/// ```
/// # fn main() -> Result<(), kagzi::keys::KeyError> {
/// let key = kagzi::keys::notification("ada@example.org", &"Your order is on its way.")?;
/// assert!(key.starts_with("notify:ada@example.org:"));
/// # Ok(())
/// # }
/// ```
pub fn notification(recipient: &str, content: &impl Serialize) -> Result<String, KeyError> {
    Ok(bounded("notify", format!("notify:{}:{}", escape(recipient), hash_of(content)?)))
}

/// A field as it stands between colons. `%` is escaped too, or `a%3A` and `a:` would meet; and so are the
/// characters that no header and no list can show.
fn escape(field: &str) -> String {
    let mut escaped = String::with_capacity(field.len());
    for letter in field.chars() {
        if letter == ':' || letter == '%' || letter.is_control() {
            let mut bytes = [0; 4];
            for byte in letter.encode_utf8(&mut bytes).bytes() {
                write!(escaped, "%{byte:02X}").expect("text takes text");
            }
        } else {
            escaped.push(letter);
        }
    }
    escaped
}

/// A key that is too long carries a hash of the whole instead: cutting it could make two equal.
fn bounded(prefix: &str, key: String) -> String {
    if key.len() <= IDEMPOTENCY_KEY_BYTES_MAX {
        return key;
    }
    format!("{prefix}:sha256:{}", hash(key.as_bytes()))
}

pub(crate) fn hash_of(value: &impl Serialize) -> Result<String, KeyError> {
    Ok(hash(canonical_json::text(&serde_json::to_value(value)?)?.as_bytes()))
}

/// The first 128 bits of the SHA-256: with 64 two lawful payments would meet after some billions.
fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(16).fold(String::with_capacity(32), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("text takes text");
        hex
    })
}

/// Milliseconds since 1970, negative before it.
fn millis(at: SystemTime) -> i128 {
    let small = |elapsed: Duration| i128::try_from(elapsed.as_millis()).unwrap_or(i128::MAX);
    match at.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => small(after),
        Err(before) => -small(before.duration()),
    }
}

#[cfg(test)]
mod tests;
