use crate::output::wants_colours;
use tracing_subscriber::EnvFilter;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// Sends logs to stderr, stdout is for data. `RUST_LOG` chooses what is said; the default is INFO.
pub fn install(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => logs.with_ansi(wants_colours(&std::io::stderr())).init(),
        LogFormat::Json => logs.json().init(),
    }
}
