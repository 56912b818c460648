use crate::output::{self, Format};
use crate::session::Session;
use jiff::Timestamp;
use kagzi::schedule::Backfill;
use std::time::SystemTime;

#[derive(clap::Args)]
pub struct Args {
    /// The schedule's id.
    id: String,
    /// Times after this one, e.g. 2026-11-01T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    from: Timestamp,
    /// Up to this one; the present unless set.
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
    /// Start each run when the one before has ended, instead of all at once.
    #[arg(long)]
    one_by_one: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let how = if args.one_by_one { Backfill::OneByOne } else { Backfill::AtOnce };
    let to = args.to.map_or_else(SystemTime::now, Into::into);
    let schedule = session.client().await?.schedule_handle(&args.id);
    let times = schedule.backfill(args.from.into(), to, how).await?;
    match session.format {
        Format::Json => output::print_json(&serde_json::json!({ "times": times })),
        Format::Table => {
            output::print(&format!("{times} times, those without a run are started"))?;
            output::note(&format!("follow them with: kagzi schedule runs {}", args.id));
            Ok(())
        }
    }
}
