//! Starts and waits over one stream. A unary call costs about 50 us of processor time on both sides together (38,000 a
//! second on 2 cores), a message on an open stream a twentieth of it; and the starts of one message share a commit.

use std::{
    collections::HashMap,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::{
    FutureExt, StreamExt,
    future::{AbortHandle, Abortable, BoxFuture},
    stream::{FuturesUnordered, Stream},
};
use kagzi_engine::Engine;
use kagzi_proto::v1::{self, ask::Body as Asked, reply::Body as Said};
use tokio::sync::mpsc;
use tonic::{Status, Streaming, metadata::MetadataMap};
use tracing::debug;

use crate::{
    message_limit::clearer,
    rpc::{start_workflows, wait_workflow_run},
    services::Services,
    trace::Call,
};

/// Messages that wait to be written. A client that does not read stops being read.
const OUTGOING_LEN_MAX: usize = 64;
/// Asks that are being answered; beyond it the client is not read.
const ANSWERING_LEN_MAX: usize = 16 * 1024;
/// Replies of one message.
const REPLIES_LEN_MAX: usize = 256;
/// A message is closed once its outputs are this large, so that it stays far below what a client accepts.
const REPLIES_BYTES_MAX: usize = 1024 * 1024;

/// What the client reads.
pub struct Outgoing {
    messages: mpsc::Receiver<Result<v1::ConverseResponse, Status>>,
}

impl Stream for Outgoing {
    type Item = Result<v1::ConverseResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.messages.poll_recv(cx)
    }
}

/// Begins to serve a conversation.
pub fn open(services: Services, incoming: Streaming<v1::ConverseRequest>) -> Outgoing {
    let (out, messages) = mpsc::channel(OUTGOING_LEN_MAX);
    tokio::spawn(async move {
        if let Err(status) = serve(&services, incoming, &out).await {
            debug!(%status, "conversation ended");
            // The client may be gone; then nobody needs the reason.
            let _ = out.send(Err(status)).await;
        }
    });
    Outgoing { messages }
}

type Answer = BoxFuture<'static, Vec<v1::Reply>>;

#[derive(Default)]
struct Conversation {
    answering: FuturesUnordered<Answer>,
    /// Waits that can be given up.
    waits: HashMap<u64, AbortHandle>,
}

async fn serve(
    services: &Services,
    mut incoming: Streaming<v1::ConverseRequest>,
    out: &mpsc::Sender<Result<v1::ConverseResponse, Status>>,
) -> Result<(), Status> {
    let mut conversation = Conversation::default();
    loop {
        tokio::select! {
            biased;
            () = services.stop.cancelled() => {
                return Err(Status::unavailable("the server is stopping; ask again"));
            }
            Some(replies) = conversation.answering.next() => {
                let message = conversation.gather(replies);
                if out.send(Ok(message)).await.is_err() {
                    return Ok(());
                }
            }
            message = incoming.next(), if conversation.answering.len() < ANSWERING_LEN_MAX => {
                let Some(message) = message.transpose().map_err(clearer)? else { return Ok(()) };
                conversation.hear(services, message.asks)?;
            }
        }
    }
}

impl Conversation {
    fn hear(&mut self, services: &Services, asks: Vec<v1::Ask>) -> Result<(), Status> {
        let engine = &services.engine;
        let (mut calls, mut starts) = (Vec::new(), Vec::new());
        for v1::Ask { seq, body } in asks {
            match body {
                Some(Asked::Start(start)) => {
                    let call = services.tracer.called("StartWorkflow", &MetadataMap::new());
                    starts.push((start, call.traceparent()));
                    calls.push((seq, call));
                }
                Some(Asked::Wait(wait)) => self.wait(engine.clone(), seq, wait),
                Some(Asked::Forget(_)) => {
                    if let Some(wait) = self.waits.remove(&seq) {
                        wait.abort();
                    }
                }
                None => return Err(Status::invalid_argument(format!("ask {seq} asks nothing"))),
            }
        }
        if !starts.is_empty() {
            let engine = engine.clone();
            self.answering.push(
                async move {
                    match start_workflows::start_each(&engine, starts).await {
                        Ok(answers) => calls.into_iter().zip(answers).map(answered).collect(),
                        Err(status) => {
                            calls.into_iter().map(|call| answered((call, Err(status.clone())))).collect()
                        }
                    }
                }
                .boxed(),
            );
        }
        Ok(())
    }

    fn wait(&mut self, engine: Engine, seq: u64, request: v1::WaitWorkflowRunRequest) {
        let (handle, registration) = AbortHandle::new_pair();
        self.waits.insert(seq, handle);
        let waited = async move { wait_workflow_run::handle(&engine, request).await };
        let waited = Abortable::new(waited, registration);
        self.answering.push(
            async move {
                // Given up: nobody wants a reply.
                let Ok(answer) = waited.await else { return Vec::new() };
                vec![reply(seq, answer, Said::Waited)]
            }
            .boxed(),
        );
    }

    /// One message of everything that is answered already.
    fn gather(&mut self, mut replies: Vec<v1::Reply>) -> v1::ConverseResponse {
        let mut bytes: usize = replies.iter().map(output_len).sum();
        while replies.len() < REPLIES_LEN_MAX && bytes < REPLIES_BYTES_MAX {
            let Some(Some(more)) = self.answering.next().now_or_never() else { break };
            bytes += more.iter().map(output_len).sum::<usize>();
            replies.extend(more);
        }
        for reply in &replies {
            self.waits.remove(&reply.seq);
        }
        v1::ConverseResponse { replies }
    }
}

fn answered(((seq, call), answer): ((u64, Call), Result<v1::StartWorkflowResponse, Status>)) -> v1::Reply {
    call.answered(answer.as_ref().map(|started| started.run_id.as_str()));
    reply(seq, answer, Said::Started)
}

fn reply<T>(seq: u64, answer: Result<T, Status>, say: impl FnOnce(T) -> Said) -> v1::Reply {
    let body = match answer {
        Ok(answer) => say(answer),
        Err(status) => Said::Refused(v1::CallRefused {
            code: status.code() as i32,
            message: status.message().to_owned(),
        }),
    };
    v1::Reply { seq, body: Some(body) }
}

fn output_len(reply: &v1::Reply) -> usize {
    let Some(Said::Waited(waited)) = &reply.body else { return 0 };
    let output = waited.workflow_run.as_ref().and_then(|run| run.output.as_ref());
    output.map_or(0, |output| output.data.len())
}
