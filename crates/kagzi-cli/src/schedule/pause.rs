use super::show;
use crate::session::Session;
use anyhow::Context;
use kagzi_proto::v1::PauseScheduleRequest;

#[derive(clap::Args)]
pub struct Args {
    /// The schedule's id.
    id: String,
    /// Why, for the others.
    #[arg(long, default_value = "", hide_default_value = true)]
    note: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let namespace_id = session.namespace.clone();
    let request = PauseScheduleRequest { schedule_id: args.id, namespace_id, note: args.note };
    let answer = session.schedules().await?.pause_schedule(request).await?.into_inner();
    show::print(answer.schedule.context("the server answered without a schedule")?, session)
}
