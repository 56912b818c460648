//! The W3C trace context: `00-<trace id>-<parent span id>-<flags>`.

use tonic::metadata::MetadataMap;

/// The caller's `traceparent`, if it sent a sound one. Anything else is ignored, as the standard asks.
pub fn of_call(metadata: &MetadataMap) -> Option<&str> {
    metadata.get("traceparent").and_then(|value| value.to_str().ok()).filter(|text| is_sound(text))
}

/// Version 00: lower-case hexadecimal, neither id zero.
fn is_sound(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [version, trace, span, flags] = parts.as_slice() else { return false };
    let hex = |part: &str, len: usize| {
        part.len() == len && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    *version == "00" && hex(trace, 32) && !zero(trace) && hex(span, 16) && !zero(span) && hex(flags, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_standard_allows_is_stored() {
        assert!(is_sound("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
        for text in [
            "",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        ] {
            assert!(!is_sound(text), "{text}");
        }
    }
}
