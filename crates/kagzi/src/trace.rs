//! The caller's trace travels with the run: with the feature `otel`, the span in which a run is started is
//! the parent of everything that workers do for it.

use tracing::Span;

/// Names the current span to the server.
#[cfg(feature = "otel")]
pub(crate) fn send_with<T>(request: &mut tonic::Request<T>) {
    use opentelemetry::trace::TraceContextExt;
    use tracing_opentelemetry::OpenTelemetrySpanExt;
    let context = Span::current().context();
    let span = context.span();
    let context = span.span_context();
    if !context.is_valid() {
        return;
    }
    let flags = context.trace_flags().to_u8();
    let traceparent = format!("00-{}-{}-{flags:02x}", context.trace_id(), context.span_id());
    request.metadata_mut().insert("traceparent", traceparent.parse().expect("hexadecimal digits are ASCII"));
    // What vendors added goes with it, where it can be a header.
    if let Ok(state) = context.trace_state().header().parse()
        && !context.trace_state().header().is_empty()
    {
        request.metadata_mut().insert("tracestate", state);
    }
}

#[cfg(not(feature = "otel"))]
pub(crate) fn send_with<T>(_: &mut tonic::Request<T>) {}

/// Puts the span of an execution into the trace that the server named, and links it to the execution before.
#[cfg(feature = "otel")]
pub(crate) fn adopt(span: &Span, (traceparent, tracestate): (&str, &str), former: &str) {
    use opentelemetry::trace::TraceContextExt;
    use tracing_opentelemetry::OpenTelemetrySpanExt;
    if let Some(parent) = read(traceparent, tracestate) {
        let context = opentelemetry::Context::new().with_remote_span_context(parent);
        // It fails where no layer for OpenTelemetry is installed: then there is nothing to adopt.
        let _ = span.set_parent(context);
    }
    if let Some(former) = read(former, tracestate) {
        span.add_link(former);
    }
}

#[cfg(not(feature = "otel"))]
pub(crate) fn adopt(_: &Span, _: (&str, &str), _: &str) {}

/// Marks a span as failed.
#[cfg(feature = "otel")]
pub(crate) fn failed(span: &Span, message: &str) {
    use tracing_opentelemetry::OpenTelemetrySpanExt;
    span.set_status(opentelemetry::trace::Status::error(message.to_owned()));
}

#[cfg(not(feature = "otel"))]
pub(crate) fn failed(_: &Span, _: &str) {}

#[cfg(feature = "otel")]
fn read(traceparent: &str, tracestate: &str) -> Option<opentelemetry::trace::SpanContext> {
    use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId};
    let [_, trace, span, flags] = traceparent.split('-').collect::<Vec<_>>()[..] else { return None };
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?);
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    let state = tracestate.parse().unwrap_or_default();
    Some(SpanContext::new(trace, span, flags, true, state)).filter(SpanContext::is_valid)
}
