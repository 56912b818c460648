use crate::output::{self, Format};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// The schedule's id.
    id: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    session.client().await?.schedule_handle(&args.id).delete().await?;
    match session.format {
        Format::Json => output::print_json(&serde_json::json!({ "schedule_id": args.id, "deleted": true })),
        Format::Table => output::print(&format!("deleted {}", args.id)),
    }
}
