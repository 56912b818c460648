//! A real OTLP receiver on loopback: it takes what exporters send and keeps it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{AnyValue, KeyValue, any_value::Value},
};
use tonic::{Request, Response, Status, transport::server::TcpIncoming};

/// A span as it arrived. Ids in hexadecimal; no parent = empty.
#[derive(Debug, Clone)]
pub struct Span {
    pub service: String,
    pub name: String,
    pub trace: String,
    pub id: String,
    pub parent: String,
    /// Ids of the spans it links to.
    pub links: Vec<String>,
    pub attributes: HashMap<String, String>,
    pub failed: bool,
}

impl Span {
    pub fn attribute(&self, key: &str) -> &str {
        self.attributes.get(key).map(String::as_str).unwrap_or_default()
    }
}

#[derive(Clone, Default)]
pub struct Receiver {
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Receiver {
    /// Receives on any free port; the address is for exporters.
    pub async fn open() -> (Receiver, String) {
        let receiver = Receiver::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = TraceServiceServer::new(receiver.clone());
        let server = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        (receiver, format!("http://{address}"))
    }

    /// Spans of one trace that have arrived so far.
    pub fn of_trace(&self, trace: &str) -> Vec<Span> {
        self.spans.lock().unwrap().iter().filter(|span| span.trace == trace).cloned().collect()
    }

    /// Traces in which a span of this name arrived.
    pub fn traces_with(&self, name: &str) -> Vec<String> {
        let spans = self.spans.lock().unwrap();
        spans.iter().filter(|span| span.name == name).map(|span| span.trace.clone()).collect()
    }
}

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut received = Vec::new();
        for resource in request.into_inner().resource_spans {
            let of_resource =
                resource.resource.map(|resource| attributes(resource.attributes)).unwrap_or_default();
            let service = of_resource.get("service.name").cloned().unwrap_or_default();
            for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                received.push(Span {
                    service: service.clone(),
                    name: span.name,
                    trace: hex(&span.trace_id),
                    id: hex(&span.span_id),
                    parent: hex(&span.parent_span_id),
                    links: span.links.iter().map(|link| hex(&link.span_id)).collect(),
                    attributes: attributes(span.attributes),
                    failed: span.status.is_some_and(|status| status.code == 2),
                });
            }
        }
        self.spans.lock().unwrap().extend(received);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn attributes(attributes: Vec<KeyValue>) -> HashMap<String, String> {
    attributes.into_iter().map(|pair| (pair.key, text(pair.value))).collect()
}

fn text(value: Option<AnyValue>) -> String {
    match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(fact)) => fact.to_string(),
        Some(other) => format!("{other:?}"),
        None => String::new(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
