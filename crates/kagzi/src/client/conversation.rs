//! Starts, waits and signals over one stream to one server. Every answer is what the unary call would have
//! answered, so callers need not know; when the stream breaks, whoever waits hears of it and the next ask
//! opens another.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures_util::Stream;
use kagzi_proto::refusal;
use kagzi_proto::v1::{self, ask::Body as Asked, reply::Body as Said};
use parking_lot::Mutex;
use prost::Message;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

use crate::client::wire::{Rpc, Wire, Workflows};
use crate::limits;

/// What is asked of one server.
pub(crate) struct Conversation {
    wire: Wire,
    open: Mutex<Option<Arc<Open>>>,
    next_seq: AtomicU64,
}

struct Open {
    asks: mpsc::Sender<v1::Ask>,
    waiting: Arc<Waiting>,
}

/// Who waits for which answer.
type Replies = HashMap<u64, oneshot::Sender<Result<Said, Status>>>;

/// Who waits for which number; none once the stream is broken.
struct Waiting {
    replies: Mutex<Option<Replies>>,
}

impl Conversation {
    pub(crate) fn on(wire: Wire) -> Conversation {
        Conversation { wire, open: Mutex::default(), next_seq: AtomicU64::default() }
    }

    pub(crate) async fn start(
        &self,
        request: Box<v1::StartWorkflowRequest>,
    ) -> Result<v1::StartWorkflowResponse, Status> {
        match self.ask(Asked::Start(request)).await? {
            Said::Started(started) => Ok(started),
            Said::Waited(_) | Said::Signalled(_) | Said::Refused(_) => Err(nonsense()),
        }
    }

    pub(crate) async fn wait(
        &self,
        request: v1::WaitWorkflowRunRequest,
    ) -> Result<v1::WaitWorkflowRunResponse, Status> {
        match self.ask(Asked::Wait(request)).await? {
            Said::Waited(waited) => Ok(waited),
            Said::Started(_) | Said::Signalled(_) | Said::Refused(_) => Err(nonsense()),
        }
    }

    pub(crate) async fn signal(
        &self,
        request: Box<v1::SignalWorkflowRunRequest>,
    ) -> Result<v1::SignalWorkflowRunResponse, Status> {
        match self.ask(Asked::Signal(request)).await? {
            Said::Signalled(signalled) => Ok(signalled),
            Said::Started(_) | Said::Waited(_) | Said::Refused(_) => Err(nonsense()),
        }
    }

    async fn ask(&self, body: Asked) -> Result<Said, Status> {
        let seq = self.next_seq.fetch_add(1, Ordering::Relaxed);
        let (reply, heard) = oneshot::channel();
        let open = self.enlist(seq, reply);
        let mut interest = Interest { open: &open, seq, answered: false };
        if open.asks.send(v1::Ask { seq, body: Some(body) }).await.is_err() {
            return Err(broken());
        }
        let said = heard.await.unwrap_or_else(|_| Err(broken()));
        interest.answered = true;
        match said? {
            Said::Refused(refused) => Err(refusal::from_rpc(refused)),
            said @ (Said::Started(_) | Said::Waited(_) | Said::Signalled(_)) => Ok(said),
        }
    }

    /// Waits on the open stream, or on a new one.
    fn enlist(&self, seq: u64, reply: oneshot::Sender<Result<Said, Status>>) -> Arc<Open> {
        let mut slot = self.open.lock();
        if let Some(open) = &*slot
            && let Some(replies) = &mut *open.waiting.replies.lock()
        {
            replies.insert(seq, reply);
            return Arc::clone(open);
        }
        let (asks, messages) = mpsc::channel(limits::ASKS_LEN_MAX);
        let replies = Mutex::new(Some(HashMap::from([(seq, reply)])));
        let open = Arc::new(Open { asks, waiting: Arc::new(Waiting { replies }) });
        tokio::spawn(listen(self.wire.clone(), Batches { messages, asks: Vec::new() }, open.waiting.clone()));
        *slot = Some(Arc::clone(&open));
        open
    }
}

/// The caller's interest in an answer. One that goes away before the answer tells the server.
struct Interest<'a> {
    open: &'a Open,
    seq: u64,
    answered: bool,
}

impl Drop for Interest<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        if let Some(replies) = &mut *self.open.waiting.replies.lock() {
            replies.remove(&self.seq);
        }
        let forget = v1::Ask { seq: self.seq, body: Some(Asked::Forget(true)) };
        // Not worth waiting for: the server's wait ends by itself within a minute.
        let _ = self.open.asks.try_send(forget);
    }
}

