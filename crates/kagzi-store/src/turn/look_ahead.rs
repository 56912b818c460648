//! The workers that a batch speaks of, read before anything is decided: on a shared database a thousand
//! heartbeats take as many round trips as one.

use std::collections::BTreeSet;

use kagzi_model::{RunId, WorkerId};

use super::Turn;
use crate::{
    AsideRow, Backend, Beat, LoadedWorkers, RunKey, StoreError, WorkersQuery, hash::HashSet, lane::Message,
};

impl<B: Backend> Turn<'_, B> {
    /// Compares the workers that the batch speaks of with the database, marks those that stand by here from
    /// now on, and loads the runs that their heartbeats list. Alone on a database memory is right, and nobody
    /// asks.
    pub(super) async fn look_at_workers(&mut self, batch: &[Message]) -> Result<(), StoreError> {
        let ids: BTreeSet<WorkerId> = batch.iter().filter_map(worker_of).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let beats: Vec<&Beat> = batch.iter().filter_map(Message::beat).collect();
        self.compare_workers(ids, &beats).await?;
        let coming: Vec<WorkerId> = batch.iter().filter_map(|message| self.comes_here(message)).collect();
        self.take_in_all(coming).await?;
        self.load_beaten(&beats).await
    }

    async fn compare_workers(&mut self, ids: BTreeSet<WorkerId>, beats: &[&Beat]) -> Result<(), StoreError> {
        // Whoever stands by here is leased runs by this server alone: what memory does not know of is not
        // there.
        let here = |id: &WorkerId| self.worker_cache.contains(*id) && self.worker_cache.is_home(*id);
        let (known, whole): (Vec<WorkerId>, Vec<WorkerId>) = ids.iter().copied().partition(here);
        let mut held: HashSet<(WorkerId, RunKey)> = HashSet::default();
        for id in &known {
            let member = self.worker_cache.get(*id);
            held.extend(member.into_iter().flat_map(|member| member.holds()).map(|key| (*id, key)));
        }
        for beat in beats.iter().filter(|beat| self.worker_cache.is_home(beat.id)) {
            let key =
                |lease: &kagzi_model::LeaseRef| RunKey { id: lease.run, namespace: lease.namespace.clone() };
            held.extend(beat.runs.iter().map(|lease| (beat.id, key(lease))));
        }
        let held: Vec<(WorkerId, RunKey)> = held.into_iter().collect();
        let query = WorkersQuery { whole: &whole, known: &known, held: &held };
        let loaded = self.backend.load_workers(&query).await?;
        ids.iter().for_each(|id| self.worker_cache.evict(*id));
        self.compared.extend(ids);
        self.know_workers(loaded);
        Ok(())
    }

    /// Adds workers that were loaded. One that cannot be read is left alone: whoever asks for it is told so.
    pub(super) fn know_workers(&mut self, loaded: LoadedWorkers) {
        for (id, why) in loaded.unreadable {
            self.compared.remove(&id);
            self.stats.aside.put(AsideRow::Worker(id), &why, self.now);
        }
        loaded.workers.into_iter().for_each(|worker| self.worker_cache.know(worker));
    }

    /// The worker that a message brings here, if it is known and is who it says.
    fn comes_here(&self, message: &Message) -> Option<WorkerId> {
        if let Message::StandBy(ask) = message {
            let demand = &ask.request;
            let known = demand.once && self.worker_cache.is_home(demand.worker);
            return (!known && self.worker_cache.contains(demand.worker)).then_some(demand.worker);
        }
        let beat = message.beat()?;
        let foreign = beat
            .of
            .as_ref()
            .is_some_and(|(namespace, task_queue)| self.is_of_another(beat.id, (namespace, task_queue)));
        let comes = beat.reconnected || (!self.worker_cache.is_home(beat.id) && self.board.stands(beat.id));
        (comes && !foreign && self.worker_cache.contains(beat.id)).then_some(beat.id)
    }

    /// Workers stand by here from now on, in one go.
    pub(super) async fn take_in_all(&mut self, mut ids: Vec<WorkerId>) -> Result<(), StoreError> {
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(());
        }
        let loaded = self.backend.stand_by(&ids).await?;
        for worker in &loaded.workers {
            self.worker_cache.mark_home(worker.worker.id);
            self.taken_in.insert(worker.worker.id);
        }
        self.know_workers(loaded);
        Ok(())
    }

    /// Loads what heartbeats list, and what they ought to list. What the worker no longer holds is read
    /// again: only its row says why.
    async fn load_beaten(&mut self, beats: &[&Beat]) -> Result<(), StoreError> {
        let mut keys = Vec::new();
        for beat in beats {
            let Some(member) = self.worker_cache.get(beat.id) else { continue };
            let mut holds: HashSet<RunKey> = member.holds().collect();
            for lease in &beat.runs {
                let key = RunKey { id: lease.run, namespace: lease.namespace.clone() };
                if !holds.remove(&key) {
                    self.fold.evict(lease.run);
                }
                keys.push(key);
            }
            if beat.unlisted_after_ms.is_some() {
                let listed: HashSet<RunId> = beat.listed_before.iter().copied().collect();
                for key in holds.into_iter().filter(|key| !listed.contains(&key.id)) {
                    self.fold.evict(key.id);
                    keys.push(key);
                }
            }
        }
        self.load_runs(keys).await
    }
}

/// The worker that a message is about.
fn worker_of(message: &Message) -> Option<WorkerId> {
    match message {
        Message::StandBy(ask) => Some(ask.request.worker),
        Message::Register(ask) => Some(ask.request.id),
        Message::Beat(ask) => Some(ask.request.id),
        Message::Drain(ask) => Some(ask.request.id),
        Message::CutOff(ask) => Some(ask.request.id),
        Message::Deregister(ask) => Some(ask.request.id),
        Message::Offline(ask) => Some(ask.request.id),
        Message::Apply(_)
        | Message::Withdraw(_)
        | Message::Schedule(_)
        | Message::Namespace(_)
        | Message::Gate(_)
        | Message::Noun(_)
        | Message::Publish(_)
        | Message::Intervention(_)
        | Message::TakeNotices(_)
        | Message::SettleNotice(_)
        | Message::Sweep(_)
        | Message::Wake { .. }
        | Message::Opened { .. }
        | Message::Close(_) => None,
    }
}
