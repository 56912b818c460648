//! GetServerInfo: version, store and limits.

use std::time::Duration;

use kagzi_engine::Engine;
use kagzi_proto::v1;
use tonic::Status;

use crate::wire;

pub async fn handle(
    engine: &Engine,
    _: v1::GetServerInfoRequest,
) -> Result<v1::GetServerInfoResponse, Status> {
    let settings = engine.settings();
    let ms = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    Ok(v1::GetServerInfoResponse {
        version: env!("CARGO_PKG_VERSION").into(),
        store: engine.store().describe(),
        payload_warn_bytes: settings.payload_warn_bytes as u64,
        payload_max_bytes: settings.payload_max_bytes as u64,
        heartbeat_interval_ms: ms(settings.heartbeat_interval),
        stale_after_ms: ms(settings.stale_after),
        lease_ms: ms(settings.lease),
        uptime_ms: ms(engine.uptime()),
        set_aside: wire::aside::rows(&engine.store().stats().aside),
        set_aside_total: engine.store().stats().aside.len() as u64,
    })
}
