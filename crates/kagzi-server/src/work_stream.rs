//! The Work stream: one task per connected worker. Runs go down, reports come up, acknowledgements go back in
//! batches, each only after its commit.
//!
//! Nothing here waits for the worker to read: what is to be written waits in a queue whose bytes are counted,
//! and while they are too many nothing is composed and nothing is leased. Too many answers, and nothing is
//! heard.

mod assign;
mod outgoing;
mod report;
mod unreached;
mod welcome;

use std::collections::VecDeque;

use futures_util::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use kagzi_engine::{Assigned, Delivery, EngineError, Next, RunningStep, Session, SessionEvent};
use kagzi_model::{LeaseRef, Name, WorkerStatus, limits::WAIT_MS_MAX};
use kagzi_proto::{
    Reason,
    v1::{self, server_message::Message as Down, worker_message::Message as Up},
};
use kagzi_store::{Assignment, LostLease, SignalNotice};
use tonic::{Status, Streaming};
use tracing::{debug, info};

use self::{assign::Loading, outgoing::Outbox, report::Committed, unreached::Unreached};
use crate::{
    check::{self, invalid},
    message_limit::clearer,
    rpc::worker_heartbeat::{RUNS_MAX, lost},
    services::Services,
    status::from_engine,
};

pub use outgoing::Outgoing;

/// Reports that are handed to the store together.
const CHUNK_LEN_MAX: usize = 256;
/// Reports on their way through the store. Beyond either the worker is not heard until some are answered.
const REPORTS_LEN_MAX: usize = 4_096;
const REPORTS_BYTES_MAX: usize = 16 * 1024 * 1024;
/// While so much waits to be read by the worker, no run is composed for it and none is leased to it.
const OUTGOING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Once it has read down to this, runs are leased to it again.
const OUTGOING_BYTES_LOW: usize = OUTGOING_BYTES_MAX / 2;
/// While answers and news of so many bytes wait, the worker is not heard either: what it says makes answers.
/// Runs do not count here. Whoever reads a large one slowly has to be heard meanwhile, or is taken for lost.
const ANSWERS_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Journals that are read at once for one worker.
const LOADING_LEN_MAX: usize = 16;
/// About what a message without payloads weighs in memory, and one number of an acknowledgement.
const NEWS_BYTES: usize = 256;
const ACK_BYTES: usize = 16;

/// How much later than the worker the server ends a step.
const TIMEOUT_SLACK_MS: i64 = 1_000;

/// Begins to serve a stream.
pub fn open(services: Services, incoming: Streaming<v1::WorkerMessage>) -> Outgoing {
    let (out, outgoing) = outgoing::channel();
    tokio::spawn(async move {
        let served = serve(&services, incoming, &out).await;
        if let Err(status) = &served {
            debug!(%status, "worker stream ended");
        }
        out.end(served.err());
    });
    outgoing
}

/// One worker's stream.
struct Stage<'a> {
    services: &'a Services,
    out: &'a Outbox,
    namespace: Name,
    session: Session,
    /// Reports on their way through the store, and how many and large they are.
    committing: FuturesUnordered<BoxFuture<'static, Committed>>,
    reports: usize,
    report_bytes: usize,
    /// Runs that wait until the worker has read what it was given before.
    waiting: VecDeque<Assignment>,
    /// Runs whose journal is being read.
    loading: FuturesUnordered<Loading>,
    /// Runs that could not be read and are being given back.
    returning: FuturesUnordered<BoxFuture<'static, LeaseRef>>,
    /// All leases of the three: the worker knows nothing of them.
    unreached: Unreached,
    drain_ordered: bool,
}

async fn serve(
    services: &Services,
    mut incoming: Streaming<v1::WorkerMessage>,
    out: &Outbox,
) -> Result<(), Status> {
    let first = incoming.next().await.transpose().map_err(clearer)?.and_then(|message| message.message);
    let Some(Up::Hello(hello)) = first else {
        return Err(Reason::MessageInvalid.status("the first message must be a Hello"));
    };
    let (welcome, namespace, session) = welcome::greet(services, *hello).await?;
    info!(worker = %session.worker, "worker connected");
    let mut stage = Stage {
        services,
        out,
        namespace,
        session,
        committing: FuturesUnordered::new(),
        reports: 0,
        report_bytes: 0,
        waiting: VecDeque::new(),
        loading: FuturesUnordered::new(),
        returning: FuturesUnordered::new(),
        unreached: Unreached::default(),
        drain_ordered: false,
    };
    out.send(Down::Welcome(welcome), NEWS_BYTES)?;
    let mut incoming = incoming.ready_chunks(CHUNK_LEN_MAX);
    loop {
        tokio::select! {
            biased;
            () = services.stop.cancelled() => {
                stage.session.say_farewell();
                return Err(Reason::ServerStopping.status("the server is stopping; connect again"));
            }
            Some(committed) = stage.committing.next() => stage.acknowledge(committed)?,
            Some((lease, loaded)) = stage.loading.next() => stage.hand_over(lease, loaded)?,
            Some(lease) = stage.returning.next() => {
                stage.unreached.remove(&lease);
            }
            chunk = incoming.next(), if stage.hears() => match chunk {
                Some(chunk) => {
                    if stage.hear(chunk).await? == Heard::Goodbye {
                        return stage.say_goodbye().await;
                    }
                }
                None => return Ok(()),
            },
            next = stage.session.next() => match next {
                Next::Assigned(runs) => stage.take_in(runs)?,
                Next::Event(SessionEvent::Lost(lost)) => stage.tell_lost(lost)?,
                Next::Event(SessionEvent::Signalled(notice)) => stage.tell_signalled(notice)?,
                Next::Event(SessionEvent::Drain) => stage.order_drain("an operator asked for it")?,
                Next::Event(SessionEvent::Replaced) => {
                    return Err(Reason::StreamReplaced.status("the worker opened another stream"));
                }
            },
            () = out.below(OUTGOING_BYTES_LOW), if stage.crowded() => {}
            status = out.gone() => return Err(status),
        }
        stage.keep_within_bounds().await?;
    }
}

