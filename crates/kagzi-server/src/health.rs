//! gRPC's own health service, which load balancers and orchestrators ask. It says what `/readyz` says.
//!
//! Asked, not told: readiness is measured when somebody wants to know, so an idle server that nobody watches
//! does nothing for it.

use std::{pin::Pin, sync::Arc, time::Duration};

use futures_util::stream::{self, Stream};
use kagzi_proto::Reason;
use kagzi_proto::v1::{
    admin_service_server::AdminServiceServer, intervention_service_server::InterventionServiceServer,
    schedule_service_server::ScheduleServiceServer, worker_service_server::WorkerServiceServer,
    workflow_service_server::WorkflowServiceServer,
};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, server::NamedService};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse,
    health_check_response::ServingStatus,
    health_server::{Health, HealthServer},
};

use crate::{check::invalid, readiness::Progress, services::Services};

/// How often a watched server looks at itself.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// The services that have a health; the empty name means all of them.
const NAMES: [&str; 6] = [
    "",
    WorkflowServiceServer::<Services>::NAME,
    WorkerServiceServer::<Services>::NAME,
    ScheduleServiceServer::<Services>::NAME,
    InterventionServiceServer::<Services>::NAME,
    AdminServiceServer::<Services>::NAME,
];

/// The health service of a server.
pub fn service(progress: Arc<Progress>, stop: CancellationToken) -> HealthServer<Readiness> {
    HealthServer::new(Readiness { progress, stop })
}

/// Answers with what is measured.
#[derive(Clone)]
pub struct Readiness {
    progress: Arc<Progress>,
    stop: CancellationToken,
}

impl Readiness {
    async fn measure(&self) -> ServingStatus {
        match self.progress.check().await {
            Ok(_) => ServingStatus::Serving,
            Err(_) => ServingStatus::NotServing,
        }
    }

    /// The next status that differs from the last one told; none once the server stops and that was told.
    async fn next(&self, known: bool, told: Option<ServingStatus>) -> Option<ServingStatus> {
        loop {
            let status = if known { self.measure().await } else { ServingStatus::ServiceUnknown };
            if told != Some(status) {
                return Some(status);
            }
            if self.stop.is_cancelled() {
                return None;
            }
            tokio::select! {
                () = tokio::time::sleep(WATCH_INTERVAL) => {}
                () = self.stop.cancelled() => {}
            }
        }
    }
}

#[tonic::async_trait]
impl Health for Readiness {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = request.into_inner().service;
        if !NAMES.contains(&service.as_str()) {
            // The protocol wants NOT_FOUND; the words are ours.
            let rule = format_args!("it must be empty, for the server, or one of {}", NAMES[1..].join(", "));
            return Err(Reason::ServiceNotFound.status(invalid("service", service, rule).message()));
        }
        Ok(answer(self.measure().await))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    /// The status now, and each change of it. A service that is not known stays unknown: the protocol keeps
    /// such a call open.
    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let known = NAMES.contains(&request.into_inner().service.as_str());
        let statuses = stream::unfold((self.clone(), None), move |(readiness, told)| async move {
            let status = readiness.next(known, told).await?;
            Some((Ok(answer(status).into_inner()), (readiness, Some(status))))
        });
        Ok(Response::new(Box::pin(statuses)))
    }
}

fn answer(status: ServingStatus) -> Response<HealthCheckResponse> {
    Response::new(HealthCheckResponse { status: status as i32 })
}
