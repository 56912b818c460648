//! A real server on a free port of this machine, and the simplest client there is: bytes.

use std::net::SocketAddr;

use kagzi_proto::v1::{
    admin_service_client::AdminServiceClient, worker_service_client::WorkerServiceClient,
    workflow_service_client::WorkflowServiceClient,
};
use kagzi_server::{
    Options, Server, StoreUrl,
    config::{Config, FlagValue, Loaded, Sources},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

pub struct Stage {
    pub address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<anyhow::Result<()>>,
}

impl Stage {
    /// A server in memory, with the defaults.
    pub async fn open() -> Stage {
        Stage::with(&[]).await
    }

    /// The same with some keys of the configuration set.
    pub async fn with(keys: &[(&str, &str)]) -> Stage {
        let flag = |(key, value): &(&str, &str)| FlagValue {
            flag: format!("--{key}"),
            key: (*key).into(),
            value: (*value).into(),
        };
        let flags = keys.iter().map(flag).collect();
        let loaded = Loaded::load(Sources { flags, ..Sources::default() }).unwrap();
        let config: Config = loaded.config;
        let options =
            Options { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..config.options(StoreUrl::Memory) };
        let (told, ready) = oneshot::channel();
        let stop = CancellationToken::new();
        let announce = move |address| told.send(address).expect("the test waits for the address");
        let serving = tokio::spawn(Server::serve(options, announce, stop.clone()));
        Stage { address: ready.await.expect("the server starts"), stop, serving }
    }

    pub async fn close(self) {
        self.stop.cancel();
        self.serving.await.unwrap().unwrap();
    }

    pub async fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.address)).unwrap().connect().await.unwrap()
    }

    pub async fn workflows(&self) -> WorkflowServiceClient<Channel> {
        WorkflowServiceClient::new(self.channel().await).max_decoding_message_size(usize::MAX)
    }

    pub async fn workers(&self) -> WorkerServiceClient<Channel> {
        WorkerServiceClient::new(self.channel().await)
    }

    pub async fn admin(&self) -> AdminServiceClient<Channel> {
        AdminServiceClient::new(self.channel().await)
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes as they are and reads until the server closes: the status and all that it said.
    pub async fn say(&self, request: &[u8]) -> (u16, String) {
        let (status, answer) = self.try_say(request).await;
        assert_ne!(status, 0, "the server closed without a word");
        (status, answer)
    }

    /// The same for a server that may close without a word, which is status 0.
    pub async fn try_say(&self, request: &[u8]) -> (u16, String) {
        let mut stream = self.connect().await;
        let mut answer = Vec::new();
        if stream.write_all(request).await.is_ok() {
            // A reset ends the answer as an end does; what came before it counts.
            stream.read_to_end(&mut answer).await.unwrap_or_default();
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        (status, answer)
    }

    pub async fn metrics(&self) -> String {
        let (status, page) =
            self.say(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
        assert_eq!(status, 200);
        page
    }

    /// The value of a metric without labels.
    pub async fn metric(&self, name: &str) -> f64 {
        let page = self.metrics().await;
        let value =
            page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok());
        value.unwrap_or_else(|| panic!("no metric {name} in\n{page}"))
    }
}
