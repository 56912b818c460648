//! The owner of the stream: one task that hears the server, the runs, the clock and the signals, and
//! decides. Everything else only sends it messages, so nothing here needs a lock.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use kagzi_proto::v1::{self, report, worker_message};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::client::wire::Interceptors;
use crate::codec::Codecs;
use crate::connection::Connection;
use crate::error::{Code, Error};
use crate::limits;
use crate::run::uplink::{Outgoing, Uplink};
use crate::worker::drain::Phase;
use crate::worker::equipment::Equipment;
use crate::worker::handlers::Handlers;
use crate::worker::in_flight::InFlight;
use crate::worker::link::{Link, LinkEvent};
use crate::worker::outbox::Outbox;
use crate::worker::signals::{Signal, Signals};

/// What a worker brings along.
pub(crate) struct Setup {
    pub(crate) connection: Connection,
    pub(crate) registration: v1::RegisterWorkerRequest,
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) signals: Signals,
    pub(crate) drain_timeout: Duration,
    pub(crate) codecs: Codecs,
    pub(crate) interceptors: Interceptors,
    pub(crate) equipment: Arc<Equipment>,
    #[cfg(feature = "testing")]
    pub(crate) probe: Option<Arc<crate::testing::Probe>>,
}

pub(crate) struct Session {
    registration: v1::RegisterWorkerRequest,
    /// Ours from the first greeting on, so that a server whose welcome was lost knows us again. The server
    /// gives another one to a worker that it has declared lost.
    pub(crate) worker_id: String,
    /// Some server has taken us in.
    pub(crate) known: bool,
    pub(crate) handlers: Arc<Handlers>,
    shutdown: CancellationToken,
    signals: Signals,
    pub(crate) drain_timeout: Duration,
    pub(crate) link: Link,
    /// Into the current stream.
    pub(crate) wire: Option<mpsc::Sender<v1::WorkerMessage>>,
    /// The server has answered on the current stream: reports may follow.
    pub(crate) welcomed: bool,
    pub(crate) uplink: Uplink,
    inbox: mpsc::Receiver<Outgoing>,
    received: Vec<Outgoing>,
    pub(crate) outbox: Outbox,
    pub(crate) in_flight: InFlight,
    pub(crate) heartbeat: Interval,
    /// When to look for steps that the server should hear of.
    notices: Interval,
    pub(crate) phase: Phase,
}

impl Session {
    /// Executes runs where it is told to, or where it runs itself.
    pub(crate) fn new(setup: Setup, runs_on: Option<Handle>) -> Session {
        let (mut uplink, inbox) = Uplink::new(limits::INBOX_LEN_MAX);
        uplink.codecs = setup.codecs;
        uplink.equipment = setup.equipment;
        #[cfg(feature = "testing")]
        {
            uplink.probe = setup.probe;
        }
        Session {
            registration: setup.registration,
            worker_id: uuid::Uuid::now_v7().to_string(),
            known: false,
            handlers: setup.handlers,
            shutdown: setup.shutdown,
            signals: setup.signals,
            drain_timeout: setup.drain_timeout,
            link: Link::new(setup.connection, setup.interceptors),
            wire: None,
            welcomed: false,
            uplink,
            inbox,
            received: Vec::with_capacity(limits::INBOX_BATCH_LEN_MAX),
            outbox: Outbox::new(),
            in_flight: InFlight::new(runs_on),
            heartbeat: every(limits::HEARTBEAT_INTERVAL_DEFAULT),
            notices: every(limits::NOTICE_DELAY),
            phase: Phase::Serving,
        }
    }

    /// Serves until drained. Runs that are still in flight when it returns early are dropped with it.
    pub(crate) async fn run(mut self) -> Result<(), Error> {
        loop {
            self.advance_drain(Instant::now());
            if self.phase == Phase::Gone {
                tracing::info!(worker = %self.worker_id, "worker stopped");
                return Ok(());
            }
            self.write();
            tokio::select! {
                event = self.link.next() => self.hear(event)?,
                _ = self.inbox.recv_many(&mut self.received, limits::INBOX_BATCH_LEN_MAX),
                    if self.outbox.has_room() => self.sort_received(),
                died = self.in_flight.next_ended() => self.on_ended(died),
                _ = self.heartbeat.tick(), if self.welcomed => self.send_heartbeat(),
                // A server that is away hears of running steps with the next welcome.
                now = self.notices.tick(), if self.welcomed && self.in_flight.has_untold => {
                    self.send_notices(now)
                }
                () = writable(self.wire.as_ref()), if self.welcomed && self.outbox.has_unwritten() => {}
                () = at(self.outbox.next_deferred_at()) => self.outbox.write_deferred_again(Instant::now()),
                () = at(self.phase.until()) => {}
                () = self.shutdown.cancelled(), if self.phase.is_serving() => self.begin_drain("shutdown \
                    token"),
                signal = self.signals.next() => self.on_signal(signal),
            }
        }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.registration.namespace_id
    }

    /// The event and what has arrived behind it: a look at everything else for each message cost as much as
    /// the messages.
    fn hear(&mut self, first: LinkEvent) -> Result<(), Error> {
        self.on_link(first)?;
        for _ in 0..limits::HEARD_LEN_MAX {
            let Some(event) = self.link.next().now_or_never() else { break };
            self.on_link(event)?;
        }
        Ok(())
    }

    fn on_link(&mut self, event: LinkEvent) -> Result<(), Error> {
        match event {
            LinkEvent::Due => self.dial(),
            LinkEvent::Message(message) => self.on_message(message),
            LinkEvent::Broken(error) => return self.on_broken(error),
        }
        Ok(())
    }

