use super::show;
use crate::session::Session;
use anyhow::Context;
use kagzi_proto::v1::ResumeScheduleRequest;

#[derive(clap::Args)]
pub struct Args {
    /// The schedule's id.
    id: String,
    /// Also start what was missed meanwhile, the newest up to the schedule's limit.
    #[arg(long)]
    catch_up: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let namespace_id = session.namespace.clone();
    let request = ResumeScheduleRequest { schedule_id: args.id, namespace_id, catch_up: args.catch_up };
    let answer = session.schedules().await?.resume_schedule(request).await?.into_inner();
    show::print(answer.schedule.context("the server answered without a schedule")?, session)
}
