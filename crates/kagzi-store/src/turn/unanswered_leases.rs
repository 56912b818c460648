//! Leases whose commit was not answered: nobody was told of them, and they may exist all the same.

use kagzi_model::{LeaseRef, Timestamp, WorkerId, act};

use super::Turn;
use crate::{Backend, RunKey, StoreError};

/// A lease that was written and perhaps committed. An epoch alone does not name it: if it was not committed,
/// another server may have given the same run the same epoch since.
#[derive(Debug, Clone)]
pub struct UnansweredLease {
    lease: LeaseRef,
    worker: WorkerId,
    since: Timestamp,
}

impl<B: Backend> Turn<'_, B> {
    /// The leases of this turn, to be looked for when its commit is not answered.
    pub fn unanswered(&self) -> Vec<UnansweredLease> {
        let runs = self.assigned.iter().filter_map(|(_, id)| self.fold.entry(*id));
        runs.filter_map(|entry| {
            let run = &entry.aggregate.run;
            let held = run.lease()?;
            let lease = LeaseRef { namespace: run.namespace.clone(), run: run.id, epoch: run.epoch };
            Some(UnansweredLease { lease, worker: held.worker, since: held.since })
        })
        .collect()
    }

    /// Gives back those that exist. Otherwise they would hold a worker's slot until they run out, and then
    /// count as a crash of a worker that never heard of them.
    pub(super) async fn give_back_unanswered(
        &mut self,
        unanswered: &[UnansweredLease],
    ) -> Result<(), StoreError> {
        if unanswered.is_empty() {
            return Ok(());
        }
        let key =
            |lost: &UnansweredLease| RunKey { id: lost.lease.run, namespace: lost.lease.namespace.clone() };
        self.load_runs(unanswered.iter().map(key).collect()).await?;
        for UnansweredLease { lease, worker, since } in unanswered {
            let Some(entry) = self.fold.entry(lease.run) else { continue };
            let run = &entry.aggregate.run;
            let exists = run.epoch == lease.epoch
                && run.lease().is_some_and(|held| held.worker == *worker && held.since == *since);
            if exists {
                let why = "the answer to its commit was lost, so it was never delivered".to_owned();
                // Refused only when the run moved on in this very batch.
                let _ = self.apply(&lease.report(act::Release { why })).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    };

    use kagzi_model::{Command, Name, Payload, Registration, RunId, RunOptions, StartRun};
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
    use uuid::Uuid;

    use super::*;
    use crate::{
        Assignment, Demand, Drain, Finished, LostLease, ManualClock, MemoryStore, Observer, Register, Silent,
        Store, memory::Faults,
    };

    /// Whether it was told to look.
    #[derive(Default)]
    struct Doubtful(AtomicBool);

    impl Observer for Doubtful {
        fn finished(&self, _: Finished) {}
        fn lease_lost(&self, _: LostLease) {}
        fn commit_unanswered(&self) {
            self.0.store(true, SeqCst);
        }
    }

    fn charge(id: RunId) -> StartRun {
        StartRun {
            namespace: "default".into(),
            id,
            business_id: Some("order-1".into()),
            workflow_type: "charge".into(),
            task_queue: "orders".into(),
            input: Payload::new(&b"1"[..]),
            deadline_at: None,
            options: RunOptions::default(),
            labels: Default::default(),
            signals: Vec::new(),
        }
    }

    /// A worker with one slot that stands by for the runs of `charge`.
    async fn standing(store: &Store) -> (WorkerId, UnboundedReceiver<Assignment>) {
        let worker = WorkerId(Uuid::from_u128(1));
        let registration = Registration {
            namespace: "default".into(),
            task_queue: "orders".into(),
            workflow_types: vec!["charge".into()],
            hostname: "test".into(),
            pid: 1,
            version: "1".into(),
            max_concurrent: 1,
            labels: Default::default(),
        };
        store.ask(Register { id: worker, registration }).await.unwrap().unwrap();
        let (deliver, assignments) = unbounded_channel();
        let types = vec!["charge".into()];
        let demand = Demand { id: 1, worker, types, once: false, lease_ms: 30_000, deliver };
        store.stand_by(demand).await.unwrap().unwrap();
        (worker, assignments)
    }

    #[tokio::test]
    async fn a_worker_whose_drain_was_not_committed_goes_on_getting_runs() {
        let (clock, faults) = (Arc::new(ManualClock::new(Timestamp(1))), Arc::new(Faults::default()));
        let store = MemoryStore::open_lossy(clock.clone(), Arc::new(Silent), faults.clone());
        let (worker, mut assignments) = standing(&store).await;

        faults.refuse.store(true, SeqCst);
        let drained = store.ask(Drain { id: worker }).await;
        // Claims wait a second after a failed commit.
        clock.advance(std::time::Duration::from_secs(2));
        let id = RunId(Uuid::from_u128(2));
        store.apply(vec![Command::start(charge(id))]).await.unwrap();

        assert!(drained.is_err());
        assert_eq!(assignments.recv().await.unwrap().run.id, id);
    }

    #[tokio::test]
    async fn whoever_waits_is_told_to_look_after_a_commit_that_was_not_answered() {
        let (clock, faults) = (Arc::new(ManualClock::new(Timestamp(1))), Arc::new(Faults::default()));
        let observer = Arc::new(Doubtful::default());
        let store = MemoryStore::open_lossy(clock, observer.clone(), faults.clone());
        let start = |n| vec![Command::start(charge(RunId(Uuid::from_u128(n))))];

        assert!(store.apply(start(1)).await.is_ok());
        assert!(!observer.0.load(SeqCst), "this commit was answered");
        faults.lose_answer.store(true, SeqCst);
        assert!(store.apply(start(2)).await.is_err());

        assert!(observer.0.load(SeqCst));
    }

    #[tokio::test]
    async fn a_lease_whose_commit_was_not_answered_is_given_back_and_delivered_again() {
        let namespace = Name::from("default");
        let (clock, faults) = (Arc::new(ManualClock::new(Timestamp(1))), Arc::new(Faults::default()));
        let store = MemoryStore::open_lossy(clock.clone(), Arc::new(Silent), faults.clone());
        let (_, mut assignments) = standing(&store).await;
        let id = RunId(Uuid::from_u128(2));
        let start = charge(id);

        faults.lose_answer.store(true, SeqCst);
        let lost = store.apply(vec![Command::start(start.clone())]).await;
        // Claims wait a second after a failed commit.
        clock.advance(std::time::Duration::from_secs(2));
        let again = store.apply(vec![Command::start(start)]).await.unwrap();
        let assignment = assignments.recv().await.unwrap();

        assert!(lost.is_err() && again[0].is_ok());
        assert_eq!((assignment.run.id, assignment.run.epoch), (id, 2));
        let run = store.run(&namespace, id).await.unwrap().unwrap().run;
        assert_eq!((run.crashes, run.attempts, run.dispatch_count), (0, 0, 2));
    }
}
