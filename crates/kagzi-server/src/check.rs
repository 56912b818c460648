//! Checking what comes in. Every refusal names the field, the value and the rule.

mod business_id;
mod channel;
mod payload;
mod question;
mod schema;

use std::collections::HashMap;

use kagzi_model::{
    Author, Backoff, Labels, LeaseRef, Millis, Name, RetryPolicy, RunId, StepRef, Timeouts, WorkerId, act,
    check_label_name, check_label_value, check_name, check_step_path,
    limits::{
        CONCURRENT_PER_WORKER_MAX, DESCRIPTION_BYTES_MAX, GATE_CONCURRENT_MAX, LABELS_MAX, REASON_BYTES_MAX,
        RETENTION_MS_MIN, VALUE_BYTES_MAX, WAIT_MS_MAX,
    },
    moment,
};
use kagzi_proto::{Reason, Refusal, v1};
use kagzi_store::TimeRange;
use tonic::Status;
use uuid::Uuid;

use crate::{caller, wire};

pub use business_id::business_id;
pub use channel::{awaited_channel, channel, heartbeat_ms, published_topic, topic};
pub use payload::{PayloadLimits, payload, too_large};
pub use question::{intervention_key, json, question};
pub use schema::{data_fits, schema_fits};

/// The namespace that is meant when none is named.
pub const DEFAULT_NAMESPACE: &str = "default";

/// INVALID_ARGUMENT with field, value and rule.
pub fn invalid(field: &str, value: impl std::fmt::Debug, rule: impl std::fmt::Display) -> Status {
    let mut value = format!("{value:?}");
    if value.len() > 80 {
        value.truncate(value.floor_char_boundary(77));
        value.push_str("...");
    }
    Refusal::new(Reason::FieldInvalid, format!("{field} is {value}: {rule}")).field(field, rule).status()
}

/// A name that must be there.
pub fn name(field: &str, value: &str) -> Result<Name, Status> {
    check_name(value).map_err(|rule| invalid(field, value, format_args!("it {rule}")))?;
    Ok(Name::from(value))
}

/// A name that may be left out.
pub fn optional_name(field: &str, value: &str) -> Result<Option<Name>, Status> {
    if value.is_empty() { Ok(None) } else { name(field, value).map(Some) }
}

/// A value that a run publishes.
pub fn value(
    limits: PayloadLimits,
    named: &str,
    number: u64,
    value: Option<v1::Payload>,
) -> Result<act::SetValue, Status> {
    let max_bytes = limits.max_bytes.min(VALUE_BYTES_MAX);
    let value = payload(PayloadLimits { max_bytes, ..limits }, "value", value)?;
    Ok(act::SetValue { name: name("name", named)?, number, value })
}

/// How long a wait may take; unset means as long as it takes.
pub fn wait_ms(field: &str, ms: Option<i64>) -> Result<Option<Millis>, Status> {
    let checked = |ms: i64| match u64::try_from(ms) {
        Ok(ms) => duration_ms(field, ms),
        Err(_) => Err(invalid(field, ms, "it must not be negative; leave it out to wait without end")),
    };
    ms.map(checked).transpose()
}

/// A namespace, or the default one.
pub fn namespace(value: &str) -> Result<Name, Status> {
    Ok(optional_name("namespace_id", value)?.unwrap_or_else(|| Name::from(DEFAULT_NAMESPACE)))
}

/// A run id.
pub fn run_id(field: &str, value: &str) -> Result<RunId, Status> {
    Uuid::try_parse(value).map(RunId).map_err(|_| invalid(field, value, "it must be a run id (a UUID)"))
}

/// A worker id.
pub fn worker_id(value: &str) -> Result<WorkerId, Status> {
    let wrong = |_| invalid("worker_id", value, "it must be a worker id (a UUID)");
    Uuid::try_parse(value).map(WorkerId).map_err(wrong)
}

/// Run and epoch of a worker's write.
pub fn lease(namespace: &Name, run: &str, epoch: u64) -> Result<LeaseRef, Status> {
    if epoch == 0 || epoch > i64::MAX as u64 {
        return Err(invalid("lease_epoch", epoch, "it must be the epoch that came with the run, 1 or more"));
    }
    Ok(LeaseRef { namespace: namespace.clone(), run: run_id("run_id", run)?, epoch })
}

