//! Probes and metrics, on the same port as gRPC.

use std::sync::Arc;

use axum::{Router, extract::State, http::StatusCode, routing::get};
use kagzi_engine::Engine;
use kagzi_notices::rounds::NoticeStats;

use crate::{
    edge::CallStats,
    metrics::{self, Metrics},
    readiness::Progress,
};

/// `/livez`, `/readyz`, `/metrics`.
pub fn routes(
    engine: Engine,
    progress: Arc<Progress>,
    calls: Arc<CallStats>,
    notices: Arc<NoticeStats>,
) -> Router {
    let metrics = Metrics::new(engine, progress.clone(), calls, notices);
    let metrics = Router::new().route("/metrics", get(metrics::page)).with_state(metrics);
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(progress)
        .merge(metrics)
}

/// Ready means that the store makes progress.
async fn ready(State(progress): State<Arc<Progress>>) -> (StatusCode, String) {
    match progress.check().await {
        Ok(_) => (StatusCode::OK, "ready\n".into()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
    }
}
