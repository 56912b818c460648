use crate::database_file::FileArgs;
use crate::exit::Trouble;
use crate::output::{self, Format};
use crate::session::Session;
use crate::verify;
use kagzi_server::sqlite::{self, Replace};
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The backup to put back.
    file: PathBuf,
    #[command(flatten)]
    database: FileArgs,
    /// Replace the database that is there. One that a server has open is never replaced.
    #[arg(long)]
    replace: bool,
}

#[derive(Serialize)]
struct Restored {
    file: PathBuf,
    to: PathBuf,
    bytes: u64,
}

/// Checks the backup first: a good database must not make room for a bad one.
pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let to = args.database.named()?;
    let to = to.ok_or_else(|| Trouble::usage("say where to put it: --store sqlite:PATH"))?;
    verify::require_sound(&args.file).await?;
    let replace = if args.replace { Replace::Stopped } else { Replace::Never };
    let (file, target) = (args.file.clone(), to.clone());
    let restored = tokio::task::spawn_blocking(move || sqlite::restore(&file, &target, replace)).await?;
    let bytes = restored.map_err(|error| {
        let hint = if to.exists() && !args.replace { "; say --replace to lose what it has" } else { "" };
        anyhow::anyhow!("{error}{hint}")
    })?;
    let restored = Restored { file: args.file, to, bytes };
    match session.format {
        Format::Json => output::print_json(&restored),
        Format::Table => output::print(&format!(
            "{} is restored to {}; start a server on it with: kagzi serve --store sqlite:{}",
            restored.file.display(),
            restored.to.display(),
            restored.to.display()
        )),
    }
}
