use crate::exit::Trouble;
use crate::output::wants_colours;
use kagzi_server::config::{Loaded, LogFormat};
use tracing_subscriber::EnvFilter;

/// Sends logs to stderr, stdout is for data.
pub fn install(loaded: &Loaded) -> anyhow::Result<()> {
    let log = &loaded.config.log;
    let filter = EnvFilter::try_new(&log.level).map_err(|error| {
        let from = loaded.origin("log.level");
        Trouble::usage(format!("{from}: log.level: {error}; write info, or info,kagzi_store=debug"))
    })?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match log.format {
        LogFormat::Text => logs.with_ansi(wants_colours(&std::io::stderr())).init(),
        LogFormat::Json => logs.json().flatten_event(true).init(),
    }
    Ok(())
}

/// The same for workers, which have no configuration: `RUST_LOG` chooses what is said.
pub fn install_plain() {
    install_from("info");
}

/// Troubles alone: what a benchmark's worker would say is not what is measured.
pub fn install_quiet() {
    install_from("warn");
}

fn install_from(standard: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(standard));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(wants_colours(&std::io::stderr()))
        .init();
}
