//! A label that the workflow sets: recorded once, like a step without code.

use kagzi_proto::v1::{self, StepStatus, report};

use crate::run::call::Called;
use crate::run::state::RunEnd;
use crate::run::step::never;
use crate::run::turns::{Open, settled};
use crate::run::uplink::Verdict;

pub(crate) async fn run_label(called: Called, name: String, value: String) -> anyhow::Result<()> {
    let slot = called.slot.clone();
    slot.track(label(called, name, value)).await
}

async fn label(called: Called, name: String, value: String) -> anyhow::Result<()> {
    let Called { slot, recorded } = called;
    let (run, step) = (&slot.run, &slot.step);
    if let Some(recorded) = recorded {
        return match recorded.entry.status() {
            StepStatus::Completed => {
                slot.released().await;
                Ok(())
            }
            status @ (StepStatus::Pending
            | StepStatus::Running
            | StepStatus::Sleeping
            | StepStatus::Waiting
            | StepStatus::Failed
            | StepStatus::Unspecified) => {
                let (path, position) = (&step.path, step.position);
                let status = status.as_str_name();
                let message = format!("recorded {path} at position {position} as {status}, got a label");
                never(run.halt_here(RunEnd::Blocked(message)).await)
            }
        };
    }
    let _open = Open::new(&slot);
    settled(&slot).await;
    run.ask(&slot, report::Body::LabelSet(v1::LabelSet { step: Some(step.clone()), name, value }));
    match slot.heard().await {
        Verdict::Committed => Ok(()),
        verdict @ (Verdict::Sleeping { .. }
        | Verdict::Retry { .. }
        | Verdict::Waited(_)
        | Verdict::ChildBegan(_)
        | Verdict::Final { .. }
        | Verdict::Refused { .. }) => never(run.refuse("a label", verdict).await),
    }
}
