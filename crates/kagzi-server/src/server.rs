//! A server: store, engine and transport, from start to stop.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use kagzi_engine::{Engine, Hub, Settings};
use kagzi_notices::rounds::NoticeStats;
use kagzi_proto::{
    FILE_DESCRIPTOR_SET,
    v1::{
        admin_service_server::AdminServiceServer, intervention_service_server::InterventionServiceServer,
        schedule_service_server::ScheduleServiceServer, worker_service_server::WorkerServiceServer,
        workflow_service_server::WorkflowServiceServer,
    },
};
use kagzi_store::{Clock, MemoryStore, Store, SystemClock};
#[cfg(feature = "postgres")]
use kagzi_store_postgres::{PostgresClock, PostgresStore};
use kagzi_store_sqlite::SqliteStore;
#[cfg(feature = "turso")]
use kagzi_store_sqlite::TursoStore;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::{service::Routes, transport::Server as Transport};
use tower::layer::util::{Identity, Stack};
use tracing::{info, warn};

use crate::{
    DatabaseSettings, EdgeSettings, NotifySettings, StoreUrl,
    edge::{self, CallStats, Connections, EdgeLayer},
    health, http,
    message_limit::{Worded, message_bytes_max, request_bytes_max},
    notify::Carrying,
    readiness::Progress,
    services::Services,
    trace::{TraceSettings, Tracer},
};

/// Bytes of a request's head.
const HEAD_BYTES_MAX: u32 = 16 * 1024;

/// How long a stopping server waits for open calls. Some never end by themselves: half a request on a dead
/// connection.
const STOP_MAX: Duration = Duration::from_secs(3);

/// How to run a server.
#[derive(Debug, Clone)]
pub struct Options {
    pub listen: SocketAddr,
    pub store: StoreUrl,
    /// Allows an address that other machines can reach, although there is no authentication yet.
    pub insecure: bool,
    pub edge: EdgeSettings,
    pub database: DatabaseSettings,
    pub trace: TraceSettings,
    pub notify: NotifySettings,
    pub settings: Settings,
}

/// A store and an engine, ready to serve.
pub struct Server {
    engine: Engine,
    stop: CancellationToken,
    tracer: Tracer,
    edge: EdgeSettings,
    calls: Arc<CallStats>,
    notices: Arc<NoticeStats>,
}

/// All services behind the edge.
pub(crate) type Router = tonic::transport::server::Router<Stack<EdgeLayer, Identity>>;

impl Server {
    /// Opens the store and starts the engine.
    pub async fn open(store: &StoreUrl, settings: Settings) -> anyhow::Result<Server> {
        Server::connect(store, &DatabaseSettings::default(), settings).await
    }

    /// The same, with a say in how to talk to the database.
    pub async fn connect(
        store: &StoreUrl,
        database: &DatabaseSettings,
        settings: Settings,
    ) -> anyhow::Result<Server> {
        let clock: Arc<dyn Clock> = match store {
            // The database's clock decides, so that servers agree on what is due.
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(url) => Arc::new(PostgresClock::start(url, &database.postgres()).await?),
            _ => Arc::new(SystemClock::new()),
        };
        Server::open_on(store, database, settings, clock).await
    }

    /// The same, on a clock of the caller's choice.
    pub async fn open_with(
        store: &StoreUrl,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Server> {
        Server::open_on(store, &DatabaseSettings::default(), settings, clock).await
    }

    async fn open_on(
        store: &StoreUrl,
        #[cfg_attr(not(feature = "postgres"), expect(unused, reason = "files need no connection"))]
        database: &DatabaseSettings,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Server> {
        settings.check().map_err(crate::config::InvalidSetting::from)?;
        let hub = Arc::new(Hub::default());
        let store: Arc<Store> = match store {
            StoreUrl::Sqlite(path) => Arc::new(SqliteStore::open(path, clock.clone(), hub.clone())?),
            #[cfg(feature = "turso")]
            StoreUrl::Turso(path) => Arc::new(TursoStore::open(path, clock.clone(), hub.clone())?),
            #[cfg(not(feature = "turso"))]
            StoreUrl::Turso(_) => bail!("this build has no Turso"),
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(url) => {
                Arc::new(PostgresStore::open(url, database.postgres(), clock.clone(), hub.clone()).await?)
            }
            #[cfg(not(feature = "postgres"))]
            StoreUrl::Postgres(_) => bail!("this build has no PostgreSQL"),
            StoreUrl::Memory => Arc::new(MemoryStore::open(clock.clone(), hub.clone())),
        };
        let engine = Engine::start(store, clock, hub, settings);
        #[cfg_attr(
            not(feature = "otel"),
            expect(clippy::default_constructed_unit_structs, reason = "with traces it has fields")
        )]
        let tracer = Tracer::default();
        let (edge, calls, notices) = (EdgeSettings::default(), Arc::default(), Arc::default());
        Ok(Server { engine, stop: CancellationToken::new(), tracer, edge, calls, notices })
    }

