//! Spans of a test's own processes, exported as a user would do it.

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::{filter::LevelFilter, layer::SubscriberExt, util::SubscriberInitExt};

/// Spans go to the receiver, also when this is dropped.
pub struct Export {
    provider: SdkTracerProvider,
}

/// Installs the layer that turns `tracing` spans into exported ones. Once per process.
pub fn export(service_name: &str, endpoint: &str) -> anyhow::Result<Export> {
    let settings = kagzi_server::TraceSettings {
        otlp_endpoint: Some(endpoint.to_owned()),
        service_name: service_name.to_owned(),
        ..kagzi_server::TraceSettings::default()
    };
    let provider = kagzi_server::otlp_provider(&settings)?.expect("an endpoint makes a provider");
    let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer(service_name.to_owned()));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    // The exporter's own transport speaks at DEBUG, and its spans would be exported in turn.
    tracing_subscriber::registry().with(LevelFilter::INFO).with(lines).with(spans).try_init()?;
    Ok(Export { provider })
}

impl Export {
    /// Sends what is left.
    pub async fn flush(&self) {
        let provider = self.provider.clone();
        let flushed = tokio::task::spawn_blocking(move || provider.force_flush()).await;
        flushed.expect("flushing does not panic").expect("the receiver is there");
    }
}
