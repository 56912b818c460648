//! The runs that this worker holds: one task each, and those whose journal is still arriving.

use std::collections::HashMap;
use std::future::Future;

use kagzi_proto::v1::{Assign, JournalPage, LeaseRef, StepRef, StepStarted};
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::Instant;

use crate::retry_policy;

#[derive(Default)]
pub(crate) struct InFlight {
    tasks: JoinSet<LeaseRef>,
    /// None is the runtime of whoever spawns.
    runs_on: Option<Handle>,
    runs: HashMap<String, Held>,
    /// Assigned, but with more journal to come. They count as held, or the server would think them lost.
    arriving: HashMap<String, (Box<Assign>, Vec<JournalPage>)>,
    /// Steps began that the server may have to hear of.
    pub(crate) has_untold: bool,
}

struct Held {
    epoch: u64,
    generation: u32,
    task: AbortHandle,
    /// Steps that began and have not ended. Few at a time.
    steps: Vec<Running>,
}

struct Running {
    began: Instant,
    started: Box<StepStarted>,
    /// The server has heard of it.
    told: bool,
}

impl Running {
    /// The notice for the server.
    fn tell(&mut self) -> StepStarted {
        self.told = true;
        StepStarted { elapsed_ms: retry_policy::millis(self.began.elapsed()), ..*self.started.clone() }
    }
}

impl InFlight {
    pub(crate) fn new(runs_on: Option<Handle>) -> InFlight {
        InFlight { runs_on, ..InFlight::default() }
    }

    /// The assignment, once its journal is complete.
    pub(crate) fn begin_arrival(&mut self, assign: Box<Assign>) -> Option<Box<Assign>> {
        if !assign.journal_continues {
            return Some(assign);
        }
        let run_id = assign.lease.as_ref().map(|lease| lease.run_id.clone()).unwrap_or_default();
        self.arriving.insert(run_id, (assign, Vec::new()));
        None
    }

    pub(crate) fn continue_arrival(&mut self, page: JournalPage) -> Option<Box<Assign>> {
        let lease = page.lease.as_ref()?;
        let (assign, pages) = self.arriving.get_mut(&lease.run_id)?;
        if assign.lease.as_ref() != Some(lease) {
            return None;
        }
        if page.journal_continues {
            pages.push(page);
            return None;
        }
        let (mut assign, mut pages) = self.arriving.remove(&lease.run_id)?;
        pages.push(page);
        // Once: a journal that grows page by page is copied again and again.
        assign.journal.reserve_exact(pages.iter().map(|page| page.journal.len()).sum());
        assign.journal.extend(pages.into_iter().flat_map(|page| page.journal));
        Some(assign)
    }

    /// Pages end with their stream. The server assigns such a run anew.
    pub(crate) fn forget_arrivals(&mut self) {
        self.arriving.clear();
    }

    pub(crate) fn spawn(
        &mut self,
        lease: LeaseRef,
        generation: u32,
        run: impl Future<Output = ()> + Send + 'static,
    ) {
        let ended = lease.clone();
        let run = async move {
            run.await;
            ended
        };
        let task = match &self.runs_on {
            Some(runtime) => self.tasks.spawn_on(run, runtime),
            None => self.tasks.spawn(run),
        };
        self.runs.insert(lease.run_id, Held { epoch: lease.epoch, generation, task, steps: Vec::new() });
    }

    pub(crate) fn holds(&self, lease: &LeaseRef) -> bool {
        self.runs.get(&lease.run_id).is_some_and(|held| held.epoch == lease.epoch)
    }

    /// A step began. The server hears of it only if it still runs a moment later: a notice for every step
    /// cost a tenth of all messages' work, and a short step has no use for it.
    pub(crate) fn step_began(&mut self, started: Box<StepStarted>) {
        let Some(lease) = &started.lease else { return };
        if let Some(held) = self.runs.get_mut(&lease.run_id)
            && held.epoch == lease.epoch
        {
            held.steps.retain(|known| known.started.step != started.step);
            held.steps.push(Running { began: Instant::now(), started, told: false });
            self.has_untold = true;
        }
    }

    /// An attempt of a step ended, one way or the other.
    pub(crate) fn step_ended(&mut self, lease: &LeaseRef, step: Option<&StepRef>) {
        if let Some(held) = self.runs.get_mut(&lease.run_id) {
            held.steps.retain(|known| known.started.step.as_ref() != step);
        }
    }

    /// A step was dropped while it ran. True: the server has heard that it runs.
    pub(crate) fn step_dropped(&mut self, lease: &LeaseRef, step: &StepRef) -> bool {
        let Some(held) = self.runs.get_mut(&lease.run_id).filter(|held| held.epoch == lease.epoch) else {
            return false;
        };
        let Some(at) = held.steps.iter().position(|known| known.started.step.as_ref() == Some(step)) else {
            return false;
        };
        held.steps.swap_remove(at).told
    }

    /// Every step that runs now, and for how long it has: for a server that must hear of them again.
    pub(crate) fn running_steps(&mut self) -> Vec<StepStarted> {
        self.has_untold = false;
        self.runs.values_mut().flat_map(|held| held.steps.iter_mut().map(Running::tell)).collect()
    }

    /// The notice of a step that speaks before the moment is over.
    pub(crate) fn tell_step(&mut self, lease: &LeaseRef, step: Option<&StepRef>) -> Option<StepStarted> {
        let held = self.runs.get_mut(&lease.run_id)?;
        let running = held.steps.iter_mut().find(|running| running.started.step.as_ref() == step)?;
        (!running.told).then(|| running.tell())
    }

