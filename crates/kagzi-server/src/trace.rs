//! Traces: a run belongs to the trace of whatever started it.
//!
//! The caller's `traceparent` is taken from the call's metadata, stored with the run and handed to every
//! worker that executes it, whether this server exports spans or not. With the feature `otel` and an
//! endpoint, the server adds two spans of its own: the call, below the caller's span, and each lease, below
//! the call, with a link to the lease before.

#[cfg(feature = "otel")]
mod export;
#[cfg(not(feature = "otel"))]
#[path = "trace/no_export.rs"]
mod export;
mod parent;

#[cfg(feature = "otel")]
pub use export::provider;
pub use export::{Call, Tracer};

/// Where spans are sent, and how many.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSettings {
    /// `http://127.0.0.1:4317`; none = the server has no spans of its own.
    pub otlp_endpoint: Option<String>,
    /// The share of traces that begin here. Callers decide for theirs.
    pub sample_ratio: f64,
    pub service_name: String,
}

impl Default for TraceSettings {
    fn default() -> Self {
        TraceSettings { otlp_endpoint: None, sample_ratio: 1.0, service_name: "kagzi".into() }
    }
}

/// What a worker is told about the trace of the run it is given.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LeaseTrace {
    /// Empty = the run is not traced.
    pub traceparent: String,
    /// Of the lease before, if there was one.
    pub former: String,
    /// What vendors added to the caller's context; empty = nothing.
    pub tracestate: String,
}
