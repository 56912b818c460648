use crate::logs::{self, LogFormat};
use crate::{output, stop};
use kagzi_server::StoreUrl;
use kagzi_server::{Options, Server, Settings};
use std::net::SocketAddr;
use tokio_util::sync::CancellationToken;

#[derive(clap::Args)]
pub struct Args {
    /// Where to keep the data: sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE for many servers.
    #[arg(long, value_name = "URL", env = "KAGZI_STORE")]
    store: StoreUrl,
    /// The address to listen on; port 0 takes any free one.
    #[arg(long, default_value = "127.0.0.1:50051", value_name = "ADDR")]
    listen: SocketAddr,
    /// Listen on an address that other machines can reach, without authentication.
    #[arg(long)]
    insecure: bool,
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Stop when stdin closes.
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

pub async fn perform(args: Args) -> anyhow::Result<()> {
    logs::install(args.log_format);
    let shutdown = CancellationToken::new();
    if args.until_stdin_closes {
        stop::when_stdin_closes(shutdown.clone());
    }
    let options = Options {
        listen: args.listen,
        store: args.store,
        insecure: args.insecure,
        settings: Settings::default(),
    };
    stop::on_signal(shutdown.clone(), Server::serve(options, announce, shutdown)).await
}

/// `demo`, `bench` and scripts wait for this line; its form is a contract.
fn announce(address: SocketAddr) {
    // A closed stdout means that nobody waits for the line; the server serves all the same.
    let _ = output::print(&format!("{LISTENING}{address}"));
}

pub const LISTENING: &str = "listening on ";
