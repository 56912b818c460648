use super::view::RunView;
use super::{label, status, watch};
use crate::output::{self, Format};
use crate::paging::{Foot, Paging};
use crate::session::Session;
use crate::{table, time_text};
use jiff::Timestamp;
use kagzi::Client;
use kagzi::client::{Reason, RunStatus, Runs};
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// Only runs with this status, e.g. running; may be given again, or several with commas.
    #[arg(long, value_parser = status::parse, value_delimiter = ',')]
    status: Vec<RunStatus>,
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
    /// Only runs with this reason to wake: ready, leased, timer, retry, signal or paused.
    #[arg(long, value_parser = reason)]
    reason: Option<Reason>,
    /// Only runs that this schedule started.
    #[arg(long, value_name = "SCHEDULE")]
    schedule: Option<String>,
    /// Only runs since then: how long ago, e.g. 2h or 3d, or a time. By the end with --order finished.
    #[arg(long, value_name = "WHEN", value_parser = time_text::parse_past)]
    since: Option<Timestamp>,
    /// Only runs before then, written like --since.
    #[arg(long, value_name = "WHEN", value_parser = time_text::parse_past)]
    until: Option<Timestamp>,
    /// What comes first: the newest, or what ended last; the latter lists only runs that have ended.
    #[arg(long, value_enum, default_value_t = Order::Created)]
    order: Order,
    /// The other way round: the oldest first.
    #[arg(long)]
    ascending: bool,
    /// Only runs for this user.
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Go on showing runs as they change, until you stop it; at most 200 are looked at.
    #[arg(long, conflicts_with_all = ["page_token", "total"])]
    watch: bool,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Order {
    Created,
    Finished,
}

#[derive(Serialize)]
struct List {
    runs: Vec<RunView>,
    #[serde(flatten)]
    foot: Foot,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let client = session.client().await?;
    if args.watch {
        return watch::runs(asked(&args, &client), session.format).await;
    }
    let page = asked(&args, &client).page(args.paging.token()).await?;
    let (runs, foot) = Foot::split(page, &args.paging);
    let list = List { runs, foot };

    match session.format {
        Format::Json => output::print_json(&list),
        Format::Table => {
            match list.runs.as_slice() {
                [] => output::note("no runs"),
                runs => output::print(&as_table(runs, time_text::now()))?,
            }
            list.foot.note();
            Ok(())
        }
    }
}

fn reason(text: &str) -> Result<Reason, String> {
    Reason::ALL.into_iter().find(|reason| reason.name() == text).ok_or_else(|| {
        let known: Vec<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        format!("expected one of {}", known.join(", "))
    })
}

fn asked(args: &Args, client: &Client) -> Runs {
    let mut runs = args.status.iter().copied().fold(client.runs(), Runs::status).page_size(args.paging.limit);
    runs = args.labels.iter().fold(runs, |runs, (name, value)| runs.label(name, value));
    let text = |given: &Option<String>| given.clone().unwrap_or_default();
    runs = runs.workflow_type(text(&args.workflow_type)).task_queue(text(&args.queue));
    runs = runs.error_code(text(&args.error_code)).schedule(text(&args.schedule)).user_id(text(&args.user));
    if let Some(reason) = args.reason {
        runs = runs.reason(reason);
    }
    runs = match args.id.as_deref() {
        None => runs,
        Some(id) => match id.strip_suffix('*') {
            Some(prefix) => runs.business_id_prefix(prefix),
            None => runs.business_id(id),
        },
    };
    let (since, until) = (args.since.map(Into::into), args.until.map(Into::into));
    runs = match args.order {
        Order::Created => {
            let runs = if let Some(since) = since { runs.created_from(since) } else { runs };
            if let Some(until) = until { runs.created_to(until) } else { runs }
        }
        Order::Finished => {
            let runs = runs.finished_first();
            let runs = if let Some(since) = since { runs.finished_from(since) } else { runs };
            if let Some(until) = until { runs.finished_to(until) } else { runs }
        }
    };
    let runs = if args.ascending { runs.ascending() } else { runs };
    if args.paging.total { runs.with_total() } else { runs }
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
            run.created_at.map_or("-".into(), |at| time_text::absolute_and_relative(at, now)).into(),
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

    /// What would be asked for, in words: the list itself is the SDK's affair.
    fn asked(line: &[&str]) -> String {
        let client = Client::builder("127.0.0.1:1").lazy().unwrap();
        let args = Line::parse_from([&["list"], line].concat()).args;
        format!("{:?}", super::asked(&args, &client))
    }

    #[tokio::test]
    async fn every_filter_of_the_line_is_asked_for() {
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

        let expected = [
            "statuses: [Failed, TimedOut]",
            r#""tenant": "acme""#,
            r#""tier": "gold""#,
            r#"business_id: """#,
            r#"business_id_prefix: "order-""#,
            "finished_from: Some",
            "created_from: None",
            "order: Finished",
            "ascending: true",
            "include_total: true",
        ];
        for expected in expected {
            assert!(asked.contains(expected), "{expected} is not in {asked}");
        }
    }

    #[tokio::test]
    async fn since_is_by_creation_unless_the_order_is_by_the_end() {
        let asked = asked(&["--since=2h", "--id=order-1"]);

        assert!(asked.contains("created_from: Some") && asked.contains("finished_from: None"), "{asked}");
        assert!(asked.contains(r#"business_id: "order-1""#), "{asked}");
    }

    #[test]
    fn a_list_as_a_table() {
        insta::assert_snapshot!(as_table(&[sample_run().into()], sample_now()));
    }

    #[test]
    fn a_list_as_json() {
        let mut run = sample_run();
        run.input = None;
        let foot = Foot { next_page_token: Some("b2xkZXI".into()), ..Foot::default() };

        insta::assert_snapshot!(output::json(&List { runs: vec![run.into()], foot }));
    }
}
