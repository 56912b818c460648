use super::event::{self, EventView};
use super::find;
use super::picture::{self, Canvas};
use crate::output::{self, Format};
use crate::session::{Session, Workflows};
use crate::{moment, table};
use kagzi_proto::v1::ListRunEventsRequest;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
    /// Only events after this sequence number.
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
    after: u64,
    /// Draw it: one line per step, bars for running, sleeping, waiting and retrying on one time axis.
    #[arg(long)]
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
    let events = all_events(&mut workflows, session, &run_id, args.after).await?;

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

async fn all_events(
    workflows: &mut Workflows,
    session: &Session,
    run_id: &str,
    after: u64,
) -> anyhow::Result<Vec<EventView>> {
    let mut events: Vec<EventView> = Vec::new();
    loop {
        let request = ListRunEventsRequest {
            run_id: run_id.to_owned(),
            namespace_id: session.namespace.clone(),
            after_sequence: events.last().map_or(after, |event| event.sequence),
            page_size: 0,
        };
        let page = workflows.list_run_events(request).await?.into_inner();
        // An empty page that promises more would have us ask for ever.
        let more = page.has_more && !page.events.is_empty();
        events.extend(page.events.into_iter().map(EventView::from));
        if !more {
            return Ok(events);
        }
    }
}
