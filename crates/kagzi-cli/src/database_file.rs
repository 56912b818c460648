//! Which SQLite file `backup`, `restore` and `verify` mean.

use crate::config_args::{ConfigArgs, flag};
use crate::exit::Trouble;
use crate::session::Session;
use kagzi_server::StoreUrl;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct FileArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// The server's database, sqlite:PATH [key: store.url] [env: KAGZI_STORE] [default: what the server says]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

impl FileArgs {
    /// The file that is named or configured.
    pub fn named(self) -> anyhow::Result<Option<PathBuf>> {
        let flags = flag("--store", "store.url", self.store).into_iter().collect();
        self.config.load(flags)?.config.store.url.map(|url| sqlite(&url)).transpose()
    }

    /// The same, or else the one that the running server has open.
    pub async fn named_or_served(self, session: &Session) -> anyhow::Result<PathBuf> {
        if let Some(file) = self.named()? {
            return Ok(file);
        }
        let store = session.admin().await?.server_info().await?.store;
        let file = sqlite(&store.parse().map_err(anyhow::Error::msg)?)?;
        if !file.is_file() {
            return Err(Trouble::usage(format!(
                "the server at {} keeps its data in {store}, which is not seen from here; name it with \
                 --store",
                session.address
            )));
        }
        Ok(file)
    }
}

fn sqlite(url: &StoreUrl) -> anyhow::Result<PathBuf> {
    match url {
        StoreUrl::Sqlite(file) => Ok(file.clone()),
        StoreUrl::Postgres(_) => Err(Trouble::usage(
            "this works on SQLite files; PostgreSQL has pg_dump, pg_basebackup and archives of its own",
        )),
        StoreUrl::Turso(_) => Err(Trouble::usage(
            "this works on SQLite files; stop the server and copy a Turso file with its log",
        )),
        StoreUrl::Memory => Err(Trouble::usage("a store in memory is no file")),
    }
}
