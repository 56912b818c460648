//! The worker registry's part of a turn: who stands by, who lives, who leaves.

use kagzi_model::{
    Done, LeaseRef, Name, Reclaimed, RegistryError, Reply, RunId, RunKey, Worker, WorkerCommand, WorkerId,
    act, renewed_until,
};

use super::Turn;
use crate::{
    Backend, Beat, BeatAnswer, CutOff, Demand, LostLease, Outcome, Register, StoreError, WorkersQuery,
    hash::HashSet,
};

const FORCED: &str = "an operator took its worker offline";

/// How a worker goes.
pub(super) enum Leaving {
    Politely,
    Lost,
    /// Its connection broke, and it may come back.
    CutOff,
    /// By an operator's word, while it may still execute.
    Forced,
}

impl<B: Backend> Turn<'_, B> {
    pub(super) async fn stand_by(
        &mut self,
        demand: &Demand,
    ) -> Result<Result<(), RegistryError>, StoreError> {
        // A poll of a worker that is known to stand by here changes nothing: most polls write no row.
        match demand.once && self.worker_cache.is_home(demand.worker) {
            true => self.refresh_worker(demand.worker).await?,
            false => self.adopt_worker(demand.worker).await?,
        }
        let Some(known) = self.worker_cache.get(demand.worker) else {
            return Ok(Err(RegistryError::Unknown(demand.worker)));
        };
        if let Err(refused) = known.row.takes(&demand.types) {
            return Ok(Err(refused));
        }
        let registration = &known.row.registration;
        self.board.add(&registration.namespace, &registration.task_queue, demand.clone());
        Ok(Ok(()))
    }

    pub(super) async fn load_worker(&mut self, id: WorkerId) -> Result<(), StoreError> {
        if self.worker_cache.contains(id) {
            return Ok(());
        }
        let query = WorkersQuery { whole: &[id], ..WorkersQuery::default() };
        let mut loaded = self.backend.load_workers(&query).await?;
        match loaded.unreadable.pop() {
            Some((_, why)) => return Err(StoreError::Corrupt(why)),
            None => self.know_workers(loaded),
        }
        Ok(())
    }

    /// Loads a worker whose row or leases another server may have changed: somebody drained it there, or took
    /// a run back. Once a turn is enough.
    async fn refresh_worker(&mut self, id: WorkerId) -> Result<(), StoreError> {
        if self.compared.contains(&id) {
            return Ok(());
        }
        if self.shared {
            self.worker_cache.evict(id);
        }
        self.load_worker(id).await
    }

    /// The worker stands by at this server from now on. Race: two servers lease to one worker and both
    /// believe that it has room. On a shared database the worker's row therefore names its server before its
    /// runs are counted: what another server leases to it at this moment is either counted here or refused
    /// there.
    pub(super) async fn adopt_worker(&mut self, id: WorkerId) -> Result<(), StoreError> {
        if !self.shared {
            return self.load_worker(id).await;
        }
        if self.taken_in.contains(&id) {
            return Ok(());
        }
        // A registration of this very batch must be there to be marked.
        self.flush_before_search().await?;
        Box::pin(self.take_in_all(vec![id])).await
    }

    pub(super) async fn register(
        &mut self,
        Register { id, registration }: &Register,
    ) -> Result<Result<Worker, RegistryError>, StoreError> {
        self.load_controls(&registration.namespace).await?;
        if !self.ensure_namespace(&registration.namespace) {
            return Ok(Err(RegistryError::UnknownNamespace(registration.namespace.clone())));
        }
        // Known already when the answer was lost and the worker asks again: it may hold runs.
        self.refresh_worker(*id).await?;
        Ok(self.worker_cache.decide(self.now, *id, WorkerCommand::Register(registration)).cloned())
    }

    pub(super) async fn drain(&mut self, id: WorkerId) -> Result<Result<Worker, RegistryError>, StoreError> {
        self.refresh_worker(id).await?;
        let drained = self.worker_cache.decide(self.now, id, WorkerCommand::Drain).cloned();
        if drained.is_ok() {
            self.drained.push(id);
        }
        Ok(drained)
    }

    pub(super) async fn leave(
        &mut self,
        id: WorkerId,
        how: Leaving,
    ) -> Result<Result<u32, RegistryError>, StoreError> {
        self.refresh_worker(id).await?;
        self.take_offline(id, how).await
    }

    /// Whether the id belongs to a known worker of another namespace or task queue than `of`.
    pub(super) fn is_of_another(&self, id: WorkerId, of: (&Name, &Name)) -> bool {
        self.worker_cache.get(id).is_some_and(|known| known.row.is_of_another(of))
    }

    pub(super) async fn beat(
        &mut self,
        beat: &Beat,
    ) -> Result<Result<BeatAnswer, RegistryError>, StoreError> {
        if let Some((namespace, task_queue)) = &beat.of {
            // Before anything of the worker is touched: its row, its leases and its place.
            self.refresh_worker(beat.id).await?;
            if self.is_of_another(beat.id, (namespace, task_queue)) {
                return Ok(Err(RegistryError::Taken(beat.id)));
            }
        }
        // Only the stream that the worker really uses beats: should a late greeting elsewhere have taken its
        // place, it takes it back.
        if beat.reconnected {
            // Its former stream is dead, here or at another server, though nobody may have noticed: what is
            // given back below must not be leased into it.
            self.board.remove_worker(beat.id);
            self.adopt_worker(beat.id).await?;
        } else if self.worker_cache.is_home(beat.id) || !self.board.stands(beat.id) {
            self.refresh_worker(beat.id).await?;
        } else {
            self.adopt_worker(beat.id).await?;
        }
        let status = match self.worker_cache.decide(self.now, beat.id, WorkerCommand::Beat) {
            Ok(worker) => worker.status,
            Err(refused) => return Ok(Err(refused)),
        };
        // On a shared database they were compared and loaded before the batch.
        self.load_runs(beat.runs.iter().map(LeaseRef::key).collect()).await?;
        let mut lost = Vec::new();
        for lease in &beat.runs {
            if let Err(rejection) = self.renew(lease, beat.lease_ms).await? {
                lost.push((lease.clone(), rejection));
            }
        }
        if let Some(after_ms) = beat.unlisted_after_ms {
            self.give_back_unlisted(beat, after_ms).await?;
        }
        Ok(Ok(BeatAnswer { status, lost }))
    }

    async fn renew(&mut self, lease: &LeaseRef, lease_ms: i64) -> Result<Outcome, StoreError> {
        let lease_ms = self.lease_ms(lease.run, lease_ms);
        let held = self.fold.entry(lease.run).and_then(|entry| entry.aggregate.run.lease());
        let until = renewed_until(self.now, held, lease_ms);
        self.apply(&lease.report(act::Renew { until })).await
    }

    /// How long a lease of this run lasts: its own heartbeat timeout, or the server's length.
    pub(super) fn lease_ms(&self, run: RunId, standard_ms: i64) -> i64 {
        let entry = self.fold.entry(run);
        entry.and_then(|entry| entry.aggregate.run.options.timeouts.heartbeat_ms).unwrap_or(standard_ms)
    }

    async fn give_back_unlisted(&mut self, beat: &Beat, after_ms: i64) -> Result<(), StoreError> {
        let here = beat.runs.iter().map(|lease| lease.run);
        let listed: HashSet<RunId> = here.chain(beat.listed_before.iter().copied()).collect();
        let held = self.worker_cache.get(beat.id).into_iter().flat_map(|member| member.holds());
        let mut unlisted: Vec<_> = held.filter(|key| !listed.contains(&key.id)).collect();
        unlisted.sort_unstable();
        self.load_runs(unlisted.clone()).await?;
        for RunKey { id, .. } in unlisted {
            let Some(run) = self.fold.entry(id).map(|entry| &entry.aggregate.run) else { continue };
            let old = run.lease().is_some_and(|lease| lease.since.plus_ms(after_ms) <= self.now);
            if old {
                let lease = LeaseRef { namespace: run.namespace.clone(), run: id, epoch: run.epoch };
                let why = "the worker does not know of it: its delivery was lost".to_owned();
                // Refused only when the run moved on in this very batch.
                let _ = self.apply(&lease.report(act::Release { why })).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn take_offline(
        &mut self,
        id: WorkerId,
        how: Leaving,
    ) -> Result<Result<u32, RegistryError>, StoreError> {
        if let Err(refused) = self.worker_cache.decide(self.now, id, WorkerCommand::Leave) {
            return Ok(Err(refused));
        }
        self.offline.push(id);
        Ok(Ok(self.take_runs(id, how).await?))
    }

    /// Takes the runs of a worker whose connection broke, unless somebody has heard of it since. On a shared
    /// database it may have reconnected to another server: its row says so, because whoever greets it is
    /// named there.
    pub(super) async fn cut_off(
        &mut self,
        &CutOff { id, since }: &CutOff,
    ) -> Result<Result<u32, RegistryError>, StoreError> {
        self.refresh_worker(id).await?;
        let Some(member) = self.worker_cache.get(id) else { return Ok(Err(RegistryError::Unknown(id))) };
        let gone = member.row.is_cut_off(since)
            && !self.board.stands(id)
            && (!self.shared || self.backend.standing(&[id]).await?.contains(&id));
        let runs = if gone { self.take_runs(id, Leaving::CutOff).await? } else { 0 };
        Ok(Ok(runs))
    }

    async fn take_runs(&mut self, id: WorkerId, how: Leaving) -> Result<u32, StoreError> {
        let losses_max = self.controls.server.worker_losses_max;
        let held = self.backend.leased_by(id).await?;
        self.load_found(&held).await?;
        let mut released = 0;
        for RunKey { id: run, .. } in held {
            let Some(entry) = self.fold.entry(run) else { continue };
            let row = &entry.aggregate.run;
            if row.lease().is_none_or(|lease| lease.worker != id) {
                continue;
            }
            let (namespace, epoch) = (row.namespace.clone(), row.epoch);
            let command = match how {
                Leaving::Politely => {
                    let why = "its worker left".to_owned();
                    LeaseRef { namespace, run, epoch }.report(act::Release { why })
                }
                Leaving::Lost | Leaving::CutOff => {
                    let loss = act::Loss { cut_off: matches!(how, Leaving::CutOff), losses_max };
                    RunKey::new(namespace, run).duty(act::Orphan { epoch, loss })
                }
                Leaving::Forced => {
                    let why = FORCED.to_owned();
                    LeaseRef { namespace, run, epoch }.report(act::Release { why })
                }
            };
            match self.apply(&command).await? {
                // Refused, or left with a worker that may still come back for it.
                Err(_) | Ok(Reply::Done(Done::BEFORE) | Reply::Reclaimed(Reclaimed::Nothing)) => continue,
                Ok(_) => released += 1,
            }
            if matches!(how, Leaving::Forced) {
                // A release is the worker's own word, usually. This worker does not know of it yet.
                let why = FORCED.to_owned();
                self.fold.touched.lost.push(LostLease { worker: id, run, epoch, why, cancelled: false });
            }
        }
        Ok(released)
    }
}
