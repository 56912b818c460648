//! The Work stream: one task per connected worker. Runs go down, reports come up, acknowledgements go back in
//! batches, each only after its commit.

mod report;
mod welcome;

use std::{pin::Pin, task};

use futures_util::{
    StreamExt,
    future::BoxFuture,
    stream::{FuturesUnordered, Stream},
};
use kagzi_engine::{Assigned, Delivery, EngineError, Next, RunningStep, Session, SessionEvent};
use kagzi_model::{Name, WorkerStatus, limits::WAIT_MS_MAX};
use kagzi_proto::v1::{self, server_message::Message as Down, worker_message::Message as Up};
use kagzi_store::{Assignment, LostLease};
use prost::Message as _;
use tokio::sync::mpsc;
use tonic::{Status, Streaming};
use tracing::{debug, info};

use crate::{
    check, handler_input, message_limit::clearer, rpc::worker_heartbeat::lost, services::Services,
    status::from_engine, wire,
};

/// Messages that wait to be written. A worker that does not read stops being read.
const OUTGOING_LEN_MAX: usize = 256;
/// Reports that are handed to the store together.
const CHUNK_LEN_MAX: usize = 256;
/// A journal page is closed once it is this large.
const PAGE_BYTES: usize = 1024 * 1024;

/// How much later than the worker the server ends a step.
const TIMEOUT_SLACK_MS: i64 = 1_000;

/// What the worker reads.
pub struct Outgoing {
    messages: mpsc::Receiver<Result<v1::ServerMessage, Status>>,
}

impl Stream for Outgoing {
    type Item = Result<v1::ServerMessage, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> task::Poll<Option<Self::Item>> {
        self.messages.poll_recv(cx)
    }
}

/// Begins to serve a stream.
pub fn open(services: Services, incoming: Streaming<v1::WorkerMessage>) -> Outgoing {
    let (out, messages) = mpsc::channel(OUTGOING_LEN_MAX);
    tokio::spawn(async move {
        if let Err(status) = serve(&services, incoming, &out).await {
            debug!(%status, "worker stream ended");
            // The worker may be gone; then nobody needs the reason.
            let _ = out.send(Err(status)).await;
        }
    });
    Outgoing { messages }
}

type Answers = BoxFuture<'static, v1::Ack>;
type Loading = BoxFuture<'static, Result<Assigned, EngineError>>;

/// One worker's stream.
struct Stage<'a> {
    services: &'a Services,
    out: &'a mpsc::Sender<Result<v1::ServerMessage, Status>>,
    namespace: Name,
    session: Session,
    /// Reports on their way through the store.
    committing: FuturesUnordered<Answers>,
    /// Runs whose journal is being read.
    loading: FuturesUnordered<Loading>,
    drain_ordered: bool,
}

async fn serve(
    services: &Services,
    mut incoming: Streaming<v1::WorkerMessage>,
    out: &mpsc::Sender<Result<v1::ServerMessage, Status>>,
) -> Result<(), Status> {
    let first = incoming.next().await.transpose().map_err(clearer)?.and_then(|message| message.message);
    let Some(Up::Hello(hello)) = first else {
        return Err(Status::invalid_argument("the first message must be a Hello"));
    };
    let (welcome, namespace, session) = welcome::greet(services, *hello).await?;
    info!(worker = %session.worker, "worker connected");
    send(out, Down::Welcome(welcome)).await?;
    let mut stage = Stage {
        services,
        out,
        namespace,
        session,
        committing: FuturesUnordered::new(),
        loading: FuturesUnordered::new(),
        drain_ordered: false,
    };
    let mut incoming = incoming.ready_chunks(CHUNK_LEN_MAX);
    loop {
        tokio::select! {
            biased;
            () = services.stop.cancelled() => {
                stage.session.say_farewell();
                return Err(Status::unavailable("the server is stopping; connect again"));
            }
            Some(ack) = stage.committing.next() => stage.acknowledge(ack).await?,
            Some(loaded) = stage.loading.next() => stage.assign(loaded.map_err(from_engine)?).await?,
            chunk = incoming.next() => match chunk {
                Some(chunk) => {
                    if stage.hear(chunk).await? == Heard::Goodbye {
                        return stage.say_goodbye().await;
                    }
                }
                None => return Ok(()),
            },
            next = stage.session.next() => match next {
                Next::Assigned(runs) => {
                    for run in runs {
                        stage.load(run).await?;
                    }
                }
                Next::Event(SessionEvent::Lost(lost)) => stage.tell_lost(lost).await?,
                Next::Event(SessionEvent::Drain) => stage.order_drain("an operator asked for it").await?,
                Next::Event(SessionEvent::Replaced) => {
                    return Err(Status::aborted("the worker opened another stream"));
                }
            },
        }
    }
}

