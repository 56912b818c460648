use super::find;
use super::patience::{self, Patience};
use super::view::RunView;
use crate::output::{self, Format};
use crate::payload::PayloadView;
use crate::session::Session;
use kagzi_proto::v1::{WorkflowRun, WorkflowStatus};

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
    /// Give up after this long, e.g. 30s or 5m; the run goes on.
    #[arg(long, value_name = "DURATION", value_parser = patience::parse)]
    timeout: Option<Patience>,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut workflows = session.workflows().await?;
    let run_id = find::run_id(&mut workflows, session, &args.id).await?;
    let ended = patience::wait(&mut workflows, session, &run_id, args.timeout).await?;
    print_ended(ended, session.format)
}

/// Prints the output of a completed run. Any other end is a failure of this command too.
pub fn print_ended(run: WorkflowRun, format: Format) -> anyhow::Result<()> {
    let status = run.status();
    let run = RunView::from(run);
    match format {
        Format::Json => output::print_json(&run)?,
        Format::Table if status == WorkflowStatus::Completed => {
            output::print(&run.output.as_ref().map_or("null".to_owned(), PayloadView::text))?;
        }
        Format::Table => {}
    }
    verdict(status, &run)
}

fn verdict(status: WorkflowStatus, run: &RunView) -> anyhow::Result<()> {
    anyhow::ensure!(status == WorkflowStatus::Completed, end_of(run));
    Ok(())
}

fn end_of(run: &RunView) -> String {
    match &run.error {
        Some(error) => format!("run {} ended {}: {}", run.run_id, run.status, error.text()),
        None => format!("run {} ended {}", run.run_id, run.status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kagzi_proto::v1::Failure;

    fn ended(status: WorkflowStatus, error: Option<Failure>) -> WorkflowRun {
        WorkflowRun { run_id: "0199f3c2".into(), status: status.into(), error, ..WorkflowRun::default() }
    }

    #[test]
    fn only_a_completed_run_is_a_success() {
        let outcome = |status| verdict(status, &RunView::from(ended(status, None)));

        assert!(outcome(WorkflowStatus::Completed).is_ok());
        for status in [WorkflowStatus::Failed, WorkflowStatus::Cancelled, WorkflowStatus::TimedOut] {
            assert!(outcome(status).is_err(), "{status:?}");
        }
    }

    #[test]
    fn the_end_names_the_error() {
        let error =
            Failure { code: "PANIC".into(), message: "index out of bounds".into(), ..Failure::default() };
        let run = RunView::from(ended(WorkflowStatus::Failed, Some(error)));

        assert_eq!(end_of(&run), "run 0199f3c2 ended FAILED: PANIC: index out of bounds");
    }
}