    /// Steps that have run for a moment and that the server has not heard of.
    pub(crate) fn untold_steps(&mut self, began_before: Instant) -> Vec<StepStarted> {
        let mut untold = Vec::new();
        self.has_untold = false;
        for running in self.runs.values_mut().flat_map(|held| &mut held.steps).filter(|running| !running.told)
        {
            if running.began <= began_before {
                untold.push(running.tell());
            } else {
                self.has_untold = true;
            }
        }
        untold
    }

    /// The run was given to this worker again in its next generation: so its execution has continued in
    /// place, and what it said was committed. It is not held any more and ends by itself.
    pub(crate) fn let_continued_end(&mut self, next: &LeaseRef, generation: u32) -> Option<LeaseRef> {
        let held = self.runs.get(&next.run_id)?;
        if held.epoch + 1 != next.epoch || held.generation >= generation {
            return None;
        }
        let held = self.runs.remove(&next.run_id)?;
        Some(LeaseRef { run_id: next.run_id.clone(), epoch: held.epoch })
    }

    /// Stops what is executed under this lease or an older one, and answers with that lease.
    pub(crate) fn abort(&mut self, lost: &LeaseRef) -> Option<LeaseRef> {
        self.arriving.retain(|run_id, (assign, _)| {
            *run_id != lost.run_id || assign.lease.as_ref().is_some_and(|lease| lease.epoch > lost.epoch)
        });
        let epoch = self.runs.get(&lost.run_id)?.epoch;
        if epoch > lost.epoch {
            return None;
        }
        let held = self.runs.remove(&lost.run_id)?;
        held.task.abort();
        Some(LeaseRef { run_id: lost.run_id.clone(), epoch })
    }

    /// Runs that are executed, without those still arriving.
    pub(crate) fn executing(&self) -> Vec<LeaseRef> {
        let lease = |(run_id, held): (&String, &Held)| LeaseRef { run_id: run_id.clone(), epoch: held.epoch };
        self.runs.iter().map(lease).collect()
    }

    /// Everything whose lease must be renewed.
    pub(crate) fn held(&self) -> Vec<LeaseRef> {
        let mut held = self.executing();
        held.extend(self.arriving.values().filter_map(|(assign, _)| assign.lease.clone()));
        held
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.arriving.is_empty()
    }

    /// Waits for tasks to end; pending when there is none. Answers with the lease of a task that died
    /// without reporting the end of its run.
    pub(crate) async fn next_ended(&mut self) -> Option<LeaseRef> {
        let mut next = self.tasks.join_next().await;
        if next.is_none() {
            std::future::pending().await
        }
        // Runs whose ends were acknowledged together end together.
        while let Some(ended) = next {
            let died = self.settle(ended);
            if died.is_some() {
                return died;
            }
            next = self.tasks.try_join_next();
        }
        None
    }

    fn settle(&mut self, ended: Result<LeaseRef, JoinError>) -> Option<LeaseRef> {
        match ended {
            Ok(ended) => {
                if self.holds(&ended) {
                    self.runs.remove(&ended.run_id);
                }
                None
            }
            Err(error) if error.is_panic() => self.remove_task(error.id()),
            // Aborted: it left the list when that was decided.
            Err(_) => None,
        }
    }

    fn remove_task(&mut self, id: tokio::task::Id) -> Option<LeaseRef> {
        let run_id = self.runs.iter().find(|(_, held)| held.task.id() == id)?.0.clone();
        let held = self.runs.remove(&run_id)?;
        Some(LeaseRef { run_id, epoch: held.epoch })
    }
}

#[cfg(test)]
mod tests {
    use kagzi_proto::v1::JournalEntry;

    use super::*;

    fn lease(epoch: u64) -> LeaseRef {
        LeaseRef { run_id: "r1".to_owned(), epoch }
    }

    #[test]
    fn an_assignment_is_complete_with_its_last_page() {
        let mut in_flight = InFlight::default();
        let page = |journal_continues| JournalPage {
            lease: Some(lease(1)),
            journal: vec![JournalEntry::default()],
            journal_continues,
        };
        let assign =
            Box::new(Assign { lease: Some(lease(1)), journal_continues: true, ..Default::default() });

        assert!(in_flight.begin_arrival(assign).is_none());
        assert_eq!(in_flight.held(), [lease(1)]);
        assert!(in_flight.continue_arrival(page(true)).is_none());
        let complete = in_flight.continue_arrival(page(false)).unwrap();

        assert_eq!(complete.journal.len(), 2);
        assert!(in_flight.is_empty());
    }

    #[tokio::test]
    async fn losing_an_old_lease_does_not_stop_the_newer_execution() {
        let mut in_flight = InFlight::default();
        in_flight.spawn(lease(2), 1, std::future::pending());

        assert_eq!(in_flight.abort(&lease(1)), None);
        assert!(in_flight.holds(&lease(2)));
        assert_eq!(in_flight.abort(&lease(3)), Some(lease(2)));
        assert!(in_flight.is_empty());
    }

    #[tokio::test]
    async fn a_task_that_dies_names_its_run() {
        let mut in_flight = InFlight::default();
        in_flight.spawn(lease(1), 1, async { panic!("on purpose") });

        assert_eq!(in_flight.next_ended().await, Some(lease(1)));
        assert!(in_flight.is_empty());
    }
}