/// The same, from the message that the stream uses.
pub fn lease_ref(namespace: &Name, lease_ref: Option<&v1::LeaseRef>) -> Result<LeaseRef, Status> {
    let Some(named) = lease_ref else { return Err(invalid("lease", "", "it must be set")) };
    lease(namespace, &named.run_id, named.epoch)
}

/// A caller's own name for a request, if it gave one.
pub fn request_id(id: &str) -> Result<Option<Name>, Status> {
    if id.is_empty() { Ok(None) } else { Ok(Some(name("request_id", id)?)) }
}

/// A step's path and position.
pub fn step(path: &str, position: u32) -> Result<StepRef, Status> {
    Ok(StepRef { path: step_path("step_id", path)?, position })
}

/// A step's path.
pub fn step_path(field: &str, path: &str) -> Result<Name, Status> {
    check_step_path(path).map_err(|rule| invalid(field, path, format_args!("it {rule}")))?;
    Ok(Name::from(path))
}

/// A range of time, from inclusive, to exclusive. `what` stands before the names of the fields: `created_`.
pub fn time_range(
    what: &str,
    from: Option<&prost_types::Timestamp>,
    to: Option<&prost_types::Timestamp>,
) -> Result<TimeRange, Status> {
    let read = |end: &str, at: Option<&prost_types::Timestamp>| {
        at.map(|at| wire::read_timestamp(&format!("{what}{end}"), at)).transpose()
    };
    let range = TimeRange { from: read("from", from)?, to: read("to", to)? };
    if let (Some(begin), Some(end)) = (range.from, range.to)
        && begin > end
    {
        let rule = format!("it is later than {what}to, so nothing can match; exchange them");
        return Err(invalid(&format!("{what}from"), format_args!("{}", moment(begin)), rule));
    }
    Ok(range)
}

/// A retry policy that makes sense.
pub fn retry_policy(policy: Option<v1::RetryPolicy>) -> Result<RetryPolicy, Status> {
    let Some(policy) = policy else { return Ok(RetryPolicy::default()) };
    let named = match v1::RetryPreset::try_from(policy.preset) {
        Ok(v1::RetryPreset::Unspecified) => RetryPolicy::default(),
        Ok(preset) => RetryPolicy::preset(&preset.word()).unwrap_or_default(),
        Err(_) => {
            let rule = "it must be a RetryPreset, 1 (CRITICAL) to 6 (NONE)";
            return Err(invalid("retry_policy.preset", policy.preset, rule));
        }
    };
    let backoff = match policy.backoff {
        0 => None,
        number => {
            let known = u64::try_from(number).ok().and_then(Backoff::from_number);
            let last = Backoff::ALL.map(Backoff::number).into_iter().max().unwrap_or(0);
            let rule = format_args!("it must be a Backoff, 1 to {last}");
            Some(known.ok_or_else(|| invalid("retry_policy.backoff", number, rule))?)
        }
    };
    let own = RetryPolicy {
        maximum_attempts: policy.maximum_attempts,
        initial_interval_ms: policy.initial_interval_ms,
        backoff_coefficient: policy.backoff_coefficient,
        maximum_interval_ms: policy.maximum_interval_ms,
        non_retryable_errors: policy.non_retryable_errors,
        retryable_errors: policy.retryable_errors,
        backoff,
        jitter: policy.jitter,
        schedule_ms: policy.schedule_ms,
        retry_timeout_ms: policy.retry_timeout_ms,
        run_retries_max: policy.run_retries_max,
        run_retry_budget_ms: policy.run_retry_budget_ms,
    };
    let policy = own.or(&named);
    policy.check().map_err(|error| {
        let refusal = Refusal::new(Reason::FieldInvalid, format!("retry_policy.{error}"));
        refusal.field("retry_policy", error).status()
    })?;
    Ok(policy)
}

