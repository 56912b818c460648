//! With the feature `otel`: the server's own spans, exported by OTLP.

use std::{cell::Cell, sync::Arc};

use anyhow::Context as _;
use kagzi_model::{Name, Run};
use opentelemetry::{
    Context, KeyValue,
    trace::{
        Link, Span as _, SpanContext, SpanId, SpanKind, Status as SpanStatus, TraceContextExt, TraceFlags,
        TraceId, TraceState, Tracer as _, TracerProvider as _,
    },
};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{IdGenerator, RandomIdGenerator, Sampler, SdkTracer, SdkTracerProvider, Span},
};
use tonic::{Status, metadata::MetadataMap};

use super::{LeaseTrace, TraceSettings, parent};

/// A provider of tracers that exports by OTLP. Must be made inside a Tokio runtime.
pub fn provider(settings: &TraceSettings) -> anyhow::Result<Option<SdkTracerProvider>> {
    let Some(endpoint) = &settings.otlp_endpoint else { return Ok(None) };
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .build()
        .with_context(|| format!("trace.otlp_endpoint: could not use '{endpoint}'"))?;
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(settings.sample_ratio)));
    let resource = Resource::builder().with_service_name(settings.service_name.clone()).build();
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(sampler)
        .with_id_generator(Ids::default())
        .with_resource(resource)
        .build();
    Ok(Some(provider))
}

/// Makes the server's spans, if there is an endpoint.
#[derive(Clone, Default)]
pub struct Tracer {
    exporting: Option<Arc<Exporting>>,
}

struct Exporting {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Tracer {
    pub fn open(settings: &TraceSettings) -> anyhow::Result<Tracer> {
        let exporting = provider(settings)?.map(|provider| {
            let tracer = provider.tracer("kagzi-server");
            Arc::new(Exporting { provider, tracer })
        });
        Ok(Tracer { exporting })
    }

    /// A call that starts runs: a span below the caller's.
    pub fn called(&self, name: &'static str, metadata: &MetadataMap) -> Call {
        let caller = parent::of_call(metadata);
        let Some(exporting) = &self.exporting else {
            return Call { span: None, caller: caller.map(Name::from) };
        };
        let context = caller.as_deref().and_then(remote).unwrap_or_default();
        let builder = exporting.tracer.span_builder(name).with_kind(SpanKind::Server);
        Call { span: Some(exporting.tracer.build_with_context(builder, &context)), caller: None }
    }

    /// A run that was leased: a span below the call that started it, linked to the lease before.
    ///
    /// The span's id follows from run and epoch. So the lease before is known by name, over crashes of
    /// workers and servers and without a word in the database; and it is there to be linked to, because the
    /// server has exported it, even if the worker died before it exported anything.
    pub fn leased(&self, run: &Run) -> LeaseTrace {
        let Some(stored) = &run.options.trace else { return LeaseTrace::default() };
        let (Some(exporting), Some(context)) = (&self.exporting, remote(stored)) else {
            let (traceparent, tracestate) = parent::split(stored);
            return LeaseTrace {
                traceparent: traceparent.to_owned(),
                former: String::new(),
                tracestate: tracestate.to_owned(),
            };
        };
        let starter = context.span().span_context().clone();
        let former = (run.epoch > 1).then(|| sibling(&starter, lease_span_id(run, run.epoch - 1)));
        let attributes = [
            ("kagzi.namespace", run.namespace.to_string()),
            ("kagzi.run", run.id.to_string()),
            ("kagzi.workflow_type", run.workflow_type.to_string()),
            ("kagzi.task_queue", run.task_queue.to_string()),
            ("kagzi.epoch", run.epoch.to_string()),
            ("kagzi.worker", run.lease().map(|lease| lease.worker.to_string()).unwrap_or_default()),
        ];
        let builder = exporting
            .tracer
            .span_builder("lease")
            .with_kind(SpanKind::Producer)
            .with_attributes(attributes.map(|(key, value)| KeyValue::new(key, value)))
            .with_links(former.iter().cloned().map(Link::with_context).collect());
        NEXT_SPAN_ID.set(Some(lease_span_id(run, run.epoch)));
        let mut span = exporting.tracer.build_with_context(builder, &context);
        NEXT_SPAN_ID.set(None);
        span.end();
        LeaseTrace {
            traceparent: written(span.span_context()),
            former: former.as_ref().map(written).unwrap_or_default(),
            tracestate: parent::split(stored).1.to_owned(),
        }
    }

    /// Sends what is left.
    pub async fn close(&self) {
        let Some(exporting) = self.exporting.clone() else { return };
        // The provider waits for its thread.
        let closed = tokio::task::spawn_blocking(move || exporting.provider.shutdown()).await;
        if !matches!(closed, Ok(Ok(()))) {
            tracing::warn!("the last spans were not exported");
        }
    }
}

/// A call in progress.
pub struct Call {
    span: Option<Span>,
    caller: Option<Name>,
}

impl Call {
    /// What to store with the runs that the call starts: this span, or the caller's where we make none.
    pub fn traceparent(&self) -> Option<Name> {
        match &self.span {
            Some(span) => Some(Name::from(stored(span.span_context()))),
            None => self.caller.clone(),
        }
    }

    pub fn answered(self, run: Result<&str, &Status>) {
        let Some(mut span) = self.span else { return };
        match run {
            Ok("") => {}
            Ok(run) => span.set_attribute(KeyValue::new("kagzi.run", run.to_owned())),
            Err(status) => span.set_status(SpanStatus::error(status.message().to_owned())),
        }
        span.end();
    }
}

/// A context whose current span is the one that a `traceparent` names.
fn remote(traceparent: &str) -> Option<Context> {
    let (traceparent, state) = parent::split(traceparent);
    let [_, trace, span, flags] = traceparent.split('-').collect::<Vec<_>>()[..] else { return None };
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        TraceFlags::new(u8::from_str_radix(flags, 16).ok()?),
        true,
        state.parse().unwrap_or_default(),
    );
    Some(Context::new().with_remote_span_context(context))
}

/// A context as it is stored.
fn stored(span: &SpanContext) -> String {
    match span.trace_state().header() {
        state if state.is_empty() => written(span),
        state => format!("{} {state}", written(span)),
    }
}

fn written(span: &SpanContext) -> String {
    format!("00-{}-{}-{:02x}", span.trace_id(), span.span_id(), span.trace_flags().to_u8())
}

/// Another span of the same trace.
fn sibling(span: &SpanContext, id: SpanId) -> SpanContext {
    SpanContext::new(span.trace_id(), id, span.trace_flags(), true, TraceState::default())
}

fn lease_span_id(run: &Run, epoch: u64) -> SpanId {
    // The low half of a run's id is random; a span's id only has to be unique within its trace.
    let (_, random) = run.id.0.as_u64_pair();
    SpanId::from((random ^ epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1))
}

thread_local! {
    static NEXT_SPAN_ID: Cell<Option<SpanId>> = const { Cell::new(None) };
}

/// Random ids, except where a span's id is chosen. The builder of a span has no other way to say it.
#[derive(Debug, Default)]
struct Ids {
    random: RandomIdGenerator,
}

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> TraceId {
        self.random.new_trace_id()
    }

    fn new_span_id(&self) -> SpanId {
        NEXT_SPAN_ID.take().unwrap_or_else(|| self.random.new_span_id())
    }
}
