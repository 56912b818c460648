use super::view::FailureView;
use crate::payload::PayloadView;
use crate::table::{self, Mood};
use crate::time_text;
use jiff::Timestamp;
use kagzi::history::{StepAttempt, StepStatus};
use serde::Serialize;

/// One execution of a step as `-o json` prints it.
#[derive(Debug, Serialize)]
pub struct StepView {
    pub step: String,
    pub attempt: u32,
    pub status: &'static str,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub retry_at: Option<Timestamp>,
    pub worker_id: Option<String>,
    pub output: Option<PayloadView>,
    pub error: Option<FailureView>,
    #[serde(skip)]
    mood: Mood,
}

impl From<StepAttempt> for StepView {
    fn from(attempt: StepAttempt) -> Self {
        let status = attempt.status;
        StepView {
            step: attempt.step,
            attempt: attempt.attempt,
            status: status.name(),
            started_at: time_text::of(attempt.started_at),
            finished_at: time_text::of(attempt.finished_at),
            retry_at: time_text::of(attempt.retry_at),
            worker_id: attempt.worker_id,
            output: PayloadView::of(attempt.output),
            error: attempt.error.map(FailureView::from),
            mood: mood(status),
        }
    }
}

pub fn as_table(steps: &[StepView], now: Timestamp) -> String {
    let mut table = table::with_columns(&["STEP", "ATTEMPT", "STATUS", "FINISHED", "TOOK", "RESULT"]);
    for step in steps {
        table.add_row([
            step.step.as_str().into(),
            step.attempt.to_string().into(),
            table::mood_cell(step.status, step.mood),
            step.finished_at.map_or("-".into(), |at| time_text::absolute_and_relative(at, now)).into(),
            step.took().into(),
            step.result().into(),
        ]);
    }
    table::text(table)
}

impl StepView {
    fn took(&self) -> String {
        match (self.started_at, self.finished_at) {
            (Some(started), Some(finished)) => time_text::rough(finished.duration_since(started)),
            (None, _) | (_, None) => "-".into(),
        }
    }

    fn result(&self) -> String {
        match (&self.output, &self.error) {
            (Some(output), _) => output.text(),
            (None, Some(error)) => error.text(),
            (None, None) => "-".into(),
        }
    }
}

fn mood(status: StepStatus) -> Mood {
    match status {
        StepStatus::Completed => Mood::Good,
        StepStatus::Failed => Mood::Bad,
        StepStatus::Running => Mood::Busy,
        // The SDK may learn of others.
        _ => Mood::Idle,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::run::view::tests::sample_now;
    use crate::{output, payload};
    use kagzi::workflow::StepFailure;
    use std::time::{Duration, SystemTime};

    pub fn sample_steps() -> Vec<StepView> {
        let at = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let mut reserve = StepAttempt::default();
        (reserve.step, reserve.attempt, reserve.status) = ("reserve".into(), 1, StepStatus::Completed);
        reserve.output = Some(payload::json(r#"{"reservation":"R-1"}"#));
        (reserve.started_at, reserve.finished_at) = (at(1_794_744_001), at(1_794_744_003));
        reserve.worker_id = Some("0199f3c2-0000-7000-8000-000000000001".into());
        let mut charge = StepAttempt::default();
        (charge.step, charge.attempt, charge.status) = ("charge".into(), 2, StepStatus::Pending);
        charge.error = Some(StepFailure::new("TIMED_OUT", "no answer"));
        (charge.started_at, charge.retry_at) = (at(1_794_744_003), at(1_794_744_063));
        vec![reserve.into(), charge.into()]
    }

    #[test]
    fn steps_as_a_table() {
        insta::assert_snapshot!(as_table(&sample_steps(), sample_now()));
    }

    #[test]
    fn steps_as_json() {
        insta::assert_snapshot!(output::json(&sample_steps()));
    }
}
