//! A worker's stream driven by hand, so that a test decides what is said, what is read and when nothing is.

use kagzi_proto::v1::{
    self, server_message::Message as Down, worker_message::Message as Up,
    worker_service_client::WorkerServiceClient,
};
use tokio::sync::mpsc;
use tonic::{Status, Streaming, transport::Channel};

use crate::stage::QUEUE;

pub struct HandStream {
    up: mpsc::Sender<v1::WorkerMessage>,
    down: Streaming<v1::ServerMessage>,
    pub welcome: v1::Welcome,
}

/// A greeting of a worker of the stage's queue.
pub fn hello(workflow_type: &str, max_concurrent: i32) -> v1::Hello {
    let registration = v1::RegisterWorkerRequest {
        task_queue: QUEUE.into(),
        workflow_types: vec![workflow_type.to_owned()],
        hostname: "by-hand".into(),
        pid: 1,
        max_concurrent: Some(max_concurrent),
        ..Default::default()
    };
    v1::Hello { registration: Some(registration), ..Default::default() }
}

impl HandStream {
    /// Opens a stream with this greeting and reads the welcome.
    pub async fn open(mut rpc: WorkerServiceClient<Channel>, hello: v1::Hello) -> Result<HandStream, Status> {
        let (up, messages) = mpsc::channel(16);
        let first = v1::WorkerMessage { message: Some(Up::Hello(Box::new(hello))) };
        up.send(first).await.expect("the channel is open");
        let messages = tokio_stream::wrappers::ReceiverStream::new(messages);
        let mut down = rpc.work(messages).await?.into_inner();
        match next(&mut down).await? {
            Down::Welcome(welcome) => Ok(HandStream { up, down, welcome }),
            other => panic!("greeted with {other:?}"),
        }
    }

    /// Sends a message; false when the server has ended the stream.
    pub async fn say(&self, message: Up) -> bool {
        self.up.send(v1::WorkerMessage { message: Some(message) }).await.is_ok()
    }

    /// The next message, or why the stream ended.
    pub async fn next(&mut self) -> Result<Down, Status> {
        next(&mut self.down).await
    }

    /// The next run that is assigned; everything else is passed over.
    pub async fn assigned(&mut self) -> Result<v1::Assign, Status> {
        loop {
            if let Down::Assign(assign) = self.next().await? {
                return Ok(*assign);
            }
        }
    }
}

async fn next(down: &mut Streaming<v1::ServerMessage>) -> Result<Down, Status> {
    match down.message().await? {
        Some(message) => Ok(message.message.expect("every message says something")),
        None => Err(Status::cancelled("the stream ended")),
    }
}
