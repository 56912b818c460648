//! GetServerTime: what the one clock says that decides.

use kagzi_engine::Engine;
use kagzi_proto::v1;
use tonic::Status;

use crate::wire;

pub async fn handle(
    engine: &Engine,
    _: v1::GetServerTimeRequest,
) -> Result<v1::GetServerTimeResponse, Status> {
    Ok(v1::GetServerTimeResponse { now: Some(wire::timestamp(engine.clock().now())) })
}

#[cfg(test)]
mod tests {
    use kagzi_engine::Settings;

    use super::*;
    use crate::{Server, StoreUrl};

    #[tokio::test]
    async fn the_time_is_that_of_the_servers_clock() {
        let server = Server::open(&StoreUrl::Memory, Settings::default()).await.unwrap();
        let engine = server.engine();

        let before = engine.clock().now();
        let told = handle(engine, v1::GetServerTimeRequest {}).await.unwrap().now.unwrap();

        assert!(told.seconds >= before.0 / 1_000_000);
        server.close().await;
    }
}
