use super::step::{self, StepView};
use super::{find, some_text};
use crate::moment;
use crate::output::{self, Format};
use crate::session::Session;
use kagzi_proto::v1::{ListStepAttemptsRequest, StepStatus};
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
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i32).range(1..=5000))]
    limit: i32,
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
    let mut workflows = session.workflows().await?;
    let run = find::run(&mut workflows, session, &args.id).await?;
    let request = ListStepAttemptsRequest {
        run_id: run.run_id,
        namespace_id: session.namespace.clone(),
        step_id: args.step.unwrap_or_default(),
        page_size: args.limit,
        page_token: args.page_token.unwrap_or_default(),
        statuses: args.status.into_iter().map(|status| number(status).into()).collect(),
        ..Default::default()
    };
    let answer = workflows.list_step_attempts(request).await?.into_inner();
    let page = Page {
        steps: answer.step_attempts.into_iter().map(StepView::from).collect(),
        total_count: answer.total_count,
        next_page_token: some_text(answer.next_page_token),
        prev_page_token: some_text(answer.prev_page_token),
    };
    match session.format {
        Format::Json => output::print_json(&page),
        Format::Table => {
            match page.steps.as_slice() {
                [] => output::note("no step attempts"),
                steps => output::print(&step::as_table(steps, moment::now()))?,
            }
            output::note_pages(page.next_page_token.as_deref(), page.prev_page_token.as_deref());
            Ok(())
        }
    }
}

fn number(status: Status) -> StepStatus {
    match status {
        Status::Pending => StepStatus::Pending,
        Status::Running => StepStatus::Running,
        Status::Completed => StepStatus::Completed,
        Status::Failed => StepStatus::Failed,
        Status::Sleeping => StepStatus::Sleeping,
    }
}
