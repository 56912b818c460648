use super::view::{FailureView, some_text};
use crate::moment;
use crate::payload::PayloadView;
use crate::table::{self, Mood};
use jiff::Timestamp;
use kagzi_proto::v1::{StepAttempt, StepStatus};
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
        let status = attempt.status();
        StepView {
            step: attempt.step.map(|step| step.path).unwrap_or_default(),
            attempt: attempt.attempt,
            status: word(status),
            started_at: moment::from_wire(attempt.started_at),
            finished_at: moment::from_wire(attempt.finished_at),
            retry_at: moment::from_wire(attempt.retry_at),
            worker_id: some_text(attempt.worker_id),
            output: PayloadView::from_wire(attempt.output),
            error: FailureView::from_wire(attempt.error),
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
            step.finished_at.map_or("-".into(), |at| moment::absolute_and_relative(at, now)).into(),
            step.took().into(),
            step.result().into(),
        ]);
    }
    table::text(table)
}

impl StepView {
    fn took(&self) -> String {
        match (self.started_at, self.finished_at) {
            (Some(started), Some(finished)) => moment::rough(finished.duration_since(started)),
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

fn word(status: StepStatus) -> &'static str {
    let name = status.as_str_name();
    name.strip_prefix("STEP_STATUS_").unwrap_or(name)
}

fn mood(status: StepStatus) -> Mood {
    match status {
        StepStatus::Completed => Mood::Good,
        StepStatus::Failed => Mood::Bad,
        StepStatus::Running => Mood::Busy,
        StepStatus::Unspecified | StepStatus::Pending | StepStatus::Sleeping => Mood::Idle,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::run::view::tests::sample_now;
    use crate::{output, payload};
    use kagzi_proto::v1::{Failure, StepRef};

    pub fn sample_steps() -> Vec<StepView> {
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let reserve = StepAttempt {
            step: Some(StepRef { path: "reserve".into(), position: 0 }),
            attempt: 1,
            status: StepStatus::Completed.into(),
            output: Some(payload::json(r#"{"reservation":"R-1"}"#)),
            started_at: at(1_794_744_001),
            finished_at: at(1_794_744_003),
            worker_id: "0199f3c2-0000-7000-8000-000000000001".into(),
            ..StepAttempt::default()
        };
        let charge = StepAttempt {
            step: Some(StepRef { path: "charge".into(), position: 1 }),
            attempt: 2,
            status: StepStatus::Pending.into(),
            error: Some(Failure {
                code: "TIMED_OUT".into(),
                message: "no answer".into(),
                ..Failure::default()
            }),
            started_at: at(1_794_744_003),
            retry_at: at(1_794_744_063),
            ..StepAttempt::default()
        };
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
