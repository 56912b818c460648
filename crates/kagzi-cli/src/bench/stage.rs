use super::workload::Load;
use super::{BenchStore, scratch};
use crate::address::Address;
use crate::child::Child;
use anyhow::Context;
use kagzi_server::StoreUrl;
use std::path::Path;
use tempfile::TempDir;

/// The server and worker processes of one measurement.
pub struct Stage {
    pub address: Address,
    /// A queue of its own, so that a server in use (`--addr`) does not mix our runs with others.
    pub queue: String,
    /// None when the server was there before.
    pub server: Option<Child>,
    pub worker: Child,
    /// Last, because fields are dropped in order: the processes go before the files they write.
    dir: TempDir,
}

impl Stage {
    pub async fn open(
        load: &Load,
        store: &BenchStore,
        scratch: &Path,
        addr: Option<Address>,
    ) -> anyhow::Result<Self> {
        let dir = scratch::open(scratch)?;
        let (server, address) = match addr {
            Some(address) => (None, address),
            None => {
                let store = match store {
                    BenchStore::Sqlite => StoreUrl::Sqlite(dir.path().join("bench.db")),
                    BenchStore::Turso => StoreUrl::Turso(dir.path().join("bench.turso")),
                    BenchStore::Given(url) => url.clone(),
                };
                let (server, address) = Child::server(&store, dir.path()).await?;
                (Some(server), address)
            }
        };
        let queue = format!("bench-{}", uuid::Uuid::now_v7());
        let slots = load.concurrency.to_string();
        let address_text = address.to_string();
        let args =
            ["bench-worker", "--address", &address_text, "--queue", &queue, "--max-concurrent", &slots];
        let worker = Child::spawn("worker", args, dir.path())?;
        Ok(Stage { dir, address, queue, server, worker })
    }

    pub async fn close(mut self) -> anyhow::Result<()> {
        self.worker.kill().await?;
        if let Some(server) = &mut self.server {
            server.kill().await?;
        }
        self.dir.close().context("could not remove the scratch directory")
    }
}
