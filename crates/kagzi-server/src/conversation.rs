//! Starts, waits and signals over one stream. A unary call costs about 50 us of processor time on both sides
//! together (38,000 a second on 2 cores), a message on an open stream a twentieth of it; and the starts of
//! one message share a commit, as do its signals.
//!
//! Everything that a client can make the server hold is bounded, in numbers and in bytes: asks that are being
//! answered, inputs that are not committed, results that are not read. Beyond a bound the client is not read
//! any further.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    vec,
};

use futures_util::{
    FutureExt, StreamExt,
    future::{AbortHandle, Abortable, BoxFuture},
    stream::{FuturesUnordered, Stream},
};
use kagzi_engine::Engine;
use kagzi_model::Name;
use kagzi_proto::{
    Reason, refusal,
    v1::{self, ask::Body as Asked, reply::Body as Said},
};
use prost::Message;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tonic::{Status, Streaming, metadata::MetadataMap};
use tracing::debug;

use crate::{
    message_limit::clearer,
    rpc::{signal_workflow_run, start_workflows, start_workflows::STARTS_MAX, wait_workflow_run},
    services::Services,
    trace::Call,
};

/// Messages that wait to be written. A client that does not read stops being read.
const OUTGOING_LEN_MAX: usize = 64;
/// Asks that are being answered; beyond it the client is not read.
const ANSWERING_LEN_MAX: usize = 16 * 1024;
/// Bytes of starts and signals that are being answered; beyond it the client is not read. One more may be
/// taken.
const ASKED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Replies of one message.
const REPLIES_LEN_MAX: usize = 256;
/// A message is closed once its outputs are this large, so that it stays far below what a client accepts.
const REPLIES_BYTES_MAX: usize = 1024 * 1024;
/// Results that were read and that the client has not taken yet, as multiples of the largest one.
const UNTAKEN_LARGEST: usize = 4;

/// What the client reads.
pub struct Outgoing {
    messages: mpsc::Receiver<Parcel>,
}

/// A message and the room that it takes until the transport asks for it.
struct Parcel {
    message: Result<v1::ConverseResponse, Status>,
    _room: Vec<OwnedSemaphorePermit>,
}

impl Stream for Outgoing {
    type Item = Result<v1::ConverseResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.messages.poll_recv(cx).map(|parcel| parcel.map(|parcel| parcel.message))
    }
}

/// Begins to serve a conversation.
pub fn open(services: Services, incoming: Streaming<v1::ConverseRequest>) -> Outgoing {
    let (out, messages) = mpsc::channel(OUTGOING_LEN_MAX);
    tokio::spawn(async move {
        if let Err(status) = serve(&services, incoming, &out).await {
            debug!(%status, "conversation ended");
            // The client may be gone; then nobody needs the reason.
            let _ = out.send(Parcel { message: Err(status), _room: Vec::new() }).await;
        }
    });
    Outgoing { messages }
}

/// Replies, and what they take of the bounds.
struct Answered {
    replies: Vec<v1::Reply>,
    /// Of results that were read.
    room: Option<OwnedSemaphorePermit>,
    asks: usize,
    bytes: usize,
}

type Answer = BoxFuture<'static, Answered>;

/// A start and the trace that it belongs to.
type Start = (Box<v1::StartWorkflowRequest>, Option<Name>);

/// Of what one portion asks for.
#[derive(Default)]
struct Bytes {
    starts: usize,
    signals: usize,
}

struct Conversation {
    answering: FuturesUnordered<Answer>,
    /// Waits that can be given up.
    waits: HashMap<u64, AbortHandle>,
    /// Asks of the last message that nobody has looked at yet.
    unheard: vec::IntoIter<v1::Ask>,
    /// Asks that are being answered, and bytes of the starts and signals among them.
    asks: usize,
    bytes: usize,
    untaken: Arc<Semaphore>,
    result_bytes_max: u32,
}

