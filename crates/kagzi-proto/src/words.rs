//! Values of closed sets as people write and read them: the name in the contract without its prefix, in
//! small letters or in large ones. Both sides of the wire take them from here.

use crate::v1;

macro_rules! words {
    ($($kind:ident $prefix:literal $case:ident;)+) => {$(
        impl v1::$kind {
            /// Every value that says something.
            pub fn all() -> impl Iterator<Item = v1::$kind> {
                (1..=255).filter_map(|number| v1::$kind::try_from(number).ok())
            }

            /// As it is written, e.g. in a command.
            pub fn word(self) -> String {
                let name = self.as_str_name();
                name.strip_prefix($prefix).unwrap_or(name).$case()
            }

            /// The value that is written so.
            pub fn from_word(word: &str) -> Option<v1::$kind> {
                v1::$kind::all().find(|value| value.word() == word)
            }
        }
    )+};
}

words! {
    WaitReason "WAIT_REASON_" to_ascii_lowercase;
    Finality "FINALITY_" to_ascii_lowercase;
    SetAsideKind "SET_ASIDE_KIND_" to_ascii_lowercase;
    NamespaceField "NAMESPACE_FIELD_" to_ascii_lowercase;
    EventKind "EVENT_KIND_" to_ascii_lowercase;
    RetryPreset "RETRY_PRESET_" to_ascii_uppercase;
    WorkerStatus "WORKER_STATUS_" to_ascii_uppercase;
    WorkflowStatus "WORKFLOW_STATUS_" to_ascii_uppercase;
}

/// The word for a kind of event; one that is not known here has its number.
pub fn event_kind(number: i32) -> String {
    match v1::EventKind::try_from(number) {
        Ok(kind) => kind.word(),
        Err(_) => format!("kind {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_read_as_it_is_written() {
        for kind in v1::EventKind::all() {
            assert_eq!(v1::EventKind::from_word(&kind.word()), Some(kind));
        }
        assert_eq!(v1::WaitReason::Timer.word(), "timer");
        assert_eq!(v1::RetryPreset::from_word("RATE_LIMITED"), Some(v1::RetryPreset::RateLimited));
        assert_eq!(v1::WaitReason::from_word("unspecified"), None);
        assert_eq!(v1::WaitReason::from_word("READY"), None);
        assert_eq!((event_kind(1), event_kind(200)), ("run_started".into(), "kind 200".into()));
    }
}
