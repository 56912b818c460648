//! How long a failing call is repeated, and how long is waited before each next try.

use std::time::Duration;

use tokio::time::Instant;

use super::calls::Calls;
use crate::error::Error;
use crate::reconnect_delay::ReconnectDelay;

/// How long a failing call is repeated.
pub(super) struct Patience {
    began: Instant,
    retry_for: Duration,
    delay: ReconnectDelay,
    /// Servers that were not asked yet: they are asked at once.
    unasked: usize,
}

impl Patience {
    pub(super) fn new(calls: Calls, servers: usize) -> Patience {
        let delay = ReconnectDelay::new();
        Patience { began: Instant::now(), retry_for: calls.retry_for, delay, unasked: servers - 1 }
    }

    /// Waits before the next try, or gives the error back when there should be none.
    pub(super) async fn bear(&mut self, error: Error, harmless: bool) -> Result<(), Error> {
        // A server that names a time has done nothing of what was asked.
        let later = match &error {
            Error::Refused(refusal) => refusal.retry_after,
            Error::InvalidAddress { .. }
            | Error::Unreachable { .. }
            | Error::TimedOut { .. }
            | Error::Encode { .. }
            | Error::Decode { .. }
            | Error::InvalidWorker(_)
            | Error::Store { .. }
            | Error::RunFailed(_)
            | Error::Rejected(_)
            | Error::RunPaused(_) => None,
        };
        let wait = match later {
            Some(later) => later,
            None if !error.is_outage() || !harmless => return Err(error),
            None if self.unasked > 0 => {
                self.unasked -= 1;
                return Ok(());
            }
            None => self.delay.next_delay(),
        };
        if self.began.elapsed() + wait > self.retry_for {
            return Err(error);
        }
        tokio::time::sleep(wait).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: &tonic::Status) -> Error {
        Error::refused("start a run", status)
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_borne_for_as_long_as_was_said_and_only_where_it_does_no_harm() {
        let calls = Calls { retry_for: Duration::from_secs(7), ..Calls::default() };
        let away = refused(&tonic::Status::unavailable("restarting"));
        let began = Instant::now();
        let mut patience = Patience::new(calls, 1);

        while patience.bear(away.clone(), true).await.is_ok() {}

        assert!(began.elapsed() > Duration::from_secs(1), "{:?}", began.elapsed());
        assert!(began.elapsed() <= Duration::from_secs(7), "{:?}", began.elapsed());
        assert!(Patience::new(calls, 1).bear(away, false).await.is_err(), "it may have been done already");
        let wrong = refused(&tonic::Status::invalid_argument("no queue"));
        assert!(Patience::new(calls, 1).bear(wrong, true).await.is_err(), "the next answer is the same");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_names_a_time_is_asked_again_then_whatever_was_asked() {
        let mut status = tonic::Status::resource_exhausted("slow down");
        status.metadata_mut().insert("grpc-retry-pushback-ms", "1500".parse().unwrap());
        let began = Instant::now();

        let again = Patience::new(Calls::default(), 1).bear(refused(&status), false).await;

        assert!(again.is_ok() && began.elapsed() == Duration::from_millis(1500), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn every_other_server_is_asked_at_once() {
        let away = refused(&tonic::Status::unavailable("restarting"));
        let calls = Calls { retry_for: Duration::ZERO, ..Calls::default() };
        let began = Instant::now();
        let mut patience = Patience::new(calls, 3);

        assert!(patience.bear(away.clone(), true).await.is_ok());
        assert!(patience.bear(away.clone(), true).await.is_ok());
        assert!(patience.bear(away, true).await.is_err());
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