async fn serve(
    services: &Services,
    mut incoming: Streaming<v1::ConverseRequest>,
    out: &mpsc::Sender<Parcel>,
) -> Result<(), Status> {
    let mut conversation = Conversation::new(&services.engine);
    loop {
        conversation.hear(services)?;
        tokio::select! {
            biased;
            () = services.stop.cancelled() => {
                return Err(Reason::ServerStopping.status("the server is stopping; ask again"));
            }
            Some(answered) = conversation.answering.next() => {
                let parcel = conversation.gather(answered);
                if out.send(parcel).await.is_err() {
                    return Ok(());
                }
            }
            message = incoming.next(), if conversation.has_room() => {
                let Some(message) = message.transpose().map_err(clearer)? else { return Ok(()) };
                conversation.unheard = message.asks.into_iter();
            }
        }
    }
}

impl Conversation {
    fn new(engine: &Engine) -> Conversation {
        // An input and an output, both as large as they may be.
        let largest = 2 * engine.settings().payload_max_bytes;
        Conversation {
            answering: FuturesUnordered::new(),
            waits: HashMap::new(),
            unheard: Vec::new().into_iter(),
            asks: 0,
            bytes: 0,
            untaken: Arc::new(Semaphore::new(UNTAKEN_LARGEST * largest)),
            result_bytes_max: u32::try_from(largest).unwrap_or(u32::MAX),
        }
    }

    /// Everything that was said is being answered, and more may be said.
    fn has_room(&self) -> bool {
        self.unheard.len() == 0 && self.asks < ANSWERING_LEN_MAX && self.bytes < ASKED_BYTES_MAX
    }

    /// Takes on as many asks of the last message as the bounds allow. A message may hold any number of them,
    /// so its starts and signals are committed in portions: one transaction of all would hold up everybody.
    fn hear(&mut self, services: &Services) -> Result<(), Status> {
        while self.unheard.len() > 0 && self.asks < ANSWERING_LEN_MAX && self.bytes < ASKED_BYTES_MAX {
            self.hear_some(services)?;
        }
        Ok(())
    }

    fn hear_some(&mut self, services: &Services) -> Result<(), Status> {
        let engine = &services.engine;
        let (mut calls, mut starts, mut signals) = (Vec::new(), Vec::new(), Vec::new());
        let mut bytes = Bytes::default();
        while starts.len() < STARTS_MAX
            && signals.len() < STARTS_MAX
            && self.asks + starts.len() + signals.len() < ANSWERING_LEN_MAX
            && self.bytes + bytes.starts + bytes.signals < ASKED_BYTES_MAX
        {
            let Some(v1::Ask { seq, body }) = self.unheard.next() else { break };
            match body {
                Some(Asked::Start(start)) => {
                    let call = services.tracer.called("StartWorkflow", &MetadataMap::new());
                    bytes.starts += start.encoded_len();
                    starts.push((start, call.traceparent()));
                    calls.push((seq, call));
                }
                Some(Asked::Wait(wait)) => self.wait(engine.clone(), seq, wait),
                // It is looked up before it is told, and nobody else waits for that.
                Some(Asked::Signal(signal)) if signal_workflow_run::is_looked_up(&signal) => {
                    let bytes = signal.encoded_len();
                    self.signal(engine.clone(), vec![(seq, signal)], bytes);
                }
                Some(Asked::Signal(signal)) => {
                    bytes.signals += signal.encoded_len();
                    signals.push((seq, signal));
                }
                Some(Asked::Forget(_)) => {
                    if let Some(wait) = self.waits.remove(&seq) {
                        wait.abort();
                    }
                }
                None => {
                    let said = format!("ask {seq} asks nothing");
                    return Err(Reason::MessageInvalid.status(said));
                }
            }
        }
        if !starts.is_empty() {
            self.start(engine.clone(), starts, calls, bytes.starts);
        }
        if !signals.is_empty() {
            self.signal(engine.clone(), signals, bytes.signals);
        }
        Ok(())
    }

