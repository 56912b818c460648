use super::find;
use super::step::{self, StepView};
use crate::output::{self, Format};
use crate::session::Session;
use crate::time_text;
use kagzi::history::StepStatus;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
    /// Only attempts of this step.
    #[arg(long, value_name = "PATH")]
    step: Option<String>,
    /// Only attempts with one of these statuses, separated by commas.
    #[arg(long, value_enum, ignore_case = true, value_delimiter = ',')]
    status: Vec<Status>,
    /// How many to list.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=5000))]
    limit: u16,
    /// Go on where an earlier list ended.
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Status {
    Pending,
    Running,
    Completed,
    Failed,
    Sleeping,
}

#[derive(Serialize)]
struct Page {
    steps: Vec<StepView>,
    total_count: u64,
    next_page_token: Option<String>,
    prev_page_token: Option<String>,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let client = session.client().await?;
    let run = client.handle(find::run(&client, &args.id).await?.run_id);
    let all = run.attempts().step(args.step.unwrap_or_default()).page_size(args.limit);
    let wanted = args.status.into_iter().fold(all, |list, status| list.status(named(status)));
    let answer = wanted.page(args.page_token.unwrap_or_default()).await?;
    let page = Page {
        steps: answer.rows.into_iter().map(StepView::from).collect(),
        total_count: answer.total.map_or(0, |total| total.count),
        next_page_token: answer.next,
        prev_page_token: answer.previous,
    };
    match session.format {
        Format::Json => output::print_json(&page),
        Format::Table => {
            match page.steps.as_slice() {
                [] => output::note("no step attempts"),
                steps => output::print(&step::as_table(steps, time_text::now()))?,
            }
            output::note_pages(page.next_page_token.as_deref(), page.prev_page_token.as_deref());
            Ok(())
        }
    }
}

fn named(status: Status) -> StepStatus {
    match status {
        Status::Pending => StepStatus::Pending,
        Status::Running => StepStatus::Running,
        Status::Completed => StepStatus::Completed,
        Status::Failed => StepStatus::Failed,
        Status::Sleeping => StepStatus::Sleeping,
    }
}