/// Timeouts that make sense.
pub fn timeouts(
    config: Option<v1::TimeoutConfig>,
    heartbeat_interval_ms: Millis,
) -> Result<Timeouts, Status> {
    let Some(config) = config else { return Ok(Timeouts::default()) };
    let seconds = |field: &str, value: Option<u64>, least: u64| match value {
        None => Ok(None),
        Some(value) if value < least => {
            Err(invalid(field, value, format_args!("it must be at least {least} s")))
        }
        Some(value) => duration_seconds(field, value).map(Some),
    };
    let least_heartbeat = (heartbeat_interval_ms.cast_unsigned() * 3).div_ceil(1000);
    // 0 is said on purpose: no limit, whatever the namespace sets.
    let execution = seconds("timeouts.execution_timeout_seconds", config.execution_timeout_seconds, 0)?;
    Ok(Timeouts {
        start_to_close_ms: seconds(
            "timeouts.start_to_close_timeout_seconds",
            config.start_to_close_timeout_seconds,
            1,
        )?,
        heartbeat_ms: seconds(
            "timeouts.heartbeat_timeout_seconds",
            config.heartbeat_timeout_seconds,
            least_heartbeat,
        )?,
        execution_ms: execution,
    })
}

/// A length of time within ten years.
pub fn duration_ms(field: &str, ms: u64) -> Result<Millis, Status> {
    match i64::try_from(ms) {
        Ok(ms) if ms <= WAIT_MS_MAX => Ok(ms),
        Ok(_) | Err(_) => {
            let rule = format_args!("it is in milliseconds and must be at most {WAIT_MS_MAX}, ten years");
            Err(invalid(field, ms, rule))
        }
    }
}

/// The same in seconds, refused as it was sent.
pub fn duration_seconds(field: &str, seconds: u64) -> Result<Millis, Status> {
    let ms = seconds.checked_mul(1000).and_then(|ms| i64::try_from(ms).ok());
    match ms.filter(|ms| *ms <= WAIT_MS_MAX) {
        Some(ms) => Ok(ms),
        None => {
            let max = WAIT_MS_MAX / 1000;
            Err(invalid(
                field,
                seconds,
                format_args!("it is in seconds and must be at most {max}, ten years"),
            ))
        }
    }
}

/// How many runs a worker may hold.
pub fn max_concurrent(value: Option<i32>) -> Result<u32, Status> {
    match value {
        None => Ok(100),
        Some(n) if (1..=CONCURRENT_PER_WORKER_MAX.cast_signed()).contains(&n) => Ok(n.cast_unsigned()),
        Some(n) => Err(invalid(
            "max_concurrent",
            n,
            format_args!("it must be between 1 and {CONCURRENT_PER_WORKER_MAX}"),
        )),
    }
}

/// One label of a run, from fields of its own.
pub fn label(name: &str, value: &str) -> Result<(Name, Name), Status> {
    check_label_name(name).map_err(|rule| invalid("name", name, format_args!("it {rule}")))?;
    check_label_value(value).map_err(|rule| invalid("value", value, format_args!("it {rule}")))?;
    Ok((Name::from(name), Name::from(value)))
}

/// The same, from a map called `labels`.
pub fn label_of(name: &str, value: &str) -> Result<(Name, Name), Status> {
    check_label_name(name).map_err(|rule| invalid("labels", name, format_args!("this name {rule}")))?;
    check_label_value(value)
        .map_err(|rule| invalid(&format!("labels[{name}]"), value, format_args!("it {rule}")))?;
    Ok((Name::from(name), Name::from(value)))
}

/// The labels of a run, within their limits.
pub fn run_labels(labels: &HashMap<String, String>) -> Result<Labels, Status> {
    if labels.len() > LABELS_MAX {
        return Err(invalid("labels", labels.len(), format_args!("at most {LABELS_MAX} are allowed")));
    }
    labels.iter().map(|(name, value)| label_of(name, value)).collect()
}

/// How many runs a gate lets through at once.
pub fn gate_limit(value: u32) -> Result<u32, Status> {
    match value {
        1..=GATE_CONCURRENT_MAX => Ok(value),
        _ => Err(invalid(
            "max_concurrent",
            value,
            format_args!("it must be between 1 and {GATE_CONCURRENT_MAX}; to stop a queue, pause it"),
        )),
    }
}

