//! The server of the fault tests: the real one, with short leases.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Parser;
use kagzi_faults::{COMMIT_TARGET, CrashLayer, CrashPoint, Victim};
use kagzi_server::{EdgeSettings, Options, Server, Settings, StoreUrl, TraceSettings};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

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
    /// A server of an older version, which does not know this kind of event.
    #[arg(long)]
    unaware_of: Option<u8>,
    /// Somebody dies at this commit.
    #[arg(long, requires = "crash_victim")]
    crash_at: Option<u64>,
    #[arg(long)]
    crash_victim: Option<Victim>,
    /// Where the worker's process id is written.
    #[arg(long, default_value = "worker.pid")]
    pid_file: PathBuf,
}

impl Args {
    fn crash(&self) -> Option<CrashLayer> {
        let point = CrashPoint { commit: self.crash_at?, victim: self.crash_victim? };
        Some(CrashLayer::new(point, self.pid_file.clone()))
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    kagzi_faults::exit_when_stdin_closes();
    let args = Args::parse();
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let commits = Targets::new().with_target(COMMIT_TARGET, LevelFilter::TRACE);
    tracing_subscriber::registry()
        .with(log.with_filter(LevelFilter::INFO))
        .with(args.crash().map(|crash| crash.with_filter(commits)))
        .init();
    args.unaware_of.into_iter().for_each(kagzi_model::event::pretend_not_to_know);
    let options = Options {
        listen: args.listen,
        store: args.store,
        insecure: false,
        edge: EdgeSettings::default(),
        database: Default::default(),
        notify: Default::default(),
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
