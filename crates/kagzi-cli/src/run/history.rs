use super::event::{self, EventView};
use super::find;
use super::picture::{self, Canvas};
use crate::output::{self, Format};
use crate::session::Session;
use crate::{table, time_text};
use jiff::Timestamp;
use kagzi::history::{Event, RunHistory};
use serde::Serialize;

/// Events asked for at once.
const PAGE_LEN: u16 = 1_000;

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
    #[arg(long, value_name = "WHEN", value_parser = time_text::parse_past)]
    since: Option<Timestamp>,
    /// Only events before then, written like --since.
    #[arg(long, value_name = "WHEN", value_parser = time_text::parse_past)]
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
    let run = find::handle(&session.client().await?, &args.id).await?;
    let mut history = args.kinds.into_iter().fold(run.history(), |history, kind| history.kind(kind));
    history = history.after(args.after).step(args.step.unwrap_or_default());
    if let Some(since) = args.since {
        history = history.from(since.into());
    }
    if let Some(until) = args.until {
        history = history.to(until.into());
    }
    let events = match args.last {
        None => history.all().await?,
        Some(most) => last(history.newest_first(), most as usize).await?,
    };
    let events: Vec<EventView> = events.into_iter().map(EventView::from).collect();
    let run_id = run.run_id().to_owned();

    match session.format {
        Format::Json => output::print_json(&History { run_id, events }),
        Format::Table if events.is_empty() => {
            output::note("no events");
            Ok(())
        }
        Format::Table if args.picture => {
            let stdout = std::io::stdout();
            let canvas = Canvas {
                width: table::width(),
                colours: output::wants_colours(&stdout),
                now: time_text::now(),
            };
            output::print(&picture::draw(&events, canvas).unwrap_or_default())
        }
        Format::Table => output::print(&event::as_table(&events, time_text::now())),
    }
}

/// The newest so many, oldest first; no more is read than is wanted.
async fn last(history: RunHistory, most: usize) -> anyhow::Result<Vec<Event>> {
    let (mut events, mut token) = (Vec::new(), String::new());
    loop {
        let wanted = u16::try_from(most - events.len()).unwrap_or(PAGE_LEN).min(PAGE_LEN);
        let page = history.clone().page_size(wanted).page(token).await?;
        events.extend(page.rows);
        match page.next {
            Some(next) if events.len() < most => token = next,
            Some(_) | None => break,
        }
    }
    events.truncate(most);
    events.reverse();
    Ok(events)
}
