//! Closed sets of the model as the contract numbers them. Where the model has words, both sides have the same
//! ones.

use kagzi_model::Finality;
use kagzi_proto::v1;

/// What a run waits for; nothing once it has ended.
pub fn wait_reason(word: Option<&str>) -> i32 {
    word.and_then(v1::WaitReason::from_word).unwrap_or_default().into()
}

/// Why a failed step is not retried.
pub fn finality(finality: Finality) -> i32 {
    v1::Finality::from_word(finality.name()).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use kagzi_model::{EventKind, NamespaceField, Preset, REASONS, Status, WorkerStatus};
    use kagzi_store::AsideRow;

    use super::*;

    #[test]
    fn every_word_of_the_model_is_in_the_contract_and_no_other() {
        for (word, _) in REASONS {
            assert_ne!(wait_reason(Some(word)), 0, "WaitReason lacks {word}");
        }
        let unreadable = v1::WaitReason::Unreadable;
        let known = |reason: &v1::WaitReason| REASONS.iter().any(|(word, _)| *word == reason.word());
        assert!(v1::WaitReason::all().filter(|it| *it != unreadable).all(|it| known(&it)));
        assert_eq!((wait_reason(None), wait_reason(Some("finished"))), (0, 0));
        for (name, _) in Preset::ALL {
            assert!(v1::RetryPreset::from_word(name).is_some(), "RetryPreset lacks {name}");
        }
        assert_eq!(v1::RetryPreset::all().count(), Preset::ALL.len());
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
        let all = [
            Finality::NonRetryable,
            Finality::Denied,
            Finality::Exhausted,
            Finality::RetryTimeout,
            Finality::RunBudget,
        ];
        for known in all {
            assert_eq!(finality(known), known as i32);
        }
    }
}
