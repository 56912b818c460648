//! `kagzi run watch` and `kagzi run list --watch`: what happens, while it happens.

use std::pin::pin;

use futures_util::TryStreamExt;
use jiff::Timestamp;
use kagzi::client::Runs;
use serde::Serialize;

use super::event::EventView;
use super::find;
use super::view::RunView;
use crate::output::{self, Format};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
    /// Only events after this sequence number.
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
    after: u64,
}

/// Prints events until the run has ended, one line each.
pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let run = find::handle(&session.client().await?, &args.id).await?;
    let mut events = pin!(run.watch_after(args.after));
    while let Some(event) = events.try_next().await? {
        let event = EventView::from(event);
        match session.format {
            Format::Json => output::print_json_line(&event)?,
            Format::Table => output::print(&event.line())?,
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct News {
    runs: Vec<RunView>,
    gone: Vec<String>,
}

/// Prints runs as they change, one line each.
pub async fn runs(wanted: Runs, format: Format) -> anyhow::Result<()> {
    let mut changes = pin!(wanted.watch());
    while let Some(changes) = changes.try_next().await? {
        let news =
            News { runs: changes.changed.into_iter().map(RunView::from).collect(), gone: changes.gone };
        match format {
            Format::Json => output::print_json_line(&news)?,
            Format::Table => {
                // The newest comes first in a list and last in what is read downwards.
                for run in news.runs.iter().rev() {
                    output::print(&line(run))?;
                }
            }
        }
    }
    Ok(())
}

fn line(run: &RunView) -> String {
    let at = [run.finished_at, run.started_at, run.created_at].into_iter().flatten().next();
    let at = at.map_or("-".into(), |at: Timestamp| at.to_string());
    let reason = run.reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!("{at}  {}  {} on {}  {}{reason}", run.run_id, run.workflow_type, run.task_queue, run.status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::sample_run;

    #[test]
    fn a_run_that_changed_is_one_line() {
        let line = line(&sample_run().into());

        assert!(!line.contains('\n') && line.contains(" on orders  "), "{line}");
    }
}
