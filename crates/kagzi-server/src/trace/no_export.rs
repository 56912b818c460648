//! Without the feature `otel`: the caller's context is passed on, and nothing is exported.

use anyhow::bail;
use kagzi_model::{Name, Run};
use tonic::{Status, metadata::MetadataMap};

use super::{LeaseTrace, TraceSettings, parent};

/// Makes no spans.
#[derive(Clone, Default)]
pub struct Tracer;

impl Tracer {
    /// Refuses an endpoint: spans that are silently not sent would be missed too late.
    pub fn open(settings: &TraceSettings) -> anyhow::Result<Tracer> {
        if settings.otlp_endpoint.is_some() {
            bail!(
                "trace.otlp_endpoint is set, but this build has no OpenTelemetry; build it with the feature \
                 `otel`"
            );
        }
        Ok(Tracer)
    }

    /// A call that starts runs.
    pub fn called(&self, _name: &'static str, metadata: &MetadataMap) -> Call {
        Call { traceparent: parent::of_call(metadata).map(Name::from) }
    }

    /// A run that was leased.
    pub fn leased(&self, run: &Run) -> LeaseTrace {
        let (traceparent, tracestate) = run.options.trace.as_deref().map(parent::split).unwrap_or_default();
        LeaseTrace {
            traceparent: traceparent.to_owned(),
            former: String::new(),
            tracestate: tracestate.to_owned(),
        }
    }

    pub async fn close(&self) {}
}

/// A call in progress.
pub struct Call {
    traceparent: Option<Name>,
}

impl Call {
    /// What to store with the runs that the call starts.
    pub fn traceparent(&self) -> Option<Name> {
        self.traceparent.clone()
    }

    pub fn answered(self, _run: Result<&str, &Status>) {}
}