/// Reads replies until the stream breaks. Ends by itself when nobody can ask any more.
async fn listen(wire: Wire, asks: Batches, waiting: Arc<Waiting>) {
    let mut client = Workflows::from(Rpc(wire));
    let why = match client.converse(asks).await {
        Ok(answer) => {
            let mut answers = answer.into_inner();
            loop {
                match answers.message().await {
                    Ok(Some(message)) => waiting.settle(message.replies),
                    Ok(None) => break broken(),
                    // Whatever the transport calls it: the same ask may succeed a moment later, or elsewhere.
                    Err(status) => break Status::unavailable(format!("{BROKEN}: {}", status.message())),
                }
            }
        }
        Err(status) => status,
    };
    let left = waiting.replies.lock().take().unwrap_or_default();
    for reply in left.into_values() {
        // A caller that is gone needs no answer.
        let _ = reply.send(Err(why.clone()));
    }
}

impl Waiting {
    fn settle(&self, replies: Vec<v1::Reply>) {
        let mut waiting = self.replies.lock();
        let Some(waiting) = &mut *waiting else { return };
        for v1::Reply { seq, body } in replies {
            if let (Some(reply), Some(said)) = (waiting.remove(&seq), body) {
                // A caller that is gone needs no answer.
                let _ = reply.send(Ok(said));
            }
        }
    }
}

/// Asks as messages: whatever waits goes together, in messages that every server accepts.
struct Batches {
    messages: mpsc::Receiver<v1::Ask>,
    /// Of the next message. It has at most one ask more than it may hold.
    asks: Vec<v1::Ask>,
}

impl Stream for Batches {
    type Item = v1::ConverseRequest;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Batches { messages, asks } = &mut *self;
        let mut bytes: usize = asks.iter().map(Message::encoded_len).sum();
        loop {
            match messages.poll_recv(cx) {
                Poll::Ready(Some(ask)) => {
                    bytes += ask.encoded_len();
                    if bytes > limits::ASK_BATCH_BYTES_MAX && !asks.is_empty() {
                        let asks = std::mem::replace(asks, vec![ask]);
                        return Poll::Ready(Some(v1::ConverseRequest { asks }));
                    }
                    asks.push(ask);
                }
                Poll::Ready(None) if asks.is_empty() => return Poll::Ready(None),
                Poll::Pending if asks.is_empty() => return Poll::Pending,
                Poll::Ready(None) | Poll::Pending => {
                    return Poll::Ready(Some(v1::ConverseRequest { asks: std::mem::take(asks) }));
                }
            }
        }
    }
}

const BROKEN: &str = "the connection was lost";

fn broken() -> Status {
    Status::unavailable(BROKEN)
}

fn nonsense() -> Status {
    Status::internal("the server answered another question")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> (Open, mpsc::Receiver<v1::Ask>) {
        let (asks, messages) = mpsc::channel(8);
        let replies = Mutex::new(Some(HashMap::new()));
        (Open { asks, waiting: Arc::new(Waiting { replies }) }, messages)
    }

    #[tokio::test]
    async fn a_caller_that_leaves_before_its_answer_takes_the_question_back() {
        let (open, mut messages) = open();
        let (reply, _heard) = oneshot::channel();
        open.waiting.replies.lock().as_mut().unwrap().insert(7, reply);

        drop(Interest { open: &open, seq: 7, answered: false });
        drop(Interest { open: &open, seq: 8, answered: true });

        let told = messages.try_recv().unwrap();
        assert_eq!((told.seq, told.body), (7, Some(Asked::Forget(true))));
        assert!(messages.try_recv().is_err(), "an answered question was taken back");
        assert!(open.waiting.replies.lock().as_ref().unwrap().is_empty());
    }

    #[tokio::test]
    async fn what_is_asked_together_goes_together_in_messages_that_every_server_takes() {
        let (open, messages) = open();
        let wait = |seq| {
            let wait = v1::WaitWorkflowRunRequest {
                run_id: "r".repeat(limits::ASK_BYTES_MAX - 100),
                ..Default::default()
            };
            v1::Ask { seq, body: Some(Asked::Wait(wait)) }
        };
        for seq in 0..5 {
            open.asks.send(wait(seq)).await.unwrap();
        }
        drop(open);

        let batches: Vec<_> = futures_util::StreamExt::collect(Batches { messages, asks: Vec::new() }).await;

        let seqs: Vec<Vec<u64>> = batches
            .iter()
            .map(|batch: &v1::ConverseRequest| batch.asks.iter().map(|ask| ask.seq).collect())
            .collect();
        assert_eq!(seqs, [vec![0, 1], vec![2, 3], vec![4]]);
        assert!(batches.iter().all(|batch| batch.encoded_len() <= limits::ASK_BATCH_BYTES_MAX + 64));
    }
}