    /// Serves on an address until `shutdown`; `ready` is told the address that was bound.
    pub async fn serve(
        options: Options,
        ready: impl FnOnce(SocketAddr),
        shutdown: CancellationToken,
    ) -> anyhow::Result<()> {
        if !options.listen.ip().is_loopback() && !options.insecure {
            bail!(
                "{} can be reached from other machines and there is no authentication yet; \
                 listen on 127.0.0.1, or say --insecure if the network is yours alone",
                options.listen
            );
        }
        let tracer = Tracer::open(&options.trace)?;
        let (couriers, texts) = (options.notify.couriers()?, options.notify.texts()?);
        let listener = TcpListener::bind(options.listen)
            .await
            .with_context(|| format!("could not listen on {}; is another server running?", options.listen))?;
        let address = listener.local_addr()?;
        let mut server = Server::connect(&options.store, &options.database, options.settings).await?;
        server.tracer = tracer;
        server.edge = options.edge;
        let console_url = options.notify.console_url.clone();
        let carrying = Carrying::start(&server.engine, couriers, texts, console_url, server.notices.clone());
        info!(%address, store = %options.store, "serving");
        ready(address);
        let hosts = match address.ip().is_loopback() {
            true => edge::loopback_hosts(&server.edge),
            false => edge::any_host(),
        };
        let incoming = Connections::new(listener, &server.edge, server.calls.connections.clone()).stream();
        let (stop, engine) = (server.stop.clone(), server.engine.clone());
        let stopping = async move {
            shutdown.cancelled().await;
            engine.prepare_to_stop();
            stop.cancel();
        };
        let patience = async {
            server.stop.cancelled().await;
            tokio::time::sleep(STOP_MAX).await;
        };
        tokio::select! {
            served = server.transport(hosts)?.serve_with_incoming_shutdown(incoming, stopping) => served?,
            () = patience => warn!(after = ?STOP_MAX, "stopping although calls are still open"),
        }
        carrying.stop().await;
        server.close().await;
        info!("stopped");
        Ok(())
    }

    /// Ends worker streams, stops the engine and closes the store.
    pub async fn close(&self) {
        self.engine.prepare_to_stop();
        self.stop.cancel();
        self.engine.stop().await;
        self.tracer.close().await;
    }

    #[cfg(test)]
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// All services on one router.
    pub(crate) fn transport(&self, hosts: edge::Hosts) -> anyhow::Result<Router> {
        let progress = Arc::new(Progress::new(self.engine.clone(), self.stop.clone()));
        let services = Services {
            engine: self.engine.clone(),
            stop: self.stop.clone(),
            tracer: self.tracer.clone(),
            progress: progress.clone(),
            watches: crate::watch::Room::default(),
        };
        let payload_max = self.engine.settings().payload_max_bytes;
        let (decode_max, request_max) = (message_bytes_max(payload_max), request_bytes_max(payload_max));
        let health = health::service(progress.clone(), self.stop.clone());
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .build_v1()
            .context("the committed descriptors are readable")?;
        // Plain HTTP first: tonic's own fallback would answer everything else with "unimplemented".
        let routes = Routes::from(http::routes(
            self.engine.clone(),
            progress,
            self.calls.clone(),
            self.notices.clone(),
        ))
        .add_service(health)
        .add_service(reflection)
        .add_service(Worded(
            WorkflowServiceServer::new(services.clone())
                .max_decoding_message_size(request_max)
                .max_encoding_message_size(usize::MAX),
        ))
        .add_service(Worded(
            WorkerServiceServer::new(services.clone())
                .max_decoding_message_size(decode_max)
                .max_encoding_message_size(usize::MAX),
        ))
        .add_service(Worded(
            ScheduleServiceServer::new(services.clone())
                .max_decoding_message_size(decode_max)
                .max_encoding_message_size(usize::MAX),
        ))
        .add_service(Worded(
            InterventionServiceServer::new(services.clone())
                .max_decoding_message_size(decode_max)
                .max_encoding_message_size(usize::MAX),
        ))
        .add_service(Worded(AdminServiceServer::new(services)));
        let wait_max = self.engine.settings().wait_max;
        let edge = EdgeLayer::new(&self.edge, hosts, self.calls.clone(), wait_max, request_max);
        Ok(Transport::builder()
            .accept_http1(true)
            .max_concurrent_streams(self.edge.streams_per_connection_max)
            .http2_max_header_list_size(HEAD_BYTES_MAX)
            .initial_stream_window_size(1024 * 1024)
            .initial_connection_window_size(4 * 1024 * 1024)
            .http2_keepalive_interval(Some(Duration::from_secs(10)))
            .http2_keepalive_timeout(Some(Duration::from_secs(20)))
            .layer(edge)
            .add_routes(routes))
    }
}
