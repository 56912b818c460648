//! Connections for what the SDK has no call for.

use anyhow::Context;
use kagzi_proto::v1::admin_service_client::AdminServiceClient;
use kagzi_proto::v1::worker_service_client::WorkerServiceClient;
use kagzi_shell::address::Address;
use tonic::transport::{Channel, Endpoint};

pub type Admin = AdminServiceClient<Channel>;
pub type Workers = WorkerServiceClient<Channel>;

pub async fn connect(address: &Address) -> anyhow::Result<Channel> {
    let endpoint = Endpoint::from_shared(address.uri())?.tcp_nodelay(true);
    endpoint.connect().await.with_context(|| format!("could not connect to {address}"))
}
