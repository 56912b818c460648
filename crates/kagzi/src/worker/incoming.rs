//! What the server says, and what follows from it.

use std::sync::Arc;

use kagzi_proto::google::rpc;
use kagzi_proto::v1::{self, answer, server_message};
use kagzi_proto::{Reason, refusal};
use tonic::Code;
use tracing::Instrument;

use crate::retry_policy::from_millis;
use crate::run::executor;
use crate::run::uplink::Verdict;
use crate::worker::session::{Session, every};
use crate::{codes, limits, trace};

impl Session {
    pub(crate) fn on_message(&mut self, message: v1::ServerMessage) {
        use server_message::Message;
        match message.message {
            Some(Message::Welcome(welcome)) => self.on_welcome(welcome),
            Some(Message::Ack(ack)) => self.on_ack(ack),
            Some(Message::Assign(assign)) => {
                let complete = self.in_flight.begin_arrival(assign);
                self.on_assigned(complete);
            }
            Some(Message::JournalPage(page)) => {
                let complete = self.in_flight.continue_arrival(page);
                self.on_assigned(complete);
            }
            Some(Message::LostLease(lost)) => self.on_lost(lost),
            Some(Message::SignalNotice(notice)) => {
                if let Some(lease) = notice.lease {
                    self.uplink.mailboxes.ring(&lease.run_id, &notice.channel);
                }
            }
            Some(Message::Drain(order)) => self.begin_drain(&order.reason),
            // A newer server may say more than we understand.
            None => tracing::debug!("the server sent a message of an unknown kind"),
        }
    }

    /// The order matters: first stop what is no longer ours, then repeat what was not acknowledged, then say
    /// what still runs.
    fn on_welcome(&mut self, welcome: v1::Welcome) {
        tracing::info!(worker = %welcome.worker_id, "worker connected");
        self.worker_id = welcome.worker_id;
        self.uplink.worker = self.worker_id.as_str().into();
        self.known = true;
        self.uplink.set_payload_bytes_max(welcome.payload_max_bytes);
        let interval = Some(from_millis(welcome.heartbeat_interval_ms)).filter(|period| !period.is_zero());
        self.heartbeat = every(interval.unwrap_or(limits::HEARTBEAT_INTERVAL_DEFAULT));
        for lost in welcome.lost {
            self.on_lost(lost);
        }
        self.take_inbox();
        self.outbox.rewind();
        self.uplink.mailboxes.ring_all();
        for started in self.in_flight.running_steps() {
            self.outbox.push_started(started);
        }
        self.link.welcomed();
        self.welcomed = true;
        if !self.phase.is_serving() {
            self.send_drain_notice();
        }
    }

    fn on_assigned(&mut self, assign: Option<Box<v1::Assign>>) {
        let Some(assign) = assign else { return };
        let Some(lease) = assign.lease.clone() else {
            tracing::warn!(workflow_type = %assign.workflow_type, "ignored an assignment without a lease");
            return;
        };
        if self.in_flight.holds(&lease) {
            return;
        }
        if !self.phase.is_serving() {
            self.outbox.push_release(lease, "the worker is draining");
            return;
        }
        // The next generation came before the word that the last one is over.
        if let Some(older) = self.in_flight.let_continued_end(&lease, assign.generation) {
            self.outbox.settle_end(&older);
        }
        // An older execution of the same run: the server has moved on, so its word is worth nothing.
        if let Some(older) = self.in_flight.abort(&lease) {
            self.outbox.forget(&older);
        }
        self.outbox.forget_unattended(&lease);
        let span = tracing::info_span!(
            "run",
            namespace = %assign.namespace_id,
            run = %lease.run_id,
            workflow_type = %assign.workflow_type,
            worker = %self.worker_id,
            generation = assign.generation.max(1),
            // Nobody was given the run before.
            first = lease.epoch == 1,
            outcome = tracing::field::Empty,
        );
        trace::adopt(&span, (&assign.traceparent, &assign.tracestate), &assign.former_traceparent);
        // Boxed before it is wrapped: it has 5 KB, and every layer around it would copy them.
        let generation = assign.generation;
        let run = Box::pin(executor::execute(
            assign,
            Arc::clone(&self.handlers),
            self.uplink.clone(),
            span.clone(),
        ));
        self.in_flight.spawn(lease, generation, run.instrument(span));
    }

    fn on_lost(&mut self, lost: v1::LostLease) {
        let Some(lease) = lost.lease else { return };
        let namespace = self.namespace();
        let (run, epoch) = (&lease.run_id, lease.epoch);
        let (worker, reason) = (&self.worker_id, &lost.reason);
        tracing::info!(%namespace, %run, %worker, epoch, %reason, "run stopped");
        self.lose(&lease);
    }

    /// Stops the task before its waiters are dropped, so that they cannot run into user code.
    fn lose(&mut self, lease: &v1::LeaseRef) {
        if let Some(held) = self.in_flight.abort(lease) {
            self.outbox.forget(&held);
        }
        self.outbox.forget(lease);
    }

    fn on_ack(&mut self, ack: v1::Ack) {
        for seq in ack.committed {
            self.outbox.settle(seq, Verdict::Committed);
        }
        for answer in ack.answers {
            self.on_answer(answer);
        }
    }

    fn on_answer(&mut self, answer: v1::Answer) {
        use answer::Body;
        let seq = answer.seq;
        let verdict = match answer.body {
            Some(Body::StepRetry(retry)) => {
                Verdict::Retry { delay: from_millis(retry.delay_ms), attempt: retry.attempt }
            }
            Some(Body::StepFinal(last)) => {
                Verdict::Final { attempts: last.attempts, finality: last.finality }
            }
            Some(Body::Sleeping(sleeping)) => {
                Verdict::Sleeping { remaining: from_millis(sleeping.remaining_ms) }
            }
            Some(Body::Waited(waited)) => Verdict::Waited(Box::new(waited)),
            Some(Body::ChildBegan(began)) => Verdict::ChildBegan(Box::new(began)),
            Some(Body::Refused(refused)) => return self.on_refused(seq, refused),
            None => {
                let message = "an answer of an unknown kind".to_owned();
                Verdict::Refused { code: codes::ERROR.to_owned(), message }
            }
        };
        self.outbox.settle(seq, verdict);
    }

    fn on_refused(&mut self, seq: u64, refused: rpc::Status) {
        let refused = refusal::from_rpc(refused);
        let message = refused.message().to_owned();
        if refused.code() == Code::Unavailable {
            tracing::debug!(seq, %message, "report refused for now");
            return self.outbox.defer(seq);
        }
        let info = refusal::error_info(&refused).unwrap_or_default();
        if !Reason::from_name(&info.reason).is_some_and(Reason::ends_execution) {
            let code = if info.reason.is_empty() { codes::ERROR.to_owned() } else { info.reason };
            return self.outbox.settle(seq, Verdict::Refused { code, message });
        }
        let Some(lease) = self.outbox.lease(seq).cloned() else { return };
        let cancelled = info.metadata.get("status").is_some_and(|status| status == "CANCELLED");
        self.on_lost(v1::LostLease { lease: Some(lease), cancelled, reason: message });
    }
}
