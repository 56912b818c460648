use crate::database_file::FileArgs;
use crate::output::{self, Format};
use crate::session::Session;
use crate::verify;
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The file to write. It must not exist.
    file: PathBuf,
    #[command(flatten)]
    database: FileArgs,
    /// Skip the check of the copy.
    #[arg(long)]
    no_verify: bool,
}

#[derive(Serialize)]
struct Written {
    from: PathBuf,
    file: PathBuf,
    bytes: u64,
    verified: bool,
}

/// Copies the database while the server goes on, and checks the copy: a backup that cannot be read is none.
pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let from = args.database.named_or_served(session).await?;
    let (source, file) = (from.clone(), args.file.clone());
    let bytes = tokio::task::spawn_blocking(move || kagzi_server::sqlite::backup(&source, &file)).await??;
    if !args.no_verify {
        verify::require_sound(&args.file).await?;
    }
    let written = Written { from, file: args.file, bytes, verified: !args.no_verify };
    match session.format {
        Format::Json => output::print_json(&written),
        Format::Table => output::print(&format!(
            "{} bytes of {} are in {}{}",
            written.bytes,
            written.from.display(),
            written.file.display(),
            if written.verified { ", checked" } else { "" }
        )),
    }
}