    fn dial(&mut self) {
        let (wire, messages) = mpsc::channel(limits::WIRE_LEN_MAX);
        let hello = v1::Hello {
            registration: Some(self.registration.clone()),
            worker_id: self.worker_id.clone(),
            holding: self.in_flight.executing(),
        };
        let hello = v1::WorkerMessage { message: Some(worker_message::Message::Hello(Box::new(hello))) };
        wire.try_send(hello).expect("a new channel has room");
        self.wire = Some(wire);
        self.link.dial(messages);
    }

    fn on_broken(&mut self, error: Error) -> Result<(), Error> {
        self.wire = None;
        self.welcomed = false;
        self.in_flight.forget_arrivals();
        if let Phase::Leaving { .. } = self.phase {
            self.phase = Phase::Gone;
            return Ok(());
        }
        // A newcomer that is turned away is set up wrongly, and trying again would hide it. One that was
        // welcome before holds runs: it keeps trying.
        if !self.known && is_verdict(&error) {
            return Err(error);
        }
        tracing::warn!(worker = %self.worker_id, %error, "worker lost its server, will reconnect");
        Ok(())
    }

    fn on_ended(&mut self, died: Option<v1::LeaseRef>) {
        if let Some(lease) = died {
            let namespace = &self.registration.namespace_id;
            tracing::error!(%namespace, run = %lease.run_id, worker = %self.worker_id, "the task of a run \
                died");
            self.outbox.push_release(lease, "the task of the run died");
        }
    }

    fn on_signal(&mut self, signal: Signal) {
        match signal {
            Signal::Interrupt if self.phase.is_serving() => self.begin_drain("SIGINT"),
            Signal::Interrupt => self.hurry(),
            Signal::Terminate => self.begin_drain("SIGTERM"),
        }
    }

    fn send_notices(&mut self, now: Instant) {
        for started in self.in_flight.untold_steps(now - limits::NOTICE_DELAY) {
            self.outbox.push_started(started);
        }
    }

    fn send_heartbeat(&mut self) {
        let runs = self.in_flight.held();
        self.outbox.push_notice(worker_message::Message::Heartbeat(v1::Heartbeat { runs }));
    }

    /// Everything the runs have said so far, without waiting.
    pub(crate) fn take_inbox(&mut self) {
        while let Ok(outgoing) = self.inbox.try_recv() {
            self.received.push(outgoing);
        }
        self.sort_received();
    }

    fn sort_received(&mut self) {
        for outgoing in self.received.drain(..) {
            match outgoing {
                Outgoing::Started(started) => {
                    self.in_flight.step_began(started);
                }
                // The server hears of it only if it was told that the step runs: it would time it out.
                Outgoing::Dropped(dropped) => {
                    let (lease, step) = *dropped;
                    if self.in_flight.step_dropped(&lease, &step) {
                        self.outbox.push_closed(lease, step);
                    }
                }
                // What a stopped run said last would only be refused.
                Outgoing::Report(submission) if self.in_flight.holds(&submission.lease) => {
                    // Progress is of a step that the server knows of.
                    if let report::Body::StepProgressed(progressed) = &submission.body
                        && let Some(started) =
                            self.in_flight.tell_step(&submission.lease, progressed.step.as_ref())
                    {
                        self.outbox.push_started(started);
                    }
                    match &submission.body {
                        report::Body::StepsRecorded(recorded) => {
                            for recorded in &recorded.steps {
                                self.in_flight.step_ended(&submission.lease, recorded.step.as_ref());
                            }
                        }
                        body => {
                            if let Some(step) = ended_step(body) {
                                self.in_flight.step_ended(&submission.lease, step);
                            }
                        }
                    }
                    self.outbox.push_submission(submission);
                }
                Outgoing::Report(_) => {}
            }
        }
    }

    /// Writes as much as the transport takes. Never waits: a server that waits for us to read, while we
    /// wait for it to read, would be a deadlock.
    fn write(&mut self) {
        let Some(wire) = self.wire.as_ref().filter(|_| self.welcomed) else { return };
        while self.outbox.has_unwritten() {
            let Ok(slot) = wire.try_reserve() else { return };
            match self.outbox.pop() {
                Some(message) => slot.send(message),
                None => return,
            }
        }
    }
}

/// The step whose attempt a report ends.
fn ended_step(body: &report::Body) -> Option<Option<&v1::StepRef>> {
    use report::Body;
    match body {
        Body::StepRecorded(recorded) => Some(recorded.step.as_ref()),
        Body::StepFailed(failed) => Some(failed.step.as_ref()),
        Body::StepProgressed(_)
        | Body::SleepScheduled(_)
        | Body::SleepOver(_)
        | Body::LabelSet(_)
        | Body::PromiseMade(_)
        | Body::ValueSet(_)
        | Body::SignalAwaited(_)
        | Body::StartChild(_)
        | Body::StepsRecorded(_)
        | Body::StepClosed(_) => None,
        Body::RunCompleted(_)
        | Body::RunContinued(_)
        | Body::RunFailed(_)
        | Body::RunParked(_)
        | Body::RunReleased(_)
        | Body::RunBlocked(_) => None,
    }
}

/// The server understood us and said no.
fn is_verdict(error: &Error) -> bool {
    let refusals = [
        Code::InvalidArgument,
        Code::NotFound,
        Code::PermissionDenied,
        Code::Unauthenticated,
        Code::Unimplemented,
    ];
    error.code().is_some_and(|code| refusals.contains(&code))
}

pub(crate) fn every(period: Duration) -> Interval {
    let mut interval = tokio::time::interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Returns when the transport takes another message. A closed one never does; the link tells.
async fn writable(wire: Option<&mpsc::Sender<v1::WorkerMessage>>) {
    if let Some(wire) = wire
        && wire.reserve().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}
