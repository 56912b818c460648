use super::find;
use super::view::RunView;
use crate::moment;
use crate::output::{self, Format};
use crate::session::Session;
use jiff::Timestamp;
use kagzi_proto::v1::ExplainWorkflowRunRequest;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
}

#[derive(Serialize)]
struct Why {
    run_id: String,
    reason: String,
    sentence: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut workflows = session.workflows().await?;
    let run_id = find::run_id(&mut workflows, session, &args.id).await?;
    let request = ExplainWorkflowRunRequest {
        run_id: run_id.clone(),
        namespace_id: session.namespace.clone(),
        ..Default::default()
    };
    let mut answer = workflows.explain_workflow_run(request).await?.into_inner();
    if !answer.sentence.contains("deadline") {
        let run = find::run(&mut workflows, session, &run_id).await?;
        answer.sentence.extend(deadline_first(&RunView::from(run), moment::now()));
    }

    match session.format {
        Format::Json => output::print_json(&Why { run_id, reason: answer.reason, sentence: answer.sentence }),
        Format::Table => output::print(&answer.sentence),
    }
}

/// What waits for a time after its deadline never gets there.
fn deadline_first(run: &RunView, now: Timestamp) -> Option<String> {
    let (deadline_at, wake_up_at) = (run.deadline_at?, run.wake_up_at?);
    let at = moment::absolute_and_relative(deadline_at, now);
    (deadline_at <= wake_up_at)
        .then(|| format!("; its deadline comes first, at {at}: it ends TIMED_OUT then"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kagzi_proto::v1::WorkflowRun;

    fn waiting(deadline_s: i64, wake_up_s: i64) -> RunView {
        let time = |second| Timestamp::from_second(second).ok().map(moment::to_wire);
        let run = WorkflowRun {
            deadline_at: time(deadline_s),
            wake_up_at: time(wake_up_s),
            ..WorkflowRun::default()
        };
        RunView::from(run)
    }

    #[test]
    fn a_deadline_is_named_where_it_comes_first_and_only_there() {
        let now = Timestamp::from_second(1_900_000_000).unwrap();

        let first = deadline_first(&waiting(1_900_000_003, 1_900_000_060), now).unwrap();
        assert!(first.contains("deadline comes first") && first.contains("in 3s"), "{first}");
        assert_eq!(deadline_first(&waiting(1_900_000_090, 1_900_000_060), now), None);
    }
}
