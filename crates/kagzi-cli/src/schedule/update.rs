use super::show;
use super::spec::{Behaviour, Timing};
use crate::session::Session;
use anyhow::Context;
use kagzi_proto::v1::UpdateScheduleRequest;

#[derive(clap::Args)]
pub struct Args {
    /// The schedule's id.
    id: String,
    /// Start runs of another workflow type.
    #[arg(long = "type", value_name = "TYPE")]
    workflow_type: Option<String>,
    /// Start them on another queue.
    #[arg(long)]
    queue: Option<String>,
    #[command(flatten)]
    timing: Timing,
    #[command(flatten)]
    behaviour: Behaviour,
    /// Label its runs no longer with this name; may be given again.
    #[arg(long = "unlabel", value_name = "NAME")]
    unlabel: Vec<String>,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut schedules = session.schedules().await?;
    let found = show::find(&mut schedules, session, &args.id).await?;
    let mut spec = found.spec.context("the server answered without a spec")?;
    spec.workflow_type = args.workflow_type.unwrap_or(spec.workflow_type);
    spec.task_queue = args.queue.unwrap_or(spec.task_queue);
    args.timing.apply(&mut spec);
    args.unlabel.iter().for_each(|name| drop(spec.labels.remove(name)));
    args.behaviour.apply(&mut spec)?;
    let request = UpdateScheduleRequest {
        schedule_id: args.id,
        namespace_id: session.namespace.clone(),
        spec: Some(spec),
        // Two people who edit at once do not overwrite each other.
        if_version: found.version,
    };
    let answer = schedules.update_schedule(request).await?.into_inner();
    show::print(answer.schedule.context("the server answered without a schedule")?, session)
}
