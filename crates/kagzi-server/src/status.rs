//! Errors as gRPC statuses. The code says what a program does next, the message what a person does.

use kagzi_engine::EngineError;
use kagzi_model::{
    ControlRejection, NounRejection, PublishRejection, Rejection,
    intervention::InterventionRejection,
    schedule::{ScheduleRejection, TimingError},
};
use kagzi_proto::{Reason, Refusal};
use kagzi_store::{RegistryError, StoreError};
use tonic::Status;

use crate::check::invalid;

/// The status for a failed call.
pub fn from_engine(error: EngineError) -> Status {
    match error {
        EngineError::Rejected(rejection) => from_rejection(&rejection),
        EngineError::Rule(refused) => from_rule(&refused),
        EngineError::Registry(refused) => from_registry(&refused),
        EngineError::Schedule(rejection) => from_schedule(&rejection),
        EngineError::Noun(rejection) => from_noun(&rejection),
        EngineError::Publish(rejection) => from_publish(&rejection),
        EngineError::Intervention(rejection) => from_intervention(&rejection),
        EngineError::Store(error) => from_store(&error),
    }
}

/// The status for a failed call that makes something new at each repetition. When the store is away nobody
/// knows whether it was done, so nobody is told to send it again.
pub fn from_engine_once(error: EngineError, make_repeatable: &str) -> Status {
    match error {
        EngineError::Store(error @ (StoreError::Unavailable(_) | StoreError::Conflict(_))) => {
            Reason::OutcomeUnknown.status(format!(
                "{error}; it may have happened or not, so look before you send it again, or {make_repeatable}"
            ))
        }
        other => from_engine(other),
    }
}

/// The status for a refused command.
pub fn from_rejection(rejection: &Rejection) -> Status {
    let refusal = Refusal::new(reason(rejection), rejection.to_string());
    match rejection {
        Rejection::Ended { run, status }
        | Rejection::NotLeased { run, status }
        | Rejection::NotResumable { run, status }
        | Rejection::NotReopenable { run, status } => {
            refusal.with("run_id", run).with("status", status.name())
        }
        Rejection::Conflict { run, .. } => refusal.with("run_id", run),
        Rejection::Taken { run, status, .. } => refusal.with("run_id", run).with("status", status.name()),
        Rejection::StaleEpoch { run, current, .. } => refusal.with("run_id", run).with("epoch", current),
        Rejection::TooManySteps { run, max, .. }
        | Rejection::TooManyLabels { run, max, .. }
        | Rejection::TooManyValues { run, max, .. }
        | Rejection::TooManySignals { run, max }
        | Rejection::TooManyChildren { run, max }
        | Rejection::TooManyWaits { run, max } => refusal.with("run_id", run).with("limit", max),
        Rejection::PromiseUnknown { run, name } | Rejection::PromiseExists { run, name } => {
            refusal.with("run_id", run).with("promise", name)
        }
        Rejection::LineageTooDeep { run, max } => refusal.with("run_id", run).with("limit", max),
        Rejection::ChannelClosed { run, channel } => refusal.with("run_id", run).with("channel", channel),
        Rejection::HistoryTooLarge { run, max, .. } => refusal.with("run_id", run).with("limit", max),
        Rejection::NotFound { .. }
        | Rejection::StepUnknown { .. }
        | Rejection::NamespaceUnknown { .. }
        | Rejection::StepMismatch { .. }
        | Rejection::StepDecided { .. }
        | Rejection::NotForgivable { .. }
        | Rejection::NamespaceDisabled { .. }
        | Rejection::NotDue { .. }
        | Rejection::Unreadable { .. }
        | Rejection::NotStorable { .. } => refusal,
    }
    .status()
}