    fn start(&mut self, engine: Engine, starts: Vec<Start>, calls: Vec<(u64, Call)>, bytes: usize) {
        let asks = starts.len();
        self.asks += asks;
        self.bytes += bytes;
        self.answering.push(
            async move {
                let replies = match start_workflows::start_each(&engine, starts).await {
                    Ok(answers) => calls.into_iter().zip(answers).map(answered).collect(),
                    Err(status) => {
                        calls.into_iter().map(|call| answered((call, Err(status.clone())))).collect()
                    }
                };
                Answered { replies, room: None, asks, bytes }
            }
            .boxed(),
        );
    }

    /// Tells what was said together in one commit, in its order.
    fn signal(
        &mut self,
        engine: Engine,
        signals: Vec<(u64, Box<v1::SignalWorkflowRunRequest>)>,
        bytes: usize,
    ) {
        let asks = signals.len();
        self.asks += asks;
        self.bytes += bytes;
        self.answering.push(
            async move {
                let (seqs, signals): (Vec<u64>, Vec<_>) = signals.into_iter().unzip();
                let answers = signal_workflow_run::signal_each(&engine, signals).await;
                let answers = seqs.into_iter().zip(answers);
                let replies = answers.map(|(seq, answer)| reply(seq, answer, Said::Signalled)).collect();
                Answered { replies, room: None, asks, bytes }
            }
            .boxed(),
        );
    }

    fn wait(&mut self, engine: Engine, seq: u64, request: v1::WaitWorkflowRunRequest) {
        let (handle, registration) = AbortHandle::new_pair();
        self.waits.insert(seq, handle);
        self.asks += 1;
        let (untaken, largest) = (self.untaken.clone(), self.result_bytes_max);
        let waited =
            async move { wait_workflow_run::handle_within(&engine, request, untaken, largest).await };
        let waited = Abortable::new(waited, registration);
        self.answering.push(
            async move {
                let (replies, room) = match waited.await {
                    Ok((answer, room)) => (vec![reply(seq, answer, Said::Waited)], room),
                    // Given up: nobody wants a reply.
                    Err(_) => (Vec::new(), None),
                };
                Answered { replies, room, asks: 1, bytes: 0 }
            }
            .boxed(),
        );
    }

    /// One message of everything that is answered already.
    fn gather(&mut self, first: Answered) -> Parcel {
        let (mut replies, mut room, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut next = Some(first);
        while let Some(answered) = next.take() {
            self.asks -= answered.asks;
            self.bytes -= answered.bytes;
            bytes += answered.replies.iter().map(output_len).sum::<usize>();
            replies.extend(answered.replies);
            room.extend(answered.room);
            if replies.len() < REPLIES_LEN_MAX && bytes < REPLIES_BYTES_MAX {
                next = self.answering.next().now_or_never().flatten();
            }
        }
        for reply in &replies {
            self.waits.remove(&reply.seq);
        }
        Parcel { message: Ok(v1::ConverseResponse { replies }), _room: room }
    }
}

fn answered(((seq, call), answer): ((u64, Call), Result<v1::StartWorkflowResponse, Status>)) -> v1::Reply {
    call.answered(answer.as_ref().map(|started| started.run_id.as_str()));
    reply(seq, answer, Said::Started)
}

fn reply<T>(seq: u64, answer: Result<T, Status>, say: impl FnOnce(T) -> Said) -> v1::Reply {
    let body = match answer {
        Ok(answer) => say(answer),
        Err(status) => Said::Refused(refusal::to_rpc(&status)),
    };
    v1::Reply { seq, body: Some(body) }
}

fn output_len(reply: &v1::Reply) -> usize {
    let Some(Said::Waited(waited)) = &reply.body else { return 0 };
    let output = waited.workflow_run.as_ref().and_then(|run| run.output.as_ref());
    output.map_or(0, |output| output.data.len())
}
