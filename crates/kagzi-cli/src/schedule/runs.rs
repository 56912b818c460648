use crate::output::{self, Format};
use crate::run::{RunView, status};
use crate::session::Session;
use crate::{table, time_text};
use jiff::Timestamp;
use kagzi::client::RunStatus;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// The schedule's id.
    id: String,
    /// Only runs with this status, e.g. failed.
    #[arg(long, value_parser = status::parse)]
    status: Option<RunStatus>,
    /// How many to list.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Go on where an earlier list ended.
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
}

#[derive(Serialize)]
struct Page {
    runs: Vec<RunView>,
    next_page_token: Option<String>,
    prev_page_token: Option<String>,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let runs = session.client().await?.schedule_handle(args.id).runs().page_size(args.limit);
    let runs = if let Some(status) = args.status { runs.status(status) } else { runs };
    let answer = runs.page(args.page_token.unwrap_or_default()).await?;
    let page = Page {
        runs: answer.rows.into_iter().map(RunView::from).collect(),
        next_page_token: answer.next,
        prev_page_token: answer.previous,
    };
    match session.format {
        Format::Json => output::print_json(&page),
        Format::Table if page.runs.is_empty() => {
            output::note("no runs");
            Ok(())
        }
        Format::Table => {
            output::print(&as_table(&page.runs, time_text::now()))?;
            if let Some(token) = page.next_page_token {
                output::note(&format!("more with: --page-token {token}"));
            }
            Ok(())
        }
    }
}

fn as_table(runs: &[RunView], now: Timestamp) -> String {
    let time = |at: Option<Timestamp>| at.map_or("-".into(), |at| time_text::absolute_and_relative(at, now));
    let mut table = table::with_columns(&["NOMINAL TIME", "RUN", "STATUS", "STARTED", "FINISHED"]);
    for run in runs {
        table.add_row([
            run.scheduled_at.map_or("-".into(), |at| at.to_string()).into(),
            run.run_id.as_str().into(),
            table::mood_cell(run.status, run.mood),
            time(run.created_at).into(),
            time(run.finished_at).into(),
        ]);
    }
    table::text(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{sample_now, sample_run};

    #[test]
    fn runs_of_a_schedule_as_a_table() {
        let mut run = sample_run();
        run.schedule_id = Some("nightly".into());
        run.scheduled_at =
            Some(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_794_744_000));

        insta::assert_snapshot!(as_table(&[run.into()], sample_now()));
    }
}
