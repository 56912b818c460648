//! The W3C trace context: `00-<trace id>-<parent span id>-<flags>`, and `tracestate` with what vendors add to
//! it.
//!
//! Both are stored as one text with a space between them: neither can hold one at that place.

use tonic::metadata::MetadataMap;

/// The standard asks for at least so much to be carried on; what is longer is left out whole.
const STATE_BYTES_MAX: usize = 512;

/// The caller's context, if it sent a sound one. Anything else is ignored, as the standard asks.
pub fn of_call(metadata: &MetadataMap) -> Option<String> {
    let text = |key: &str| metadata.get(key).and_then(|value| value.to_str().ok());
    let parent = read(text("traceparent")?)?;
    // Several headers are one list.
    let states = metadata.get_all("tracestate").iter().filter_map(|value| value.to_str().ok());
    let state = states.map(str::trim).filter(|state| !state.is_empty()).collect::<Vec<_>>().join(",");
    match state.len() {
        1..=STATE_BYTES_MAX => Some(format!("{parent} {state}")),
        _ => Some(parent),
    }
}

/// The two parts of a stored context.
pub fn split(stored: &str) -> (&str, &str) {
    stored.split_once(' ').unwrap_or((stored, ""))
}

/// As version 00 writes it: lower-case hexadecimal, neither id zero. A later version may have more parts, of
/// which nobody knows the meaning yet, and other flags; what is known of it is read and the rest left out, as
/// the standard asks.
fn read(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.trim().split('-').collect();
    let [version, trace, span, flags, more @ ..] = parts.as_slice() else { return None };
    let hex = |part: &str, len: usize| {
        part.len() == len && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    let sound =
        hex(version, 2) && hex(trace, 32) && !zero(trace) && hex(span, 16) && !zero(span) && hex(flags, 2);
    if !sound || *version == "ff" {
        return None;
    }
    if *version == "00" {
        return more.is_empty().then(|| format!("00-{trace}-{span}-{flags}"));
    }
    let sampled = u8::from_str_radix(flags, 16).ok()? & 1;
    Some(format!("00-{trace}-{span}-{sampled:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn only_what_the_standard_allows_is_stored() {
        assert_eq!(read(SOUND).as_deref(), Some(SOUND));
        for text in [
            "",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        for text in [
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-what-the-future-holds",
        ] {
            assert_eq!(read(text).as_deref(), Some(SOUND), "{text}");
        }
    }

    #[test]
    fn what_vendors_add_is_carried_on_unless_it_is_too_long() {
        let with = |states: &[&str]| {
            let mut metadata = MetadataMap::new();
            metadata.insert("traceparent", SOUND.parse().unwrap());
            for state in states {
                metadata.append("tracestate", state.parse().unwrap());
            }
            of_call(&metadata).unwrap()
        };

        assert_eq!(
            split(&with(&["congo=t61rcWkgMzE", "rojo=00f067aa"])),
            (SOUND, "congo=t61rcWkgMzE,rojo=00f067aa")
        );
        assert_eq!(split(&with(&[])), (SOUND, ""));
        assert_eq!(split(&with(&["x=y".repeat(200).as_str()])), (SOUND, ""));
    }
}
