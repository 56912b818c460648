//! What the gRPC services share. Their methods are listed beside the files that they hand over to: `rpc.rs`.

use std::sync::Arc;

use kagzi_engine::Engine;
use kagzi_model::Millis;
use kagzi_proto::Reason;
use tokio_util::sync::CancellationToken;
use tonic::{Response, Status};

use crate::{check::PayloadLimits, readiness::Progress, trace::Tracer, watch};

/// Everything that the services share.
#[derive(Clone)]
pub struct Services {
    pub engine: Engine,
    /// Ends worker streams when the server stops.
    pub stop: CancellationToken,
    pub tracer: Tracer,
    /// Whether the store makes progress.
    pub progress: Arc<Progress>,
    /// Room for watches.
    pub watches: watch::Room,
}

impl Services {
    /// Awaits a call that may wait for a minute: it must not keep the server from stopping.
    pub async fn until_stopped<T>(
        &self,
        call: impl Future<Output = Result<T, Status>>,
    ) -> Result<Response<T>, Status> {
        tokio::select! {
            biased;
            answer = call => answer.map(Response::new),
            () = self.stop.cancelled() => Err(Reason::ServerStopping.status("the server is stopping; ask \
                again")),
        }
    }
}

/// The payload limits in force.
pub fn limits(engine: &Engine) -> PayloadLimits {
    PayloadLimits::of(engine)
}

/// The heartbeat interval that workers are told.
pub fn heartbeat_interval_ms(engine: &Engine) -> Millis {
    i64::try_from(engine.settings().heartbeat_interval.as_millis()).unwrap_or(i64::MAX)
}

/// Implements a service whose methods each live in a file of their own; what differs stands in the braces.
macro_rules! service {
    (
        $service:ident { $($own:tt)* }
        $($method:ident($request:ident) -> $response:ident),+ $(,)?
    ) => {
        #[tonic::async_trait]
        impl $service for Services {
            $($own)*

            $(async fn $method(
                &self,
                request: Request<v1::$request>,
            ) -> Result<Response<v1::$response>, Status> {
                let (metadata, _, request) = request.into_parts();
                let call = $crate::rpc::$method::handle(&self.engine, request);
                $crate::caller::of(&metadata, call).await.map(Response::new)
            })+
        }
    };
}
pub(crate) use service;
