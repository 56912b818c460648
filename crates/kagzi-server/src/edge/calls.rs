//! Calls, counted: how many of which method ended how, how long they took, and how many bytes went each way.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Instant,
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use kagzi_proto::FILE_DESCRIPTOR_SET;
use kagzi_store::Histogram;
use prost::Message;
use prost_types::FileDescriptorSet;
use tonic::{Code, Status, body::Body, codegen::http::HeaderMap};

use super::{admission::Refusal, connections::ConnectionStats};

/// As many codes as gRPC has.
const CODES: usize = 17;

/// Counters of one method.
#[derive(Debug)]
pub struct MethodStats {
    /// `WorkflowService/StartWorkflow`, or `other`.
    pub name: String,
    /// It may last as long as its connection.
    pub stream: bool,
    codes: [AtomicU64; CODES],
    /// Until the answer begins.
    pub latency: Histogram,
}

impl MethodStats {
    fn new(name: String, stream: bool) -> Arc<MethodStats> {
        let codes = std::array::from_fn(|_| AtomicU64::new(0));
        Arc::new(MethodStats { name, stream, codes, latency: Histogram::of_durations() })
    }

    /// How many calls ended with which code, those that occurred.
    pub fn ended(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.codes.iter().enumerate().filter_map(|(code, count)| match count.load(Relaxed) {
            0 => None,
            count => Some((code_name(Code::from(code as i32)), count)),
        })
    }
}

/// Everything that is counted at the edge.
pub struct CallStats {
    /// By path. The set is closed, so a stranger cannot make labels.
    methods: HashMap<String, Arc<MethodStats>>,
    other: Arc<MethodStats>,
    open_calls: AtomicU64,
    open_streams: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    refused: [AtomicU64; Refusal::ALL.len()],
    pub connections: Arc<ConnectionStats>,
}

impl Default for CallStats {
    fn default() -> Self {
        let files =
            FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("the committed descriptors are readable");
        let mut methods = HashMap::new();
        for file in &files.file {
            for service in &file.service {
                for method in &service.method {
                    let name = format!("{}/{}", service.name(), method.name());
                    let path = format!("/{}.{name}", file.package());
                    let stream = method.client_streaming() || method.server_streaming();
                    methods.insert(path, MethodStats::new(name, stream));
                }
            }
        }
        CallStats {
            methods,
            // Health, reflection and what does not exist: health and reflection have streams.
            other: MethodStats::new("other".into(), true),
            open_calls: AtomicU64::new(0),
            open_streams: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            refused: Default::default(),
            connections: Arc::default(),
        }
    }
}

impl CallStats {
    /// Every method in the order of its name.
    pub fn methods(&self) -> Vec<&MethodStats> {
        let mut all: Vec<_> = self.methods.values().map(|method| &**method).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.push(&self.other);
        all
    }

    pub fn open_calls(&self) -> u64 {
        self.open_calls.load(Relaxed)
    }

    pub fn open_streams(&self) -> u64 {
        self.open_streams.load(Relaxed)
    }

    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Relaxed)
    }

    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Relaxed)
    }

    /// Requests that were no calls, by reason.
    pub fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Refusal::ALL.iter().zip(&self.refused).map(|(reason, count)| (reason.name(), count.load(Relaxed)))
    }

    pub(super) fn refused(&self, reason: Refusal) {
        self.refused[reason as usize].fetch_add(1, Relaxed);
    }

    pub(super) fn received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn begin(self: &Arc<Self>, path: &str) -> OpenCall {
        let method = self.methods.get(path).unwrap_or(&self.other).clone();
        self.open(&method).fetch_add(1, Relaxed);
        OpenCall { stats: self.clone(), method, since: Instant::now(), code: None }
    }

    fn open(&self, method: &MethodStats) -> &AtomicU64 {
        if method.stream { &self.open_streams } else { &self.open_calls }
    }
}

/// A call that has begun. However it ends, it is counted once.
pub struct OpenCall {
    stats: Arc<CallStats>,
    method: Arc<MethodStats>,
    since: Instant,
    /// Not known until the end. A caller that leaves before has cancelled it.
    code: Option<Code>,
}

impl OpenCall {
    pub fn method(&self) -> &MethodStats {
        &self.method
    }

    /// The answer begins. A refusal has its code here, other answers at their end.
    pub fn answered(&mut self, headers: &HeaderMap) {
        let passed = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.method.latency.observe(passed);
        self.read(headers);
    }

    fn read(&mut self, headers: &HeaderMap) {
        if let Some(code) = headers.get(Status::GRPC_STATUS) {
            self.code = Some(Code::from_bytes(code.as_bytes()));
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let code = self.code.unwrap_or(Code::Cancelled);
        self.method.codes[code as usize].fetch_add(1, Relaxed);
        self.stats.open(&self.method).fetch_sub(1, Relaxed);
    }
}

/// An answer whose bytes are counted and whose end is seen.
pub struct Counted {
    body: Body,
    call: OpenCall,
}

impl Counted {
    pub fn new(body: Body, call: OpenCall) -> Counted {
        Counted { body, call }
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            if let Some(data) = frame.data_ref() {
                self.call.stats.sent_bytes.fetch_add(data.len() as u64, Relaxed);
            }
            if let Some(trailers) = frame.trailers_ref() {
                self.call.read(trailers);
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// As the specification of gRPC writes them.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
