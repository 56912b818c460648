//! Probes and metrics, on the same port as gRPC.

use axum::{Router, extract::State, http::StatusCode, routing::get};
use kagzi_engine::Engine;

use crate::metrics;

/// `/livez`, `/readyz`, `/metrics`.
pub fn routes(engine: Engine) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics::page))
        .with_state(engine)
}

/// Ready means that the store answers.
async fn ready(State(engine): State<Engine>) -> (StatusCode, String) {
    match engine.store().ping().await {
        Ok(()) => (StatusCode::OK, "ready\n".into()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {error}\n")),
    }
}
