//! Who takes part in one measurement: servers, workers and clients, in processes of their own or all in this one.

use std::path::{Path, PathBuf};

use anyhow::Context;
use kagzi::{Client, WorkerBuilder};
use kagzi_server::{Embedded, Settings, StoreUrl};
use tokio::task::JoinHandle;

use super::cleanup::Cleanup;
use super::store::{BenchStore, scratch_directory};
use super::{resident_memory, worker};
use crate::address::Address;
use crate::child::Child;

/// One HTTP/2 connection is one task at each end and becomes the bottleneck before the server does.
const CONNECTIONS: usize = 4;

/// Where the server is.
pub enum Place {
    Processes {
        servers: u32,
    },
    Embedded,
    /// It runs already, and is not ours.
    There(Address),
}

pub struct Setup<'a> {
    pub store: &'a BenchStore,
    pub place: Place,
    pub scratch: &'a Path,
    pub cleanup: &'a Cleanup,
}

pub struct Stage {
    /// A queue of its own, so that a server in use does not mix our runs with others.
    pub queue: String,
    pub clients: Vec<Client>,
    pub store: &'static str,
    pub mode: &'static str,
    pub dir: PathBuf,
    pub servers: Vec<Child>,
    pub workers: Vec<Hands>,
    /// Of the servers that workers connect to; empty when embedded.
    pub addresses: Vec<Address>,
    embedded: Option<Embedded>,
}

/// A worker.
pub enum Hands {
    Process(Box<Child>),
    Task(JoinHandle<Result<(), kagzi::Error>>),
}

impl Stage {
    pub async fn open(setup: Setup<'_>, slots: u32) -> anyhow::Result<Stage> {
        let mut stage = Stage::without_workers(setup).await?;
        let each = slots.div_ceil(stage.addresses.len().max(1) as u32);
        for at in 0..stage.addresses.len() {
            stage.start_worker(at, each, &[])?;
        }
        if let Some(embedded) = &stage.embedded {
            let builder = WorkerBuilder::from_channel(embedded.channel(), stage.queue.clone());
            let client = Client::from_channel(embedded.channel());
            let worker = worker::build(builder.handle_signals(false).max_concurrent(slots), client).await?;
            stage.workers.push(Hands::Task(tokio::spawn(worker.run())));
        }
        Ok(stage)
    }

    async fn without_workers(setup: Setup<'_>) -> anyhow::Result<Stage> {
        let dir = scratch_directory(setup.scratch, setup.cleanup)?;
        let mut stage = Stage {
            queue: format!("bench-{}", uuid::Uuid::now_v7()),
            clients: Vec::with_capacity(CONNECTIONS),
            store: setup.store.name(),
            mode: "separate",
            dir,
            servers: Vec::new(),
            workers: Vec::new(),
            addresses: Vec::new(),
            embedded: None,
        };
        match setup.place {
            Place::There(address) => stage.addresses.push(address),
            Place::Processes { servers } => {
                let store = setup.store.create(&stage.dir, setup.cleanup).await?;
                for _ in 0..servers {
                    let (server, address) = Child::server(&store, &stage.dir).await?;
                    stage.servers.push(server);
                    stage.addresses.push(address);
                }
            }
            Place::Embedded => {
                let store: StoreUrl = setup.store.create(&stage.dir, setup.cleanup).await?;
                let embedded = Embedded::open(&store, Settings::default()).await?;
                stage.mode = "embedded";
                stage.clients.extend((0..CONNECTIONS).map(|_| Client::from_channel(embedded.channel())));
                stage.embedded = Some(embedded);
            }
        }
        for address in stage.addresses.iter().cycle().take(CONNECTIONS.max(stage.addresses.len())) {
            stage.clients.push(Client::connect(address.to_string()).await?);
        }
        Ok(stage)
    }

    /// Starts a worker process at one of the servers.
    pub fn start_worker(&mut self, at: usize, slots: u32, more: &[&str]) -> anyhow::Result<()> {
        let (address, slots) = (self.addresses[at].to_string(), slots.to_string());
        let args =
            ["bench-worker", "--address", &address, "--queue", &self.queue, "--max-concurrent", &slots];
        let worker = Child::spawn("worker", args.iter().chain(more), &self.dir)?;
        self.workers.push(Hands::Process(Box::new(worker)));
        Ok(())
    }

    /// Awaits `work`, unless a worker ends first, which then is the error.
    pub async fn watch<T>(&mut self, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        match self.workers.first_mut() {
            Some(Hands::Process(worker)) => worker.watch(work).await,
            Some(Hands::Task(worker)) => tokio::select! {
                done = work => done,
                ended = worker => {
                    ended.context("the worker panicked")??;
                    anyhow::bail!("the worker ended early")
                }
            },
            None => work.await,
        }
    }

    /// Of all servers together; none where they are not ours.
    pub fn server_rss_mb(&self) -> Option<f64> {
        if self.embedded.is_some() {
            return resident_memory::megabytes(std::process::id());
        }
        let each: Vec<f64> = self
            .servers
            .iter()
            .map(|server| resident_memory::megabytes(server.pid()))
            .collect::<Option<_>>()?;
        (!each.is_empty()).then(|| each.iter().sum())
    }

    /// Of all worker processes together.
    pub fn worker_rss_mb(&self) -> Option<f64> {
        let each = self.workers.iter().map(|worker| match worker {
            Hands::Process(worker) => resident_memory::megabytes(worker.pid()),
            Hands::Task(_) => None,
        });
        let each: Vec<f64> = each.collect::<Option<_>>()?;
        (!each.is_empty()).then(|| each.iter().sum())
    }

    /// Ends everything; what is on disk is left to the cleanup.
    pub async fn close(self) -> anyhow::Result<()> {
        for worker in self.workers {
            match worker {
                Hands::Process(mut worker) => worker.kill().await?,
                Hands::Task(worker) => worker.abort(),
            }
        }
        for mut server in self.servers {
            server.kill().await?;
        }
        if let Some(embedded) = self.embedded {
            embedded.close().await;
        }
        Ok(())
    }
}
