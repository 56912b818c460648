//! What a run says to the owner of the stream, and what it hears back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kagzi_proto::v1::{self, report};
use tokio::sync::{mpsc, oneshot};

use crate::codec::Codecs;
use crate::run::announced::Announced;
use crate::run::mailbox::Mailboxes;
use crate::worker::equipment::Equipment;

/// From a run to the owner of the stream.
pub(crate) enum Outgoing {
    /// Told so that the server can time the step out by itself, and for the console's sake; may be lost.
    Started(Box<v1::StepStarted>),
    /// The code dropped a step while an attempt ran; may be lost.
    Dropped(Box<(v1::LeaseRef, v1::StepRef)>),
    /// To be made durable.
    Report(Box<Submission>),
}

/// A report on its way, until it is acknowledged. The sequence number is given by the owner of the stream.
pub(crate) struct Submission {
    pub(crate) lease: v1::LeaseRef,
    pub(crate) body: report::Body,
    /// None when nobody waits: a run that was given back.
    pub(crate) verdict: Option<oneshot::Sender<Verdict>>,
}

/// What the server made of a report. Lost leases and refusals that are worth another try never get here.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    Committed,
    Retry {
        delay: Duration,
        attempt: u32,
    },
    /// The server's number for why there is no retry, see [`crate::step_error::Finality`].
    Final {
        attempts: u32,
        finality: i32,
    },
    Sleeping {
        remaining: Duration,
    },
    /// How a wait stands.
    Waited(Box<v1::Waited>),
    /// A child exists.
    ChildBegan(Box<v1::ChildBegan>),
    Refused {
        code: String,
        message: String,
    },
}

impl Verdict {
    /// The function is told of it: what is retried, sleeps on or still waits is none of its business.
    pub(crate) fn is_told(&self) -> bool {
        match self {
            Verdict::Committed | Verdict::Final { .. } => true,
            Verdict::Waited(waited) => waited.outcome() != v1::WaitOutcome::Waiting,
            Verdict::ChildBegan(began) => began.waited.is_none(),
            Verdict::Retry { .. } | Verdict::Sleeping { .. } | Verdict::Refused { .. } => false,
        }
    }

    /// What the value weighs that the function is told; a failure is none.
    pub(crate) fn value_bytes(&self) -> u64 {
        match self {
            Verdict::Waited(waited) if waited.failure.is_none() => {
                waited.signal.as_ref().map_or(0, |signal| signal.data.len() as u64)
            }
            Verdict::Waited(_) | Verdict::ChildBegan(_) | Verdict::Committed | Verdict::Final { .. } => 0,
            Verdict::Retry { .. } | Verdict::Sleeping { .. } | Verdict::Refused { .. } => 0,
        }
    }
}

/// The way up. Cheap to clone, one per worker.
#[derive(Clone)]
pub(crate) struct Uplink {
    outgoing: mpsc::Sender<Outgoing>,
    /// Zero until the server has named its limit.
    payload_bytes_max: Arc<AtomicU64>,
    /// The worker's id, for spans.
    pub(crate) worker: Arc<str>,
    /// Retries that `on_retry` hooks of this worker were told of.
    pub(crate) announced: Arc<Announced>,
    pub(crate) codecs: Codecs,
    /// Runs that wait for somebody.
    pub(crate) mailboxes: Arc<Mailboxes>,
    pub(crate) equipment: Arc<Equipment>,
    #[cfg(feature = "testing")]
    pub(crate) probe: Option<Arc<crate::testing::Probe>>,
}

impl Uplink {
    pub(crate) fn new(inbox_len_max: usize) -> (Uplink, mpsc::Receiver<Outgoing>) {
        let (outgoing, inbox) = mpsc::channel(inbox_len_max);
        let uplink = Uplink {
            outgoing,
            payload_bytes_max: Arc::default(),
            worker: "".into(),
            announced: Arc::default(),
            codecs: Codecs::default(),
            mailboxes: Arc::default(),
            equipment: Arc::default(),
            #[cfg(feature = "testing")]
            probe: None,
        };
        (uplink, inbox)
    }

    pub(crate) fn set_payload_bytes_max(&self, bytes: u64) {
        self.payload_bytes_max.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn payload_bytes_max(&self) -> Option<u64> {
        Some(self.payload_bytes_max.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    /// Never waits: when the way up is full, there is nobody to tell.
    pub(crate) fn step_started(&self, started: v1::StepStarted) {
        #[cfg(feature = "testing")]
        if let Some(probe) = &self.probe {
            probe.step_started(started.step.as_ref());
        }
        if self.outgoing.try_send(Outgoing::Started(Box::new(started))).is_err() {
            tracing::debug!("dropped a notice that a step has started");
        }
    }

    /// Never waits, like the notice that it has started.
    pub(crate) fn step_dropped(&self, lease: &v1::LeaseRef, step: &v1::StepRef) {
        let dropped = Box::new((lease.clone(), step.clone()));
        if self.outgoing.try_send(Outgoing::Dropped(dropped)).is_err() {
            tracing::debug!("dropped a notice that a step was dropped");
        }
    }

    /// Waits for the verdict. It never comes when the lease was lost or the worker ends: the caller then
    /// stays where it is until its task is aborted, instead of running into code that must not run.
    ///
    /// Packed before anything is awaited: a report in the future of every step would make each run kilobytes
    /// larger.
    pub(crate) fn submit(&self, lease: v1::LeaseRef, body: report::Body) -> impl Future<Output = Verdict> {
        #[cfg(feature = "testing")]
        let said = self.probe.as_ref().map(|_| crate::testing::in_words(&body));
        let (verdict, heard) = oneshot::channel();
        let submitted = self.send(Box::new(Submission { lease, body, verdict: Some(verdict) }), heard);
        #[cfg(feature = "testing")]
        let submitted = async move {
            match (&self.probe, said) {
                (Some(probe), Some(said)) => probe.watch(said, submitted).await,
                (_, _) => submitted.await,
            }
        };
        submitted
    }

    async fn send(&self, submission: Box<Submission>, heard: oneshot::Receiver<Verdict>) -> Verdict {
        let sent = self.outgoing.send(Outgoing::Report(submission)).await;
        if sent.is_ok()
            && let Ok(verdict) = heard.await
        {
            return verdict;
        }
        std::future::pending().await
    }

    /// Sends without waiting for the verdict, which nobody would do anything about.
    pub(crate) async fn tell(&self, lease: v1::LeaseRef, body: report::Body) {
        // Workers that are to die at every commit die at this one too, and so wait for it.
        #[cfg(feature = "testing")]
        if self.probe.as_ref().is_some_and(|probe| probe.counts_values)
            && matches!(body, report::Body::ValueSet(_))
        {
            let _ = self.submit(lease, body).await;
            return;
        }
        let (verdict, _) = oneshot::channel();
        let submission = Box::new(Submission { lease, body, verdict: Some(verdict) });
        if self.outgoing.send(Outgoing::Report(submission)).await.is_err() {
            tracing::debug!("the worker ends, a report nobody waits for was dropped");
        }
    }
}
