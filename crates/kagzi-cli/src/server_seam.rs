//! The one place where this crate touches `kagzi-server`.

use crate::store_url::StoreUrl;
use std::net::SocketAddr;
use tokio_util::sync::CancellationToken;

pub struct ServeOptions {
    pub listen: SocketAddr,
    pub store: StoreUrl,
    /// Allows an address that others can reach although nobody is asked who they are.
    pub insecure: bool,
}

/// Runs a server in this process until `shutdown`; calls `ready` with the bound address once it accepts calls.
pub async fn serve(
    options: ServeOptions,
    ready: impl FnOnce(SocketAddr),
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let ServeOptions { listen, store, insecure } = options;
    let _unused_until_linked = (listen, insecure, ready, shutdown);
    anyhow::bail!("could not serve {store}: the server is not linked yet")
}
