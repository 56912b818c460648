use super::event::{self, EventView};
use super::find;
use super::picture::{self, Canvas};
use crate::output::{self, Format};
use crate::session::{Session, Workflows};
use crate::{moment, table};
use jiff::Timestamp;
use kagzi_proto::v1::ListRunEventsRequest;
use serde::Serialize;

/// Events asked for at once.
const PAGE_LEN: i32 = 1_000;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
    /// Only events after this sequence number.
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
    after: u64,
    /// Only events of this kind, e.g. step_failed; may be given again, or several with commas.
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',')]
    kinds: Vec<String>,
    /// Only events about this step.
    #[arg(long)]
    step: Option<String>,
    /// Only events since then: how long ago, e.g. 2h or 3d, or a time.
    #[arg(long, value_name = "WHEN", value_parser = moment::parse_past)]
    since: Option<Timestamp>,
    /// Only events before then, written like --since.
    #[arg(long, value_name = "WHEN", value_parser = moment::parse_past)]
    until: Option<Timestamp>,
    /// Only the newest so many of them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    last: Option<u32>,
    /// Draw it: one line per step, bars for running, sleeping, waiting and retrying on one time axis.
    #[arg(long, conflicts_with_all = ["kinds", "step", "since", "until", "last", "after"])]
    picture: bool,
}

#[derive(Serialize)]
struct History {
    run_id: String,
    events: Vec<EventView>,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut workflows = session.workflows().await?;
    let run_id = find::run_id(&mut workflows, session, &args.id).await?;
    let request = ListRunEventsRequest {
        run_id: run_id.clone(),
        namespace_id: session.namespace.clone(),
        after_sequence: args.after,
        kinds: args.kinds,
        step: args.step.unwrap_or_default(),
        from: args.since.map(moment::to_wire),
        to: args.until.map(moment::to_wire),
        newest_first: args.last.is_some(),
        ..Default::default()
    };
    let most = args.last.map_or(usize::MAX, |most| most as usize);
    let mut events = read(&mut workflows, request, most).await?;
    if args.last.is_some() {
        events.reverse();
    }

    match session.format {
        Format::Json => output::print_json(&History { run_id, events }),
        Format::Table if events.is_empty() => {
            output::note("no events");
            Ok(())
        }
        Format::Table if args.picture => {
            let stdout = std::io::stdout();
            let canvas =
                Canvas { width: table::width(), colours: output::wants_colours(&stdout), now: moment::now() };
            output::print(&picture::draw(&events, canvas).unwrap_or_default())
        }
        Format::Table => output::print(&event::as_table(&events, moment::now())),
    }
}

/// Page by page, no more than are wanted.
async fn read(
    workflows: &mut Workflows,
    mut request: ListRunEventsRequest,
    most: usize,
) -> anyhow::Result<Vec<EventView>> {
    let mut events: Vec<EventView> = Vec::new();
    loop {
        request.page_size = i32::try_from(most - events.len()).unwrap_or(PAGE_LEN).min(PAGE_LEN);
        let page = workflows.list_run_events(request.clone()).await?.into_inner();
        events.extend(page.events.into_iter().map(EventView::from));
        if page.next_page_token.is_empty() || events.len() >= most {
            return Ok(events);
        }
        request.page_token = page.next_page_token;
    }
}
