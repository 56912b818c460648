use super::view::{QueueView, types_table};
use super::watch;
use crate::exit::Trouble;
use crate::output::{self, Format};
use crate::session::Session;
use crate::time_text;

#[derive(clap::Args)]
pub struct Args {
    /// The queue.
    queue: String,
    /// Go on showing it as it changes, until you stop it.
    #[arg(long)]
    watch: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    if args.watch {
        let queue = session.admin().await?.queues().named(args.queue);
        return watch::queues(queue, session.format).await;
    }
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
