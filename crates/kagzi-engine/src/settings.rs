//! What an operator can set, with the defaults that were decided.

use std::time::Duration;

use kagzi_model::{Millis, RetryPolicy, limits::PAYLOAD_LIMIT_BYTES_MAX};

/// Settings of one engine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Workers are told to send a heartbeat this often.
    pub heartbeat_interval: Duration,
    /// A worker not heard of for this long is lost: its runs are taken over at once.
    pub stale_after: Duration,
    /// A lease lasts this long beyond the last heartbeat that named it.
    pub lease: Duration,
    /// Payloads above this are logged.
    pub payload_warn_bytes: usize,
    /// Payloads above this are refused.
    pub payload_max_bytes: usize,
    /// Longest wait of one poll or one wait for a result.
    pub wait_max: Duration,
    /// Steps of one run that a worker executes at once.
    pub step_concurrency_max: u32,
    /// Longest execution of one attempt of a step that sets no limit itself.
    pub start_to_close: Duration,
    /// Fills the fields that a run's own retry policy leaves open.
    pub retry: RetryPolicy,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            heartbeat_interval: Duration::from_secs(3),
            stale_after: Duration::from_secs(10),
            lease: Duration::from_secs(30),
            payload_warn_bytes: 1024 * 1024,
            payload_max_bytes: 2 * 1024 * 1024,
            wait_max: Duration::from_secs(60),
            step_concurrency_max: 10,
            start_to_close: Duration::from_secs(600),
            retry: RetryPolicy::default(),
        }
    }
}

impl Settings {
    /// The lease's length as the model counts it.
    pub fn lease_ms(&self) -> Millis {
        millis(self.lease)
    }

    /// Refuses settings under which workers could not keep their leases.
    pub fn check(&self) -> Result<(), String> {
        if self.heartbeat_interval.is_zero() {
            return Err("heartbeat_interval must be above zero".into());
        }
        if self.stale_after < self.heartbeat_interval * 2 {
            return Err(format!(
                "stale_after is {:?}, it must be at least twice heartbeat_interval ({:?}), or one late heartbeat \
                 loses a worker",
                self.stale_after, self.heartbeat_interval
            ));
        }
        self.retry.check().map_err(|error| format!("retry.{error}"))?;
        if !(1..=PAYLOAD_LIMIT_BYTES_MAX).contains(&self.payload_max_bytes) {
            return Err(format!(
                "payload.max_size_bytes is {}, it must be between 1 and {PAYLOAD_LIMIT_BYTES_MAX}; Kagzi is no blob \
                 storage",
                self.payload_max_bytes
            ));
        }
        if self.lease < self.stale_after {
            return Err(format!(
                "lease is {:?}, it must not be shorter than stale_after ({:?})",
                self.lease, self.stale_after
            ));
        }
        Ok(())
    }
}

/// A duration in whole milliseconds, saturating.
pub fn millis(duration: Duration) -> Millis {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_sound() {
        assert_eq!(Settings::default().check(), Ok(()));
    }

    #[test]
    fn a_worker_must_be_allowed_one_late_heartbeat() {
        let settings = Settings { stale_after: Duration::from_secs(4), ..Settings::default() };

        assert!(settings.check().unwrap_err().contains("at least twice"));
    }

    #[test]
    fn the_payload_limit_is_itself_limited() {
        let with = |payload_max_bytes| Settings { payload_max_bytes, ..Settings::default() }.check();

        assert_eq!(with(PAYLOAD_LIMIT_BYTES_MAX), Ok(()));
        assert!(
            with(PAYLOAD_LIMIT_BYTES_MAX + 1).unwrap_err().contains("payload.max_size_bytes is 16777217")
        );
        assert!(with(0).is_err());
    }
}
