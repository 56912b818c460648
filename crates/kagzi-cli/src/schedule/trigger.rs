use crate::output::{self, Format};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// The schedule's id.
    id: String,
    /// Your own id for this start: a second trigger with it answers with the first run.
    #[arg(long, value_name = "TRIGGER_ID", default_value = "", hide_default_value = true)]
    trigger_id: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let schedule = session.client().await?.schedule_handle(args.id);
    let started = match args.trigger_id {
        id if id.is_empty() => schedule.trigger().await?,
        id => schedule.trigger_as(id).await?,
    };
    let run_id = started.run_id();
    match session.format {
        Format::Json => output::print_json(&serde_json::json!({
            "run_id": run_id,
            "already_exists": started.already_existed(),
        })),
        Format::Table => {
            output::print(run_id)?;
            output::note(&format!("follow it with: kagzi run wait {run_id}"));
            Ok(())
        }
    }
}
