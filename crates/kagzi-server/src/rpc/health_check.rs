//! HealthCheck: whether the server can commit.

use kagzi_proto::v1;

use crate::readiness::Progress;

pub async fn handle(progress: &Progress) -> v1::HealthCheckResponse {
    match progress.check().await {
        Ok(_) => v1::HealthCheckResponse { ready: true, message: "ready".into() },
        Err(message) => v1::HealthCheckResponse { ready: false, message },
    }
}