/// How long finished runs are kept.
pub fn retention_ms(field: &str, value: i64) -> Result<Millis, Status> {
    match u64::try_from(value) {
        Ok(ms) if value >= RETENTION_MS_MIN => duration_ms(field, ms),
        Ok(_) | Err(_) => {
            let rule = format_args!(
                "it must be at least {RETENTION_MS_MIN} ms: a start that a client repeats must find its run"
            );
            Err(invalid(field, value, rule))
        }
    }
}

/// A description for people.
pub fn description(value: String) -> Result<String, Status> {
    if value.len() > DESCRIPTION_BYTES_MAX {
        let rule = format!("it is {} bytes long, at most {DESCRIPTION_BYTES_MAX} are allowed", value.len());
        return Err(invalid("values.description", value, rule));
    }
    Ok(value)
}

/// Labels within their limits.
pub fn labels(labels: &HashMap<String, String>) -> Result<(), Status> {
    if labels.len() > LABELS_MAX {
        return Err(invalid("labels", labels.len(), format_args!("at most {LABELS_MAX} are allowed")));
    }
    for (key, value) in labels {
        name("labels key", key)?;
        if !value.is_empty() {
            name(&format!("labels[{key}]"), value)?;
        }
    }
    Ok(())
}

/// A page size: 0 = the default, nothing negative, nothing above the limit.
pub fn page_size(value: i32, standard: usize, max: usize) -> Result<usize, Status> {
    count("page_size", value, standard, max)
}

/// How many, likewise.
pub fn count(field: &str, value: i32, standard: usize, max: usize) -> Result<usize, Status> {
    match usize::try_from(value) {
        Ok(0) => Ok(standard),
        Ok(n) if n <= max => Ok(n),
        Ok(_) | Err(_) => {
            Err(invalid(field, value, format_args!("it must be between 1 and {max}, or 0 for {standard}")))
        }
    }
}

/// A reason for people, of bounded length.
pub fn reason(value: &str) -> Result<String, Status> {
    short_text("reason", value)
}

/// A note for people, likewise.
pub fn note(value: &str) -> Result<String, Status> {
    short_text("note", value)
}

/// Who gives an order, and why. Nobody says who yet, and the record says so.
pub fn author(reason: &str) -> Result<Author, Status> {
    Ok(Author::new(caller::name(), self::reason(reason)?))
}

fn short_text(field: &str, value: &str) -> Result<String, Status> {
    if value.len() > REASON_BYTES_MAX {
        let rule = format!("it is {} bytes long, at most {REASON_BYTES_MAX} are allowed", value.len());
        return Err(invalid(field, value, rule));
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_field_value_and_rule() {
        let status = name("workflow_type", "a\u{7}").unwrap_err();

        assert_eq!(status.code(), tonic::Code::InvalidArgument);
        assert_eq!(status.message(), r#"workflow_type is "a\u{7}": it has a control character at byte 1"#);
    }

    #[test]
    fn long_values_are_shortened_in_messages() {
        let status = name("task_queue", &"é".repeat(300)).unwrap_err();

        assert!(status.message().len() < 200, "{}", status.message());
        assert!(status.message().contains("600 bytes"), "{}", status.message());
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert!(max_concurrent(Some(0)).is_err());
        assert!(max_concurrent(Some(-1)).is_err());
        assert!(max_concurrent(Some(i32::MAX)).is_err());
        assert_eq!(max_concurrent(None).unwrap(), 100);
        assert!(page_size(-1, 50, 1000).is_err());
        assert!(page_size(1001, 50, 1000).is_err());
        assert_eq!(page_size(0, 50, 1000).unwrap(), 50);
        assert!(duration_ms("x", u64::MAX).is_err());
        let namespace = Name::from("default");
        assert!(lease(&namespace, "nonsense", 1).is_err());
        assert!(lease(&namespace, &Uuid::nil().to_string(), 0).is_err());
    }
}
