//! A server that cannot be reached is waited for, up to a minute.

use tokio::time::Instant;

use crate::error::Error;
use crate::limits;
use crate::reconnect_delay::ReconnectDelay;

/// A server that cannot be reached, for a while.
#[derive(Default)]
pub(crate) struct Outage {
    began: Option<(Instant, ReconnectDelay)>,
}

impl Outage {
    /// Waits before the next try, or gives the error back when there should be none.
    pub(crate) async fn bear(&mut self, error: Error) -> Result<(), Error> {
        let (began, backoff) = self.began.get_or_insert_with(|| (Instant::now(), ReconnectDelay::new()));
        if !error.is_outage() || began.elapsed() >= limits::OUTAGE_MAX {
            return Err(error);
        }
        tokio::time::sleep(backoff.next_delay()).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unavailable() -> Error {
        Error::refused("wait for a run", &tonic::Status::unavailable("restarting"))
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_borne_for_a_minute() {
        let mut outage = Outage::default();
        let began = Instant::now();

        while outage.bear(unavailable()).await.is_ok() {}

        assert!(began.elapsed() >= limits::OUTAGE_MAX);
        assert!(began.elapsed() < limits::OUTAGE_MAX + limits::RECONNECT_DELAY_MAX);
    }

    #[tokio::test]
    async fn a_refusal_is_no_outage() {
        let error = Error::refused("wait for a run", &tonic::Status::not_found("no such run"));

        assert!(Outage::default().bear(error).await.is_err());
    }
}
