//! The server of the fault tests: the real one, with short leases.

use std::{net::SocketAddr, time::Duration};

use clap::Parser;
use kagzi_server::{Options, Server, Settings, StoreUrl, TraceSettings};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

#[derive(Parser)]
struct Args {
    #[arg(long)]
    store: StoreUrl,
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    heartbeat_ms: u64,
    #[arg(long)]
    stale_ms: u64,
    #[arg(long)]
    lease_ms: u64,
    /// Where to send spans.
    #[arg(long)]
    otlp: Option<String>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    kagzi_faults::exit_when_stdin_closes();
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let args = Args::parse();
    let options = Options {
        listen: args.listen,
        store: args.store,
        insecure: false,
        database: Default::default(),
        trace: TraceSettings { otlp_endpoint: args.otlp, ..TraceSettings::default() },
        settings: Settings {
            heartbeat_interval: Duration::from_millis(args.heartbeat_ms),
            stale_after: Duration::from_millis(args.stale_ms),
            lease: Duration::from_millis(args.lease_ms),
            ..Settings::default()
        },
    };
    let shutdown = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let stop = shutdown.clone();
    tokio::spawn(async move {
        terminate.recv().await;
        stop.cancel();
    });
    Server::serve(options, |address| println!("listening on {address}"), shutdown).await
}