#[derive(PartialEq, Eq)]
enum Heard {
    More,
    Goodbye,
}

impl Stage<'_> {
    /// Takes a chunk of messages; the reports among them share a commit.
    async fn hear(&mut self, chunk: Vec<Result<v1::WorkerMessage, Status>>) -> Result<Heard, Status> {
        let mut reports = Vec::new();
        let mut goodbye = false;
        for message in chunk {
            match message.map_err(clearer)?.message {
                Some(Up::Report(report)) => reports.push(report),
                Some(Up::StepStarted(started)) => self.note_step(*started)?,
                Some(Up::Heartbeat(heartbeat)) => self.beat(heartbeat).await?,
                Some(Up::Draining(_)) => {
                    let engine = &self.services.engine;
                    engine.drain(self.session.worker).await.map_err(from_engine)?;
                    self.session.stop_assigning().await.map_err(from_engine)?;
                }
                Some(Up::Goodbye(_)) => goodbye = true,
                Some(Up::Hello(_)) => return Err(Status::invalid_argument("a Hello comes once, first")),
                None => return Err(Status::invalid_argument("an empty message")),
            }
        }
        if !reports.is_empty() {
            let engine = self.services.engine.clone();
            let namespace = self.namespace.clone();
            self.committing.push(Box::pin(report::commit(engine, namespace, reports)));
        }
        Ok(if goodbye { Heard::Goodbye } else { Heard::More })
    }

    fn note_step(&self, started: v1::StepStarted) -> Result<(), Status> {
        let lease = check::lease_ref(&self.namespace, started.lease.as_ref())?;
        let named = started.step.unwrap_or_default();
        let step = check::step(&named.path, named.position)?;
        let engine = &self.services.engine;
        let now = engine.clock().now();
        engine.step_started(
            lease.run,
            RunningStep {
                path: step.path,
                position: step.position,
                attempt: started.attempt,
                since: now.plus_ms(-started.elapsed_ms.clamp(0, WAIT_MS_MAX)),
                told_at: now,
                epoch: lease.epoch,
                namespace: lease.namespace,
                // The worker's own timeout comes first; ours is for a worker that hangs.
                timeout_ms: (started.timeout_ms > 0)
                    .then(|| started.timeout_ms.saturating_add(TIMEOUT_SLACK_MS)),
                // A senseless policy is refused with the failure it is for; a mere notice must not end the stream.
                policy: check::retry_policy(started.retry_policy).unwrap_or_default(),
            },
        );
        Ok(())
    }

    async fn beat(&mut self, heartbeat: v1::Heartbeat) -> Result<(), Status> {
        let runs = heartbeat
            .runs
            .iter()
            .map(|run| check::lease_ref(&self.namespace, Some(run)))
            .collect::<Result<Vec<_>, _>>()?;
        let engine = &self.services.engine;
        let answer = match engine.beat(self.session.worker, runs, Delivery::Ordered).await {
            Ok(answer) => answer,
            // The store is away for a moment: the worker's next heartbeat will do.
            Err(EngineError::Store(error)) => {
                debug!(%error, "heartbeat not recorded");
                return Ok(());
            }
            Err(error) => return Err(from_engine(error)),
        };
        for (lease, why) in &answer.lost {
            send(self.out, Down::LostLease(lost(lease, why))).await?;
        }
        if answer.status == WorkerStatus::Draining {
            self.order_drain("the worker is draining").await?;
        }
        Ok(())
    }

    async fn order_drain(&mut self, reason: &str) -> Result<(), Status> {
        if !std::mem::replace(&mut self.drain_ordered, true) {
            send(self.out, Down::Drain(v1::DrainOrder { reason: reason.into() })).await?;
        }
        Ok(())
    }

    async fn tell_lost(&mut self, lost: LostLease) -> Result<(), Status> {
        let (namespace, worker) = (&self.namespace, self.session.worker);
        info!(%namespace, run = %lost.run, %worker, epoch = lost.epoch, why = %lost.why, "lease taken away");
        let lease = v1::LeaseRef { run_id: lost.run.to_string(), epoch: lost.epoch };
        let message = v1::LostLease { lease: Some(lease), reason: lost.why, cancelled: lost.cancelled };
        send(self.out, Down::LostLease(message)).await
    }

    /// Sends the acknowledgement, together with all others that are ready.
    async fn acknowledge(&mut self, mut ack: v1::Ack) -> Result<(), Status> {
        while let Some(Some(more)) = futures_util::FutureExt::now_or_never(self.committing.next()) {
            ack.committed.extend(more.committed);
            ack.answers.extend(more.answers);
        }
        send(self.out, Down::Ack(ack)).await
    }

    async fn load(&mut self, assignment: Assignment) -> Result<(), Status> {
        if let Assignment { run, input: Some(input), fresh: true } = assignment {
            return self.assign(Assigned { run, input, journal: Vec::new() }).await;
        }
        let engine = self.services.engine.clone();
        self.loading.push(Box::pin(async move { Assigned::load(&engine, assignment).await }));
        Ok(())
    }

    async fn assign(&mut self, assigned: Assigned) -> Result<(), Status> {
        let engine = &self.services.engine;
        let Assigned { run, journal, input } = assigned;
        let input = handler_input::of(engine, &run, input).await?;
        let now = engine.clock().now();
        let entries = journal.into_iter().map(|entry| wire::journal_entry(entry, now));
        let mut pages = pages(entries).into_iter().peekable();
        let first = pages.next().unwrap_or_default();
        let lease = v1::LeaseRef { run_id: run.id.to_string(), epoch: run.epoch };
        let standard = i64::try_from(engine.settings().start_to_close.as_millis()).unwrap_or(i64::MAX);
        let trace = self.services.tracer.leased(&run);
        let assign = v1::Assign {
            lease: Some(lease.clone()),
            workflow_type: run.workflow_type.to_string(),
            business_id: run.business_id.to_string(),
            namespace_id: run.namespace.to_string(),
            input: Some(wire::payload(input)),
            journal: first,
            journal_continues: pages.peek().is_some(),
            attempts: run.attempts,
            start_to_close_timeout_ms: run.options.timeouts.start_to_close_ms.unwrap_or(standard),
            step_concurrency_max: engine.settings().step_concurrency_max,
            traceparent: trace.traceparent,
            former_traceparent: trace.former,
            tracestate: trace.tracestate,
            schedule_id: run.schedule().map(|id| id.to_string()).unwrap_or_default(),
            scheduled_at: run.options.scheduled.as_ref().map(|by| wire::timestamp(by.at)),
        };
        send(self.out, Down::Assign(Box::new(assign))).await?;
        while let Some(page) = pages.next() {
            let journal_continues = pages.peek().is_some();
            let page = v1::JournalPage { lease: Some(lease.clone()), journal: page, journal_continues };
            send(self.out, Down::JournalPage(page)).await?;
        }
        Ok(())
    }

    /// The worker is done: answer what is left, then take it out of the registry.
    async fn say_goodbye(mut self) -> Result<(), Status> {
        while let Some(ack) = self.committing.next().await {
            send(self.out, Down::Ack(ack)).await?;
        }
        let worker = self.session.worker;
        self.session.say_farewell();
        self.session.stop_assigning().await.map_err(from_engine)?;
        let released = self.services.engine.deregister(worker).await.map_err(from_engine)?;
        info!(%worker, released, "worker left");
        Ok(())
    }
}

/// Cuts a journal into pages, so that no message grows with the length of a history.
fn pages(journal: impl Iterator<Item = v1::JournalEntry>) -> Vec<Vec<v1::JournalEntry>> {
    let mut pages = vec![Vec::new()];
    let mut bytes = 0;
    for entry in journal {
        let size = 8 + entry.encoded_len();
        if bytes + size > PAGE_BYTES && bytes > 0 {
            pages.push(Vec::new());
            bytes = 0;
        }
        bytes += size;
        pages.last_mut().expect("there is always a page").push(entry);
    }
    pages
}

async fn send(out: &mpsc::Sender<Result<v1::ServerMessage, Status>>, message: Down) -> Result<(), Status> {
    let message = v1::ServerMessage { message: Some(message) };
    out.send(Ok(message)).await.map_err(|_| Status::cancelled("the worker is gone"))
}
