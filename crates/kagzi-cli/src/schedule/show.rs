use super::view::ScheduleView;
use crate::moment;
use crate::output::{self, Format};
use crate::session::{Schedules, Session};
use anyhow::Context;
use kagzi_proto::v1::{GetScheduleRequest, Schedule};

#[derive(clap::Args)]
pub struct Args {
    /// The schedule's id.
    id: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut schedules = session.schedules().await?;
    let found = find(&mut schedules, session, &args.id).await?;
    print(found, session)
}

pub async fn find(schedules: &mut Schedules, session: &Session, id: &str) -> anyhow::Result<Schedule> {
    let request = GetScheduleRequest { schedule_id: id.to_owned(), namespace_id: session.namespace.clone() };
    let answer = schedules.get_schedule(request).await?.into_inner();
    answer.schedule.context("the server answered without a schedule")
}

pub fn print(schedule: Schedule, session: &Session) -> anyhow::Result<()> {
    let view = ScheduleView::from(schedule);
    match session.format {
        Format::Json => output::print_json(&view),
        Format::Table => output::print(&view.fields(moment::now())),
    }
}
