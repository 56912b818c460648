use super::view::{QueueView, types_table};
use crate::exit::Trouble;
use crate::output::{self, Format};
use crate::session::Session;
use crate::time_text;

#[derive(clap::Args)]
pub struct Args {
    /// The queue.
    queue: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let Some(queue) = session.admin().await?.queue(&args.queue).describe().await? else {
        let message = format!(
            "queue '{}' has no living run, no worker and no gate in namespace '{}'",
            args.queue, session.namespace
        );
        return Err(Trouble::NotFound(message).into());
    };
    let queue = QueueView::from(queue);
    match session.format {
        Format::Json => output::print_json(&queue),
        Format::Table => output::print(&types_table(&queue, time_text::now())),
    }
}
