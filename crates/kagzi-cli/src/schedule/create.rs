use super::show;
use super::spec::{Behaviour, Timing};
use crate::output;
use crate::payload;
use crate::session::Session;
use anyhow::Context;
use kagzi_proto::v1::{CreateScheduleRequest, ScheduleSpec};

#[derive(clap::Args)]
pub struct Args {
    /// Your name for the schedule.
    id: String,
    /// The workflow type that it starts.
    #[arg(long = "type", value_name = "TYPE")]
    workflow_type: String,
    /// The queue whose workers may take the runs.
    #[arg(long, default_value = "default")]
    queue: String,
    #[command(flatten)]
    timing: Timing,
    #[command(flatten)]
    behaviour: Behaviour,
    /// Make it paused, with this note.
    #[arg(long, value_name = "NOTE")]
    paused: Option<String>,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut spec = ScheduleSpec {
        workflow_type: args.workflow_type,
        task_queue: args.queue,
        input: Some(payload::json("null")),
        ..ScheduleSpec::default()
    };
    args.timing.apply(&mut spec);
    args.behaviour.apply(&mut spec)?;
    let request = CreateScheduleRequest {
        schedule_id: args.id,
        namespace_id: session.namespace.clone(),
        spec: Some(spec),
        paused: args.paused.is_some(),
        note: args.paused.unwrap_or_default(),
    };
    let mut schedules = session.schedules().await?;
    let answer = schedules.create_schedule(request).await?.into_inner();
    if answer.already_exists {
        output::note("this schedule exists already, with the same plan");
    }
    show::print(answer.schedule.context("the server answered without a schedule")?, session)
}
