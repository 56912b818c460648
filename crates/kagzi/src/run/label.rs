//! A label that the workflow sets: recorded once, like a step without code.

use kagzi_proto::v1::{self, StepStatus, report};

use crate::run::context::Called;
use crate::run::state::RunEnd;
use crate::run::step::never;
use crate::run::uplink::Verdict;

pub(crate) async fn run_label(called: Called, name: String, value: String) -> anyhow::Result<()> {
    let Called { run, step, recorded } = called;
    let _operation = run.activity.begin();
    if let Some(entry) = recorded {
        return match entry.status() {
            StepStatus::Completed => Ok(()),
            status @ (StepStatus::Pending
            | StepStatus::Running
            | StepStatus::Sleeping
            | StepStatus::Failed
            | StepStatus::Unspecified) => {
                let (path, position) = (&step.path, step.position);
                let status = status.as_str_name();
                let message = format!("recorded {path} at position {position} as {status}, got a label");
                never(run.halt_here(RunEnd::Blocked(message)).await)
            }
        };
    }
    let set = v1::LabelSet { step: Some(step), name, value };
    match run.submit(report::Body::LabelSet(set)).await {
        Verdict::Committed => Ok(()),
        verdict @ (Verdict::Sleeping { .. }
        | Verdict::Retry { .. }
        | Verdict::Final { .. }
        | Verdict::Refused { .. }) => never(run.refuse("a label", verdict).await),
    }
}
