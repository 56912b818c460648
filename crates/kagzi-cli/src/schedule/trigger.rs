use crate::output::{self, Format};
use crate::session::Session;
use kagzi_proto::v1::TriggerScheduleRequest;

#[derive(clap::Args)]
pub struct Args {
    /// The schedule's id.
    id: String,
    /// Your own id for this start: a second trigger with it answers with the first run.
    #[arg(long, value_name = "TRIGGER_ID", default_value = "", hide_default_value = true)]
    trigger_id: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let namespace_id = session.namespace.clone();
    let request = TriggerScheduleRequest { schedule_id: args.id, namespace_id, trigger_id: args.trigger_id };
    let started = session.schedules().await?.trigger_schedule(request).await?.into_inner();
    match session.format {
        Format::Json => output::print_json(&serde_json::json!({
            "run_id": started.run_id,
            "already_exists": started.already_exists,
        })),
        Format::Table => {
            output::print(&started.run_id)?;
            output::note(&format!("follow it with: kagzi run wait {}", started.run_id));
            Ok(())
        }
    }
}
