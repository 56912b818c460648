use super::find;
use super::view::RunView;
use super::wait_loop::{self, Patience};
use crate::output::{self, Format};
use crate::payload::PayloadView;
use crate::session::Session;
use kagzi::client::{Run, RunStatus};

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
    /// Give up after this long, e.g. 30s or 5m; the run goes on.
    #[arg(long, value_name = "DURATION", value_parser = wait_loop::parse)]
    timeout: Option<Patience>,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let run = find::handle(&session.client().await?, &args.id).await?;
    let ended = wait_loop::wait(&run, args.timeout).await?;
    print_ended(ended, session.format)
}

/// Prints the output of a completed run. Any other end is a failure of this command too.
pub fn print_ended(run: Run, format: Format) -> anyhow::Result<()> {
    let status = run.status;
    let run = RunView::from(run);
    match format {
        Format::Json => output::print_json(&run)?,
        Format::Table if status == RunStatus::Completed => {
            output::print(&run.output.as_ref().map_or("null".to_owned(), PayloadView::text))?;
        }
        Format::Table => {}
    }
    verdict(status, &run)
}

fn verdict(status: RunStatus, run: &RunView) -> anyhow::Result<()> {
    anyhow::ensure!(status == RunStatus::Completed, end_of(run));
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
    use kagzi::workflow::StepFailure;

    fn ended(status: RunStatus, error: Option<StepFailure>) -> Run {
        let mut run = Run::default();
        (run.run_id, run.status, run.error) = ("0199f3c2".into(), status, error);
        run
    }

    #[test]
    fn only_a_completed_run_is_a_success() {
        let outcome = |status| verdict(status, &RunView::from(ended(status, None)));

        assert!(outcome(RunStatus::Completed).is_ok());
        for status in [RunStatus::Failed, RunStatus::Cancelled, RunStatus::TimedOut] {
            assert!(outcome(status).is_err(), "{status:?}");
        }
    }

    #[test]
    fn the_end_names_the_error() {
        let error = StepFailure::new("PANIC", "index out of bounds");
        let run = RunView::from(ended(RunStatus::Failed, Some(error)));

        assert_eq!(end_of(&run), "run 0199f3c2 ended FAILED: PANIC: index out of bounds");
    }
}
