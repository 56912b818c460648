//! Closed sets of the model as the contract numbers them. Where the model has words, both sides have the same
//! ones.

use kagzi_model::{Finality, Reason};
use kagzi_proto::v1;

/// What a run waits for; nothing once it has ended.
pub fn wait_reason(reason: Option<Reason>) -> i32 {
    reason.and_then(|reason| v1::WaitReason::from_word(reason.name())).unwrap_or_default().into()
}

/// Why a failed step is not retried.
pub fn finality(finality: Finality) -> i32 {
    v1::Finality::from_word(finality.name()).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use kagzi_model::{EventKind, NamespaceField, RetryPolicy, Status, WorkerStatus};
    use kagzi_store::AsideRow;

    use super::*;

    #[test]
    fn every_word_of_the_model_is_in_the_contract_and_no_other() {
        for reason in Reason::ALL {
            assert_ne!(wait_reason(Some(reason)), 0, "WaitReason lacks {}", reason.name());
        }
        let unreadable = v1::WaitReason::Unreadable;
        let known = |reason: &v1::WaitReason| Reason::from_name(&reason.word()).is_some();
        assert!(v1::WaitReason::all().filter(|it| *it != unreadable).all(|it| known(&it)));
        assert_eq!(wait_reason(None), 0);
        for name in RetryPolicy::preset_names() {
            assert!(v1::RetryPreset::from_word(name).is_some(), "RetryPreset lacks {name}");
        }
        assert_eq!(v1::RetryPreset::all().count(), RetryPolicy::preset_names().count());
        for kind in EventKind::KINDS {
            assert_eq!(v1::EventKind::from_word(kind.name).map(|it| it as i32), Some(kind.number.into()));
        }
        for kind in AsideRow::KINDS {
            assert!(v1::SetAsideKind::from_word(kind).is_some(), "SetAsideKind lacks {kind}");
        }
        for field in NamespaceField::ALL {
            let name = field.name();
            assert!(v1::NamespaceField::from_word(name).is_some(), "NamespaceField lacks {name}");
        }
        for status in Status::ALL {
            assert_eq!(v1::WorkflowStatus::from_word(status.name()).map(|it| it as u8), Some(status as u8));
        }
        for status in v1::WorkerStatus::all() {
            assert_eq!(WorkerStatus::from_name(&status.word()).map(|it| it as i32), Some(status.into()));
        }
        for known in Finality::ALL {
            assert_eq!(finality(known), known as i32);
        }
    }
}