fn reason(rejection: &Rejection) -> Reason {
    match rejection {
        Rejection::NotFound { .. } => Reason::RunNotFound,
        Rejection::StepUnknown { .. } => Reason::StepNotFound,
        Rejection::NamespaceUnknown { .. } => Reason::NamespaceNotFound,
        Rejection::StaleEpoch { .. } | Rejection::NotLeased { .. } => Reason::LeaseLost,
        Rejection::Ended { .. } => Reason::RunEnded,
        Rejection::StepMismatch { .. } => Reason::StepMismatch,
        Rejection::StepDecided { .. } => Reason::StepDecided,
        Rejection::NotResumable { .. } => Reason::NotResumable,
        Rejection::NotReopenable { .. } => Reason::NotReopenable,
        Rejection::NotForgivable { .. } => Reason::NotForgivable,
        Rejection::NamespaceDisabled { .. } => Reason::NamespaceDisabled,
        Rejection::Conflict { .. } | Rejection::Taken { .. } => Reason::BusinessIdTaken,
        Rejection::TooManySteps { .. } => Reason::TooManySteps,
        Rejection::HistoryTooLarge { .. } => Reason::HistoryTooLarge,
        Rejection::TooManyLabels { .. } => Reason::TooManyLabels,
        Rejection::PromiseUnknown { .. } => Reason::PromiseNotFound,
        Rejection::PromiseExists { .. } => Reason::PromiseExists,
        Rejection::TooManyValues { .. } => Reason::TooManyValues,
        Rejection::ChannelClosed { .. } => Reason::ChannelClosed,
        Rejection::TooManySignals { .. } => Reason::TooManySignals,
        Rejection::TooManyWaits { .. } => Reason::TooManyWaits,
        Rejection::TooManyChildren { .. } => Reason::TooManyChildren,
        Rejection::LineageTooDeep { .. } => Reason::LineageTooDeep,
        Rejection::NotDue { .. } => Reason::RunNotDue,
        Rejection::Unreadable { .. } => Reason::Unreadable,
        Rejection::NotStorable { .. } => Reason::NotStorable,
    }
}

fn from_schedule(rejection: &ScheduleRejection) -> Status {
    let message = rejection.to_string();
    match rejection {
        ScheduleRejection::NotFound { .. } => Reason::ScheduleNotFound.status(message),
        ScheduleRejection::Exists { .. } => Reason::ScheduleExists.status(message),
        ScheduleRejection::Timing(error) => from_timing(error),
        ScheduleRejection::NothingLeft => wrong("spec", &message),
        ScheduleRejection::EmptyRange
        | ScheduleRejection::FutureRange
        | ScheduleRejection::NothingInRange
        | ScheduleRejection::TooManyTimes { .. } => {
            Refusal::new(Reason::FieldInvalid, &*message).field("from", &message).status()
        }
        ScheduleRejection::Stale { .. } => Reason::ScheduleChanged.status(message),
        ScheduleRejection::TooManyBackfills { max, .. } | ScheduleRejection::TooMany { max, .. } => {
            Refusal::new(Reason::QuotaExceeded, message).with("limit", max).status()
        }
        ScheduleRejection::NotAdmitted(refused) => from_rejection(refused),
    }
}

/// A field is wrong for a reason that is a sentence of its own.
pub fn wrong(field: &str, message: &str) -> Status {
    Refusal::new(Reason::FieldInvalid, format!("{field}: {message}")).field(field, message).status()
}

fn from_timing(error: &TimingError) -> Status {
    match error {
        TimingError::Cron { expression, error } => {
            // An expression has a limit, but its mistake may quote most of it.
            let mut rule = format!("it {error}");
            if rule.len() > RULE_BYTES_MAX {
                rule.truncate(rule.floor_char_boundary(RULE_BYTES_MAX));
                rule.push_str("...");
            }
            invalid("spec.cron", expression, rule)
        }
        TimingError::TimeZone(name) => {
            let rule = "it is not known; use a name of the IANA database, e.g. Europe/Berlin or UTC";
            invalid("spec.time_zone", name, rule)
        }
        TimingError::Interval(ms) => {
            invalid("spec.interval_ms", ms, "it must be between 1000 (a second) and ten years")
        }
        TimingError::Phase { phase_ms, every_ms } => {
            let rule = format!("it must be at least 0 and below interval_ms, which is {every_ms}");
            invalid("spec.phase_ms", phase_ms, rule)
        }
    }
}

/// Longest rule that is told.
const RULE_BYTES_MAX: usize = 240;

fn from_rule(refused: &ControlRejection) -> Status {
    let reason = match refused {
        ControlRejection::Unknown(_) => Reason::NamespaceNotFound,
        ControlRejection::Exists(_) => Reason::NamespaceExists,
        ControlRejection::TooManyGates { .. } => Reason::QuotaExceeded,
    };
    reason.status(refused.to_string())
}

