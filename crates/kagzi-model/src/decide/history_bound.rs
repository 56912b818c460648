//! A history holds so many bytes: whoever is given the run reads all of them.

use crate::{Aggregate, Rejection, limits::HISTORY_BYTES_MAX};

/// Refuses what would make the history too large. What carries no payload, such as the end of the run by a
/// failure, always fits.
pub fn check(seen: &Aggregate, payload_bytes: usize) -> Result<(), Rejection> {
    if payload_bytes > 0 && !fits(seen, payload_bytes) {
        let (run, bytes) = (seen.run.id, seen.history_bytes);
        return Err(Rejection::HistoryTooLarge { run, bytes, max: HISTORY_BYTES_MAX });
    }
    Ok(())
}

/// Whether so much more goes in.
pub fn fits(seen: &Aggregate, payload_bytes: usize) -> bool {
    seen.history_bytes.saturating_add(payload_bytes as u64) <= HISTORY_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use crate::{
        Aggregate, Command, EventKind, Failure, Lease, LeaseRef, Name, Payload, Rejection, Run, RunId,
        RunOptions, StartRun, State, StepRef, StepResult, Timestamp, WorkerId, act, decide,
        limits::HISTORY_BYTES_MAX,
    };
    use uuid::Uuid;

    const NOW: Timestamp = Timestamp(1_000);

    fn start(signals: Vec<act::Signal>) -> Command {
        Command::start(StartRun {
            namespace: Name::from("default"),
            id: RunId(Uuid::from_u128(1)),
            business_id: Some(Name::from("order-1")),
            workflow_type: Name::from("order"),
            task_queue: Name::from("orders"),
            input: Payload::new("1"),
            deadline_at: None,
            options: RunOptions::default(),
            labels: Default::default(),
            signals,
        })
    }

    /// A leased run whose history weighs so much.
    fn leased(bytes: u64) -> Aggregate {
        let run = decide(NOW, None, None, &start(Vec::new())).unwrap().run.unwrap();
        let worker = WorkerId(Uuid::from_u128(2));
        let lease = Lease { worker, since: NOW, until: Timestamp(9_000_000), step_timeout_at: None };
        let mut seen = Aggregate::new(Run { state: State::Leased(lease), epoch: 1, ..run }, 1);
        seen.weigh(&EventKind::RunStarted, bytes);
        seen
    }

    #[test]
    fn signals_of_a_start_that_fit_one_by_one_and_not_together_are_all_refused() {
        let (seen, input) = (leased(HISTORY_BYTES_MAX - 10), Payload::new("1"));
        let signal = |id: &str| {
            let (channel, id, payload) = (Name::from("item"), Name::from(id), Payload::new(vec![7; 6]));
            act::Signal { channel, id, payload, failure: None }
        };
        let tell = |signals| decide(NOW, Some(&seen), Some(&input), &start(signals));

        assert_eq!(tell(vec![signal("tea")]).unwrap().follow.len(), 1);
        let both = tell(vec![signal("tea"), signal("milk")]);
        assert!(matches!(both, Err(Rejection::HistoryTooLarge { .. })), "{both:?}");
    }

    fn lease(seen: &Aggregate) -> LeaseRef {
        LeaseRef { namespace: seen.run.namespace.clone(), run: seen.run.id, epoch: seen.run.epoch }
    }

    fn result(len: usize) -> StepResult {
        let step = StepRef { path: Name::from("charge"), position: 0 };
        StepResult { step, attempt: 1, result: Payload::new(vec![7; len]), elapsed_ms: 0 }
    }

    #[test]
    fn a_history_takes_so_many_bytes_and_can_still_be_ended() {
        let seen = leased(HISTORY_BYTES_MAX - 10);
        let lease = lease(&seen);
        let decided = |command: Command| decide(NOW, Some(&seen), None, &command);

        assert!(decided(lease.report(act::RecordStep(result(10)))).is_ok());
        let refused = decided(lease.report(act::RecordStep(result(11))));
        assert!(matches!(refused, Err(Rejection::HistoryTooLarge { .. })), "{refused:?}");
        let failure = Failure::new("HISTORY_TOO_LARGE", "full");
        let failed = act::Fail { failure, step: None };
        assert!(decided(lease.report(failed)).is_ok(), "a full run can fail");
    }

    #[test]
    fn a_full_history_takes_no_more_words_of_progress_and_the_step_goes_on() {
        let seen = leased(HISTORY_BYTES_MAX);
        let step = StepRef { path: Name::from("charge"), position: 0 };
        let said = act::Progress { step, progress: Payload::new("half") };

        let change = decide(NOW, Some(&seen), None, &lease(&seen).report(said)).unwrap();

        assert!(change.events.is_empty(), "{:?}", change.events);
    }
}
