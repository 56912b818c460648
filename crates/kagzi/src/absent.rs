//! Fields of the wire that may be absent, as options of this process.

use std::time::SystemTime;

use prost_types::Timestamp;

/// None where none was sent, or where it is no time that this machine can say.
pub(crate) fn at(time: Option<Timestamp>) -> Option<SystemTime> {
    time.and_then(|time| SystemTime::try_from(time).ok())
}

/// The same for a field that every server fills; the epoch where one did not.
pub(crate) fn always(time: Option<Timestamp>) -> SystemTime {
    at(time).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Proto3 has no optional strings of old: an empty one is none.
pub(crate) fn text(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}