fn from_intervention(refused: &InterventionRejection) -> Status {
    let reason = match refused {
        InterventionRejection::NotFound(_) => Reason::QuestionNotFound,
        InterventionRejection::Closed { .. } => Reason::QuestionClosed,
        InterventionRejection::Claimed { .. } => Reason::QuestionClaimed,
        InterventionRejection::NotAsked { .. } | InterventionRejection::FourEyes { .. } => Reason::NotAsked,
        InterventionRejection::Stale { .. } => Reason::QuestionChanged,
        InterventionRejection::Unfit(rule) => return invalid("answer", "", rule),
        InterventionRejection::Unreadable(_) => Reason::Unreadable,
    };
    reason.status(refused.to_string())
}

fn from_noun(refused: &NounRejection) -> Status {
    let reason = match refused {
        NounRejection::NotFound(_) => Reason::NounNotFound,
        NounRejection::Exists(_) => Reason::NounExists,
        NounRejection::Unreadable { .. } => Reason::Unreadable,
        NounRejection::TooMany { .. } => Reason::TooManyNouns,
        NounRejection::NotAdmitted(refused) => return from_rejection(refused),
    };
    reason.status(refused.to_string())
}

fn from_publish(refused: &PublishRejection) -> Status {
    match refused {
        PublishRejection::NotAdmitted(refused) => from_rejection(refused),
        PublishRejection::TooManyEvents { .. } => Reason::TooManyEvents.status(refused.to_string()),
    }
}

fn from_registry(refused: &RegistryError) -> Status {
    let reason = match refused {
        RegistryError::Unknown(_) | RegistryError::Offline(_) => Reason::WorkerOffline,
        RegistryError::Draining(_) => Reason::WorkerDraining,
        RegistryError::Taken(_) => {
            let message = format!("worker_id: {refused}");
            return Refusal::new(Reason::WorkerIdTaken, message).field("worker_id", refused).status();
        }
        RegistryError::UnknownNamespace(_) => Reason::NamespaceNotFound,
        RegistryError::TooMany { .. } => Reason::QuotaExceeded,
        RegistryError::UnknownType { .. } => Reason::TypeNotRegistered,
    };
    reason.status(refused.to_string())
}

fn from_store(error: &StoreError) -> Status {
    match error {
        StoreError::Unavailable(_) | StoreError::Conflict(_) => {
            let message = format!("{error}; it is safe to send the request again");
            retry_soon(Reason::StoreUnavailable.status(message))
        }
        StoreError::Full(_) => Reason::StoreFull.status(error.to_string()),
        StoreError::Corrupt(_) | StoreError::Damaged(_) => Reason::StoreDamaged.status(error.to_string()),
        StoreError::Duplicate(_) | StoreError::Bug(_) => Reason::Internal.status(error.to_string()),
    }
}

/// How long a caller should wait before it tries again.
const RETRY_AFTER_MS: &str = "500";

/// Says when to try again in the way that gRPC's own retries understand.
fn retry_soon(mut status: Status) -> Status {
    let hint = tonic::metadata::MetadataValue::from_static(RETRY_AFTER_MS);
    status.metadata_mut().insert("grpc-retry-pushback-ms", hint);
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_repeated_is_not_called_safe_to_repeat() {
        let away = EngineError::Store(StoreError::Unavailable("the answer was lost".into()));
        let status = from_engine_once(away, "set a business_id");

        assert_eq!(status.code(), tonic::Code::Unavailable);
        assert!(!status.message().contains("safe"), "{status}");
        assert!(status.message().ends_with("or set a business_id"), "{status}");
        assert_eq!(status.metadata().get("grpc-retry-pushback-ms"), None);
    }

    #[test]
    fn a_database_that_is_away_is_told_with_when_to_try_again() {
        let status = from_store(&StoreError::Unavailable("connection refused".into()));

        assert_eq!(status.code(), tonic::Code::Unavailable);
        assert!(status.message().contains("safe to send the request again"));
        assert_eq!(status.metadata().get("grpc-retry-pushback-ms").unwrap(), RETRY_AFTER_MS);
    }
}
