//! Waiting for the end of a run.

use crate::output;
use kagzi::client::{Run, RunHandle, RunStatus};
use std::time::Duration;
use tokio::time::Instant;

/// How long to wait before giving up.
pub type Patience = Duration;

/// One long poll. Below the server's 60 s, so that a proxy with a one-minute limit does not cut it.
const POLL: Duration = Duration::from_secs(30);
/// The first one is short, so that whoever waits in vain is soon told why.
const FIRST_POLL: Duration = Duration::from_secs(1);

pub fn parse(text: &str) -> Result<Patience, String> {
    let duration: jiff::SignedDuration =
        text.parse().map_err(|_| format!("`{text}` is not a duration; write 500ms, 30s, 5m or 1h"))?;
    Duration::try_from(duration).map_err(|_| "a duration cannot be negative".into())
}

/// Returns the run once it has ended. Giving up is an error that names where the run stood.
pub async fn wait(run: &RunHandle, patience: Option<Patience>) -> anyhow::Result<Run> {
    // A patience beyond the end of time is no limit.
    let deadline = patience.and_then(|patience| Instant::now().checked_add(patience));
    let (mut poll_max, mut told) = (FIRST_POLL, None);
    loop {
        let poll = deadline.map_or(poll_max, |deadline| poll_max.min(deadline - Instant::now()));
        poll_max = POLL;
        // No time at all would ask for the server's longest wait.
        let seen = run.wait_for(poll.max(Duration::from_millis(1))).await?;
        if seen.status.has_ended() {
            return Ok(seen);
        }
        let run_id = run.run_id();
        let advice = advice(run_id, seen.status);
        if told != advice {
            advice.iter().for_each(|advice| output::note(advice));
            told = advice;
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            let status = seen.status;
            anyhow::bail!("gave up waiting; run {run_id} is still {status} (see: kagzi run why {run_id})");
        }
    }
}

/// What to do about a run that does not end by itself.
fn advice(run_id: &str, status: RunStatus) -> Option<String> {
    (status == RunStatus::Paused).then(|| {
        format!(
            "run {run_id} is PAUSED and goes on only when somebody resumes it (why: kagzi run why {run_id}; \
             then: kagzi \
             run resume {run_id}); still waiting"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_for_a_paused_run_is_told_how_it_goes_on() {
        let said = advice("0199f3c2", RunStatus::Paused).unwrap();

        assert!(said.contains("PAUSED") && said.contains("kagzi run resume 0199f3c2"), "{said}");
        assert_eq!(advice("0199f3c2", RunStatus::Running), None);
    }

    #[test]
    fn durations_are_written_with_a_unit() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("1m30s"), Ok(Duration::from_secs(90)));
        for text in ["", "30", "soon", "-5s"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
