use crate::output::{self, Format};
use crate::session::Session;
use kagzi_proto::v1::DeleteScheduleRequest;

#[derive(clap::Args)]
pub struct Args {
    /// The schedule's id.
    id: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let request =
        DeleteScheduleRequest { schedule_id: args.id.clone(), namespace_id: session.namespace.clone() };
    session.schedules().await?.delete_schedule(request).await?;
    match session.format {
        Format::Json => output::print_json(&serde_json::json!({ "schedule_id": args.id, "deleted": true })),
        Format::Table => output::print(&format!("deleted {}", args.id)),
    }
}
