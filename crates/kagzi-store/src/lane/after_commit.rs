//! What a lane does after a commit: nobody is told of anything before it.

use kagzi_model::act;
use tracing::warn;

use super::{Lane, Message};
use crate::{Backend, turn::Done};

impl<B: Backend> Lane<B> {
    /// After the commit: answer everybody, hand out the runs, tell whoever listens.
    pub(super) fn settle(&mut self, batch: Vec<Message>, done: Done) {
        batch.into_iter().for_each(Message::send);
        for (demand, assignment) in done.assignments {
            let lease = assignment.lease();
            // The demand is gone after its first undeliverable run; the others of this turn are given back
            // too.
            let standing = self.board.demand(demand);
            let once = standing.is_some_and(|standing| standing.once);
            let gone = standing.is_none_or(|standing| standing.deliver.send(assignment).is_err());
            if gone {
                let namespace = &lease.namespace;
                warn!(%namespace, run = %lease.run, "worker left before its run arrived, giving it back");
                let why = "the worker left before the run arrived".to_owned();
                self.returned.push(lease.report(act::Release { why }));
            }
            if gone || once {
                self.board.remove(demand);
            }
        }
        done.finished.into_iter().for_each(|finished| self.observer.finished(finished));
        done.lost.into_iter().for_each(|lost| self.observer.lease_lost(lost));
        done.paused.into_iter().for_each(|run| self.observer.paused(run));
        done.notices.into_iter().for_each(|notice| self.observer.signalled(notice));
        done.replied.into_iter().for_each(|run| self.observer.replied(run));
        if let Some(at) = done.sweep_at {
            self.observer.sweep_due(at);
        }
        if let Some(at) = done.schedule_at {
            self.observer.schedule_due(at, done.schedules_changed);
        }
        if done.events_due {
            self.observer.events_due();
        }
        if let Some(at) = done.question_at {
            self.observer.question_due(at);
        }
        if !done.waiting.is_empty() {
            self.observer.waiting(done.waiting);
        }
        if !done.opened.is_empty() {
            self.observer.opened(done.opened);
        }
        done.rows.into_iter().for_each(|id| self.cache.settle(id));
        self.cache.make_room();
        self.controls.make_room();
        let board = &self.board;
        self.worker_cache.make_room(|id| board.stands(id));
        done.drained.into_iter().for_each(|id| self.board.remove_worker(id));
        done.offline.into_iter().for_each(|id| {
            self.board.remove_worker(id);
            self.worker_cache.settle(id);
        });
    }
}
