use super::find;
use super::step::{self, StepView};
use crate::output::{self, Format};
use crate::paging::{Foot, Paging};
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
    #[command(flatten)]
    paging: Paging,
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
    #[serde(flatten)]
    foot: Foot,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let client = session.client().await?;
    let run = client.handle(find::run(&client, &args.id).await?.run_id);
    let all = run.attempts().step(args.step.unwrap_or_default()).page_size(args.paging.limit);
    let wanted = args.status.into_iter().fold(all, |list, status| list.status(named(status)));
    let (steps, foot) = Foot::split(wanted.page(args.paging.token()).await?, &args.paging);
    let page = Page { steps, foot };
    match session.format {
        Format::Json => output::print_json(&page),
        Format::Table => {
            match page.steps.as_slice() {
                [] => output::note("no step attempts"),
                steps => output::print(&step::as_table(steps, time_text::now()))?,
            }
            page.foot.note();
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
