//! Who takes part in one measurement: servers, workers and clients, in processes of their own or all in this
//! one.

use std::path::{Path, PathBuf};

use anyhow::Context;
use kagzi::Client;
use kagzi_server::{Embedded, Settings, StoreUrl};
use tokio::task::JoinHandle;

use crate::cleanup::Cleanup;
use crate::percentile::round;
use crate::store::{BenchStore, scratch_directory};
use crate::{resident_memory, worker, written_bytes};
use kagzi_shell::address::Address;
use kagzi_shell::child::Child;

/// One HTTP/2 connection is one task at each end and becomes the bottleneck before the server does.
const CONNECTIONS: usize = 4;

/// Where the server is.
#[derive(Clone)]
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
    /// Where our servers keep their data; none when the server is not ours.
    pub home: Option<StoreUrl>,
    pub servers: Vec<Child>,
    pub workers: Vec<Hands>,
    /// Of the servers that workers connect to; empty when embedded.
    pub addresses: Vec<Address>,
    embedded: Option<Embedded>,
    place: Place,
    slots: u32,
}

/// A worker.
pub enum Hands {
    Process(Box<Child>),
    Task(JoinHandle<Result<(), kagzi::Error>>),
}

impl Stage {
    /// Servers on a new store, clients, and workers that together have so many slots.
    pub async fn open(setup: Setup<'_>, slots: u32) -> anyhow::Result<Stage> {
        let mut stage = Stage::without_workers(setup, slots).await?;
        stage.start_workers().await?;
        Ok(stage)
    }

    /// The same, for a workload that brings workers of its own.
    pub async fn without_workers(setup: Setup<'_>, slots: u32) -> anyhow::Result<Stage> {
        let dir = scratch_directory(setup.scratch, setup.cleanup)?;
        let (mode, home) = match &setup.place {
            Place::There(_) => ("separate", None),
            Place::Processes { .. } => ("separate", Some(setup.store.create(&dir, setup.cleanup).await?)),
            Place::Embedded => ("embedded", Some(setup.store.create(&dir, setup.cleanup).await?)),
        };
        let mut stage = Stage {
            queue: format!("bench-{}", uuid::Uuid::now_v7()),
            clients: Vec::with_capacity(CONNECTIONS),
            store: setup.store.name(),
            mode,
            dir,
            home,
            servers: Vec::new(),
            workers: Vec::new(),
            addresses: Vec::new(),
            embedded: None,
            place: setup.place,
            slots,
        };
        stage.start_servers().await?;
        Ok(stage)
    }

    /// Servers and clients, also again after a [`halt`](Stage::halt).
    pub async fn start_servers(&mut self) -> anyhow::Result<()> {
        match (self.place.clone(), &self.home) {
            (Place::There(address), _) => self.addresses.push(address),
            (Place::Processes { servers }, Some(home)) => {
                for _ in 0..servers {
                    let (server, address) = Child::server(&home.to_url(), &self.dir).await?;
                    self.servers.push(server);
                    self.addresses.push(address);
                }
            }
            (Place::Embedded, Some(home)) => {
                let embedded = Embedded::open(home, Settings::default()).await?;
                self.clients
                    .extend((0..CONNECTIONS).map(|_| kagzi::__private::client_on(embedded.channel())));
                self.embedded = Some(embedded);
            }
            (Place::Processes { .. } | Place::Embedded, None) => unreachable!("our servers have a store"),
        }
        for address in self.addresses.iter().cycle().take(CONNECTIONS.max(self.addresses.len())) {
            self.clients.push(Client::connect(address.to_string()).await?);
        }
        Ok(())
    }

    /// One at each server.
    pub async fn start_workers(&mut self) -> anyhow::Result<()> {
        let servers = self.addresses.len().max(1);
        let queue = self.queue.clone();
        for at in 0..servers {
            self.start_worker(Post { at, queue: &queue, slots: self.slots.div_ceil(servers as u32) }, &[])
                .await?;
        }
        Ok(())
    }

    /// Starts a worker; `more` are arguments of its process.
    pub async fn start_worker(&mut self, post: Post<'_>, more: &[&str]) -> anyhow::Result<()> {
        if let Some(embedded) = &self.embedded {
            let builder = kagzi::__private::worker_on(embedded.channel(), post.queue);
            let builder = builder.handle_signals(false).max_concurrent(post.slots);
            let worker = worker::build(builder).await?;
            self.workers.push(Hands::Task(tokio::spawn(worker.run())));
            return Ok(());
        }
        let (address, slots) = (self.addresses[post.at].to_string(), post.slots.to_string());
        let args = ["bench-worker", "--address", &address, "--queue", post.queue, "--max-concurrent", &slots];
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
        (!each.is_empty()).then(|| round(each.iter().sum(), 1))
    }

    /// Bytes that all servers together had written to disk; none where they are not ours, or share this
    /// process with workers and clients.
    pub fn written_bytes(&self) -> Option<u64> {
        let each = self.servers.iter().map(|server| written_bytes::so_far(server.pid()));
        let each: Vec<u64> = each.collect::<Option<_>>()?;
        (!each.is_empty()).then(|| each.iter().sum())
    }

    /// Of all worker processes together.
    pub fn worker_rss_mb(&self) -> Option<f64> {
        let each = self.workers.iter().map(|worker| match worker {
            Hands::Process(worker) => resident_memory::megabytes(worker.pid()),
            Hands::Task(_) => None,
        });
        let each: Vec<f64> = each.collect::<Option<_>>()?;
        (!each.is_empty()).then(|| round(each.iter().sum(), 1))
    }

    /// SIGKILL to every worker; each is gone when this returns.
    pub async fn kill_workers(&mut self) -> anyhow::Result<()> {
        for worker in self.workers.drain(..) {
            match worker {
                Hands::Process(mut worker) => worker.kill().await?,
                Hands::Task(worker) => worker.abort(),
            }
        }
        Ok(())
    }

    /// SIGKILL to everybody. The store stays.
    pub async fn halt(&mut self) -> anyhow::Result<()> {
        self.kill_workers().await?;
        self.clients.clear();
        self.addresses.clear();
        for mut server in self.servers.drain(..) {
            server.kill().await?;
        }
        if let Some(embedded) = self.embedded.take() {
            embedded.close().await;
        }
        Ok(())
    }

    /// Ends everything; what is on disk is left to the cleanup.
    pub async fn close(mut self) -> anyhow::Result<()> {
        self.halt().await
    }
}

/// Where a worker works: at which server, on which queue, and how much at once.
pub struct Post<'a> {
    pub at: usize,
    pub queue: &'a str,
    pub slots: u32,
}