#[derive(PartialEq, Eq)]
enum Heard {
    More,
    Goodbye,
}

impl Stage<'_> {
    /// Whether there is room for what the worker may say.
    fn hears(&self) -> bool {
        self.reports < REPORTS_LEN_MAX
            && self.report_bytes < REPORTS_BYTES_MAX
            && self.out.answer_bytes() < ANSWERS_BYTES_MAX
    }

    /// Whether the worker has to read before it is given more.
    fn crowded(&self) -> bool {
        self.session.is_paused() || self.out.bytes() >= OUTGOING_BYTES_MAX
    }

    /// Whether another run may be composed for it.
    fn has_room(&self) -> bool {
        self.out.bytes() < OUTGOING_BYTES_MAX && self.loading.len() < LOADING_LEN_MAX
    }

    /// Composes what the worker has room for, and stops leasing while it has none.
    async fn keep_within_bounds(&mut self) -> Result<(), Status> {
        while self.has_room()
            && let Some(assignment) = self.waiting.pop_front()
        {
            self.begin(assignment)?;
        }
        let bytes = self.out.bytes();
        if bytes >= OUTGOING_BYTES_MAX {
            self.session.pause_assigning().await.map_err(from_engine)?;
        } else if bytes < OUTGOING_BYTES_LOW && self.session.is_paused() && self.waiting.is_empty() {
            self.session.resume_assigning().await.map_err(from_engine)?;
        }
        Ok(())
    }

    /// Takes leased runs. Those that must wait leave their inputs behind: they can be read again.
    fn take_in(&mut self, runs: VecDeque<Assignment>) -> Result<(), Status> {
        for mut assignment in runs {
            if self.waiting.is_empty() && self.has_room() {
                self.begin(assignment)?;
            } else {
                assignment.input = None;
                let lease = assignment.lease();
                self.unreached.add(lease);
                self.waiting.push_back(assignment);
            }
        }
        Ok(())
    }

    fn begin(&mut self, assignment: Assignment) -> Result<(), Status> {
        match assign::at_hand(assignment) {
            Ok(assigned) => self.send_run(assigned),
            Err(assignment) => {
                let lease = assignment.lease();
                self.unreached.add(lease);
                self.loading.push(assign::load(self.services.engine.clone(), *assignment));
                Ok(())
            }
        }
    }

    fn hand_over(&mut self, lease: LeaseRef, loaded: Result<Assigned, Status>) -> Result<(), Status> {
        // Lost meanwhile: whoever has it now is told by somebody else.
        if !self.unreached.contains(&lease) {
            return Ok(());
        }
        match loaded {
            Ok(assigned) => self.send_run(assigned),
            Err(status) => {
                let engine = self.services.engine.clone();
                self.returning.push(Box::pin(assign::give_back(engine, lease, status)));
                Ok(())
            }
        }
    }

    fn send_run(&mut self, assigned: Assigned) -> Result<(), Status> {
        let run = &assigned.run;
        let lease = LeaseRef { namespace: run.namespace.clone(), run: run.id, epoch: run.epoch };
        self.unreached.remove(&lease);
        self.session.hold(&lease);
        self.out.send_run(lease, assign::compose(self.services, assigned))
    }

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
                Some(Up::Hello(_)) => {
                    return Err(Reason::MessageInvalid.status("a Hello comes once, first"));
                }
                None => return Err(Reason::MessageInvalid.status("an empty message")),
            }
        }
        if !reports.is_empty() {
            let engine = self.services.engine.clone();
            let bytes = reports.iter().map(report::bytes).sum();
            self.reports += reports.len();
            self.report_bytes += bytes;
            let committing = report::commit(engine, self.namespace.clone(), reports, bytes);
            self.committing.push(Box::pin(committing));
        }
        Ok(if goodbye { Heard::Goodbye } else { Heard::More })
    }

    /// Notes that a step began, if the run is this worker's: the notes of all workers share one memory.
    fn note_step(&self, started: v1::StepStarted) -> Result<(), Status> {
        let lease = check::lease_ref(&self.namespace, started.lease.as_ref())?;
        if !self.session.holds(&lease) {
            debug!(worker = %self.session.worker, run = %lease.run, "a step began under a lease that is not \
                known here");
            return Ok(());
        }
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
                // A senseless policy is refused with the failure it is for; a mere notice must not end the
                // stream.
                policy: check::retry_policy(started.retry_policy).unwrap_or_default(),
            },
        );
        Ok(())
    }

    async fn beat(&mut self, heartbeat: v1::Heartbeat) -> Result<(), Status> {
        let listed = heartbeat.runs.len();
        if listed > RUNS_MAX {
            return Err(invalid("runs", listed, format_args!("at most {RUNS_MAX} are allowed")));
        }
        let engine = &self.services.engine;
        if self.out.stalled_for() > engine.settings().lease * 2 {
            return Err(Reason::SlowReader.status("the worker does not read what it is sent; connect again"));
        }
        let mut runs = heartbeat
            .runs
            .iter()
            .map(|run| check::lease_ref(&self.namespace, Some(run)))
            .collect::<Result<Vec<_>, _>>()?;
        // What is still on its way to the worker it cannot list.
        runs.extend(self.unreached.all().cloned());
        runs.extend(self.out.undelivered());
        let answer = match engine.beat(self.session.worker, runs.clone(), Delivery::Ordered).await {
            Ok(answer) => answer,
            // The store is away for a moment: the worker's next heartbeat will do.
            Err(EngineError::Store(error)) => {
                debug!(%error, "heartbeat not recorded");
                return Ok(());
            }
            Err(error) => return Err(from_engine(error)),
        };
        runs.truncate(listed);
        runs.iter().for_each(|lease| self.session.hold(lease));
        for (lease, why) in &answer.lost {
            self.forget(lease);
            self.out.send(Down::LostLease(lost(lease, why)), NEWS_BYTES)?;
        }
        if answer.status == WorkerStatus::Draining {
            self.order_drain("the worker is draining")?;
        }
        Ok(())
    }

    /// The lease is lost: nothing of it is handed over or believed any more.
    fn forget(&mut self, lease: &LeaseRef) {
        self.session.let_go(lease.run, lease.epoch);
        if self.unreached.remove(lease) {
            self.waiting.retain(|waiting| waiting.run.id != lease.run);
        }
    }

    fn order_drain(&mut self, reason: &str) -> Result<(), Status> {
        if !std::mem::replace(&mut self.drain_ordered, true) {
            self.out.send(Down::Drain(v1::DrainOrder { reason: reason.into() }), NEWS_BYTES)?;
        }
        Ok(())
    }

    fn tell_signalled(&mut self, notice: SignalNotice) -> Result<(), Status> {
        let SignalNotice { run, epoch, channel, .. } = notice;
        let lease = Some(v1::LeaseRef { run_id: run.to_string(), epoch });
        let message = v1::SignalNotice { lease, channel: channel.to_string() };
        self.out.send(Down::SignalNotice(message), NEWS_BYTES)
    }

    fn tell_lost(&mut self, lost: LostLease) -> Result<(), Status> {
        let (namespace, worker) = (self.namespace.clone(), self.session.worker);
        info!(%namespace, run = %lost.run, %worker, epoch = lost.epoch, why = %lost.why, "lease taken away");
        self.forget(&LeaseRef { namespace, run: lost.run, epoch: lost.epoch });
        let lease = v1::LeaseRef { run_id: lost.run.to_string(), epoch: lost.epoch };
        let message = v1::LostLease { lease: Some(lease), reason: lost.why, cancelled: lost.cancelled };
        self.out.send(Down::LostLease(message), NEWS_BYTES)
    }

    /// Sends the acknowledgement, together with all others that are ready.
    fn acknowledge(&mut self, committed: Committed) -> Result<(), Status> {
        let mut ack = self.settle(committed);
        while let Some(Some(more)) = futures_util::FutureExt::now_or_never(self.committing.next()) {
            let more = self.settle(more);
            ack.committed.extend(more.committed);
            ack.answers.extend(more.answers);
        }
        let bytes = ack.committed.len() * ACK_BYTES + ack.answers.len() * NEWS_BYTES;
        self.out.send(Down::Ack(ack), bytes)
    }

    fn settle(&mut self, committed: Committed) -> v1::Ack {
        self.reports -= committed.reports;
        self.report_bytes -= committed.bytes;
        committed.ended.into_iter().for_each(|(run, epoch)| self.session.let_go(run, epoch));
        committed.ack
    }

    /// The worker is done: answer what is left, then take it out of the registry.
    async fn say_goodbye(mut self) -> Result<(), Status> {
        while let Some(committed) = self.committing.next().await {
            self.acknowledge(committed)?;
        }
        let worker = self.session.worker;
        self.session.say_farewell();
        self.session.stop_assigning().await.map_err(from_engine)?;
        let released = self.services.engine.deregister(worker).await.map_err(from_engine)?;
        info!(%worker, released, "worker left");
        Ok(())
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        let mut leases = self.unreached.take_all();
        leases.extend(self.out.take_undelivered());
        self.session.undeliverable(leases);
    }
}
