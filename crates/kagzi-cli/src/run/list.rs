use super::view::{RunView, some_text};
use super::{label, status};
use crate::output::{self, Format};
use crate::session::Session;
use crate::{moment, table};
use jiff::Timestamp;
use kagzi_proto::v1::{ListWorkflowRunsRequest, ListWorkflowRunsResponse, RunOrder, WorkflowStatus};
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// Only runs with this status, e.g. running; may be given again, or several with commas.
    #[arg(long, value_parser = status::parse, value_delimiter = ',')]
    status: Vec<WorkflowStatus>,
    /// Only runs of this workflow type.
    #[arg(long = "type", value_name = "TYPE")]
    workflow_type: Option<String>,
    /// Only runs on this queue.
    #[arg(long)]
    queue: Option<String>,
    /// Only runs with this label; may be given again, then all must match.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label::parse)]
    labels: Vec<(String, String)>,
    /// Only the run with this business id, or with `order-*` those whose id begins like that.
    #[arg(long, value_name = "BUSINESS_ID")]
    id: Option<String>,
    /// Only runs that failed, or wait to retry, with this error code.
    #[arg(long, value_name = "CODE")]
    error_code: Option<String>,
    /// Only runs with this reason to wake: ready, leased, timer, retry or paused.
    #[arg(long)]
    reason: Option<String>,
    /// Only runs that this schedule started.
    #[arg(long, value_name = "SCHEDULE")]
    schedule: Option<String>,
    /// Only runs since then: how long ago, e.g. 2h or 3d, or a time. By the end with --order finished.
    #[arg(long, value_name = "WHEN", value_parser = moment::parse_past)]
    since: Option<Timestamp>,
    /// Only runs before then, written like --since.
    #[arg(long, value_name = "WHEN", value_parser = moment::parse_past)]
    until: Option<Timestamp>,
    /// What comes first: the newest, or what ended last; the latter lists only runs that have ended.
    #[arg(long, value_enum, default_value_t = Order::Created)]
    order: Order,
    /// The other way round: the oldest first.
    #[arg(long)]
    ascending: bool,
    /// Say how many match, counted up to 10,000.
    #[arg(long)]
    total: bool,
    /// How many to list.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i32).range(1..=1000))]
    limit: i32,
    /// Go on where an earlier list ended.
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Order {
    Created,
    Finished,
}

#[derive(Serialize)]
struct Page {
    runs: Vec<RunView>,
    next_page_token: Option<String>,
    prev_page_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<Total>,
}

#[derive(Serialize)]
struct Total {
    count: u64,
    /// There are more than were counted.
    capped: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let counted = args.total;
    let mut workflows = session.workflows().await?;
    let answer = workflows.list_workflow_runs(request(args, &session.namespace)).await?.into_inner();
    let total = counted.then_some(Total { count: answer.total_count, capped: answer.total_capped });
    let page = Page { total, ..Page::from(answer) };

    match session.format {
        Format::Json => output::print_json(&page),
        Format::Table => {
            match page.runs.as_slice() {
                [] => output::note("no runs"),
                runs => output::print(&as_table(runs, moment::now()))?,
            }
            if let Some(total) = &page.total {
                output::note(&format!("{} in all", total.text()));
            }
            output::note_pages(page.next_page_token.as_deref(), page.prev_page_token.as_deref());
            Ok(())
        }
    }
}

