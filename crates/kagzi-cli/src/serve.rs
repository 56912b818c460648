use crate::child::LISTENING;
use crate::config_args::{ConfigArgs, flag};
use crate::exit::Trouble;
use crate::{logs, output, stop};
use kagzi_server::config::Loaded;
use kagzi_server::{Options, Server, StoreUrl};
use std::net::SocketAddr;
use tokio_util::sync::CancellationToken;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Where to keep the data: sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE for many servers,
    /// or turso:PATH (beta) in a build with the feature `turso`
    /// [key: store.url] [env: KAGZI_STORE]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The address to listen on; port 0 takes any free one [key: server.address] [default: 127.0.0.1:50051]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Listen on an address that other machines can reach, without authentication [key: server.insecure]
    #[arg(long)]
    insecure: bool,
    /// How log lines look [key: log.format] [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    log_format: Option<String>,
    /// Stop when stdin closes.
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

pub async fn perform(args: Args) -> anyhow::Result<()> {
    let flags = [
        flag("--store", "store.url", args.store),
        flag("--listen", "server.address", args.listen),
        flag("--insecure", "server.insecure", args.insecure.then(|| "true".into())),
        flag("--log-format", "log.format", args.log_format),
    ];
    let loaded = args.config.load(flags.into_iter().flatten().collect())?;
    logs::install(&loaded)?;
    let store = loaded.config.store.url.clone().ok_or_else(|| Trouble::usage(NO_STORE))?;
    let shutdown = CancellationToken::new();
    if args.until_stdin_closes {
        stop::when_stdin_closes(shutdown.clone());
    }
    stop::on_signal(shutdown.clone(), Server::serve(options(&loaded, store), announce, shutdown)).await
}

/// How to run the server that the configuration describes.
pub fn options(loaded: &Loaded, store: StoreUrl) -> Options {
    loaded.config.options(store)
}

const NO_STORE: &str = "no store is named; say --store sqlite:PATH or --store postgres://HOST/DATABASE, or set \
                        KAGZI__STORE__URL, or url in [store] of the configuration file";

fn announce(address: SocketAddr) {
    // A closed stdout means that nobody waits for the line; the server serves all the same.
    let _ = output::print(&format!("{LISTENING}{address}"));
}
