use super::view::ScheduleView;
use crate::output::{self, Format};
use crate::session::Session;
use crate::time_text;
use kagzi::schedule::Schedule;

#[derive(clap::Args)]
pub struct Args {
    /// The schedule's id.
    id: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    print(session.client().await?.schedule_handle(args.id).describe().await?, session)
}

pub fn print(schedule: Schedule, session: &Session) -> anyhow::Result<()> {
    let view = ScheduleView::from(schedule);
    match session.format {
        Format::Json => output::print_json(&view),
        Format::Table => output::print(&view.fields(time_text::now())),
    }
}