fn request(args: Args, namespace: &str) -> ListWorkflowRunsRequest {
    let by_end = args.order == Order::Finished;
    let (created, finished) = match by_end {
        true => ((None, None), (args.since, args.until)),
        false => ((args.since, args.until), (None, None)),
    };
    let id = args.id.unwrap_or_default();
    let (business_id, business_id_prefix) = match id.strip_suffix('*') {
        Some(prefix) => (String::new(), prefix.to_owned()),
        None => (id, String::new()),
    };
    ListWorkflowRunsRequest {
        namespace_id: namespace.to_owned(),
        page_size: args.limit,
        page_token: args.page_token.unwrap_or_default(),
        statuses: args.status.into_iter().map(i32::from).collect(),
        workflow_type: args.workflow_type.unwrap_or_default(),
        task_queue: args.queue.unwrap_or_default(),
        error_code: args.error_code.unwrap_or_default(),
        reason: args.reason.unwrap_or_default(),
        schedule_id: args.schedule.unwrap_or_default(),
        labels: args.labels.into_iter().collect(),
        business_id,
        business_id_prefix,
        created_from: created.0.map(moment::to_wire),
        created_to: created.1.map(moment::to_wire),
        finished_from: finished.0.map(moment::to_wire),
        finished_to: finished.1.map(moment::to_wire),
        order: if by_end { RunOrder::Finished } else { RunOrder::Created }.into(),
        ascending: args.ascending,
        include_total: args.total,
        ..ListWorkflowRunsRequest::default()
    }
}

impl Total {
    fn text(&self) -> String {
        if self.capped { "more than 10,000".to_owned() } else { self.count.to_string() }
    }
}

impl From<ListWorkflowRunsResponse> for Page {
    fn from(answer: ListWorkflowRunsResponse) -> Self {
        Page {
            runs: answer.workflow_runs.into_iter().map(RunView::from).collect(),
            next_page_token: some_text(answer.next_page_token).filter(|_| answer.has_more),
            prev_page_token: some_text(answer.prev_page_token),
            total: None,
        }
    }
}

fn as_table(runs: &[RunView], now: Timestamp) -> String {
    // Whole ids: the first characters of a UUIDv7 are a time, so a shortened one would rarely be unique.
    let mut table =
        table::with_columns(&["RUN", "TYPE", "QUEUE", "STATUS", "REASON", "BUSINESS ID", "CREATED"]);
    for run in runs {
        table.add_row([
            run.run_id.as_str().into(),
            run.workflow_type.as_str().into(),
            run.task_queue.as_str().into(),
            table::mood_cell(run.status, run.mood),
            run.reason.as_deref().unwrap_or("-").into(),
            run.business_id.as_str().into(),
            run.created_at.map_or("-".into(), |at| moment::absolute_and_relative(at, now)).into(),
        ]);
    }
    table::text(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::view::tests::{sample_now, sample_run};
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn asked(line: &[&str]) -> ListWorkflowRunsRequest {
        request(Line::parse_from([&["list"], line].concat()).args, "default")
    }

    #[test]
    fn every_filter_of_the_line_is_asked_for() {
        let asked = asked(&[
            "--status=failed,timed_out",
            "--label=tenant=acme",
            "--label=tier=gold",
            "--id=order-*",
            "--order=finished",
            "--since=2026-11-15T00:00:00Z",
            "--ascending",
            "--total",
        ]);

        assert_eq!(asked.statuses, [WorkflowStatus::Failed.into(), i32::from(WorkflowStatus::TimedOut)]);
        assert_eq!(asked.labels.len(), 2);
        assert_eq!((asked.business_id.as_str(), asked.business_id_prefix.as_str()), ("", "order-"));
        assert!(asked.finished_from.is_some() && asked.created_from.is_none());
        assert_eq!((asked.order(), asked.ascending, asked.include_total), (RunOrder::Finished, true, true));
    }

    #[test]
    fn since_is_by_creation_unless_the_order_is_by_the_end() {
        let asked = asked(&["--since=2h", "--id=order-1"]);

        assert!(asked.created_from.is_some() && asked.finished_from.is_none());
        assert_eq!(asked.business_id, "order-1");
    }

    #[test]
    fn a_list_as_a_table() {
        insta::assert_snapshot!(as_table(&[sample_run().into()], sample_now()));
    }

    #[test]
    fn a_list_as_json() {
        let mut run = sample_run();
        run.input = None;
        let answer = ListWorkflowRunsResponse {
            workflow_runs: vec![run],
            next_page_token: "b2xkZXI".into(),
            has_more: true,
            ..ListWorkflowRunsResponse::default()
        };

        insta::assert_snapshot!(output::json(&Page::from(answer)));
    }
}
