//! A connection with the caller's interceptors in front of it.

use std::sync::Arc;

use kagzi_proto::v1::admin_service_client::AdminServiceClient;
use kagzi_proto::v1::intervention_service_client::InterventionServiceClient;
use kagzi_proto::v1::schedule_service_client::ScheduleServiceClient;
use kagzi_proto::v1::worker_service_client::WorkerServiceClient;
use kagzi_proto::v1::workflow_service_client::WorkflowServiceClient;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{GrpcMethod, Request, Status};

use crate::limits;

/// What every call goes through.
pub(crate) type Wire = InterceptedService<Channel, Interceptors>;

pub(crate) type Workflows = WorkflowServiceClient<Wire>;
pub(crate) type Schedules = ScheduleServiceClient<Wire>;
pub(crate) type Interventions = InterventionServiceClient<Wire>;
pub(crate) type Admins = AdminServiceClient<Wire>;
pub(crate) type Workers = WorkerServiceClient<Wire>;

/// A call that is about to be sent, in the hands of an interceptor: see
/// [`ClientBuilder::interceptor`](crate::client::ClientBuilder::interceptor).
///
/// ```no_run
/// use kagzi::Client;
///
/// # fn client(token: String) -> Result<Client, kagzi::Error> {
/// Client::builder("127.0.0.1:50051")
///     .interceptor(move |call| {
///         call.header("authorization", format!("Bearer {token}"));
///         println!("{}/{}", call.service(), call.method());
///     })
///     .lazy()
/// # }
/// ```
#[derive(Debug)]
pub struct OutgoingCall {
    service: String,
    method: String,
    headers: Vec<(String, String)>,
}

impl OutgoingCall {
    /// Which service is called, e.g. `kagzi.v1.WorkflowService`.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Which of its methods, e.g. `StartWorkflow`. The streams of a client and a worker are one call each
    /// (`Converse`, `Work`), however much is said on them.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Sends a header with the call. A name or a value that cannot be a header fails the call.
    pub fn header(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.headers.push((name.into(), value.into()));
    }
}

type Intercept = dyn Fn(&mut OutgoingCall) + Send + Sync;

/// All that were given, in their order. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Interceptors {
    chain: Arc<[Arc<Intercept>]>,
}

impl Interceptors {
    pub(crate) fn and(&self, intercept: impl Fn(&mut OutgoingCall) + Send + Sync + 'static) -> Interceptors {
        let last: Arc<Intercept> = Arc::new(intercept);
        Interceptors { chain: self.chain.iter().cloned().chain([last]).collect() }
    }

    pub(crate) fn before(&self, channel: Channel) -> Wire {
        InterceptedService::new(channel, self.clone())
    }
}

impl Interceptor for Interceptors {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if self.chain.is_empty() {
            return Ok(request);
        }
        let to = request.extensions().get::<GrpcMethod<'static>>();
        let (service, method) = to.map_or(("", ""), |to| (to.service(), to.method()));
        let mut call =
            OutgoingCall { service: service.to_owned(), method: method.to_owned(), headers: Vec::new() };
        self.chain.iter().for_each(|intercept| intercept(&mut call));
        for (name, value) in call.headers {
            let key = AsciiMetadataKey::from_bytes(name.to_ascii_lowercase().as_bytes())
                .map_err(|_| Status::invalid_argument(format!("'{name}' cannot be the name of a header")))?;
            // The value may be a secret, so it is not quoted.
            let value = AsciiMetadataValue::try_from(value).map_err(|_| {
                Status::invalid_argument(format!("the value of header '{name}' is not ASCII"))
            })?;
            request.metadata_mut().insert(key, value);
        }
        Ok(request)
    }
}

/// A connection that becomes the client of a service.
pub(crate) struct Rpc(pub(crate) Wire);

macro_rules! clients {
    ($($client:ident)*) => {$(
        impl From<Rpc> for $client<Wire> {
            fn from(Rpc(wire): Rpc) -> Self {
                $client::new(wire).max_decoding_message_size(limits::DECODE_BYTES_MAX)
            }
        }
    )*};
}
clients! {
    WorkflowServiceClient ScheduleServiceClient AdminServiceClient WorkerServiceClient
    InterventionServiceClient
}

/// Awaits one unary call. `Safe` or `Unsafe` says whether it may be sent a second time when its answer was
/// lost.
macro_rules! rpc {
    ($client:expr, $service:ident.$method:ident, $repeat:ident, $attempted:expr, $request:expr) => {{
        let request = $request;
        let rpc = |mut rpc: $crate::client::wire::$service| {
            let request = request.clone();
            async move { rpc.$method(request).await }
        };
        $client.call($attempted, $crate::client::Repeat::$repeat, rpc).await
    }};
}
pub(crate) use rpc;
