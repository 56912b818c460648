//! Which runs have the business ids that a turn is about to give.

use kagzi_model::{Act, Name, Report, StartRun, handler_business_ids};

use super::Turn;
use crate::{
    Backend, FoundBusiness, RunKey, StoreError,
    fold::{StartKey, Taken},
    lane::Message,
};

impl<B: Backend> Turn<'_, B> {
    /// Finds the run that may have the business id of a start, and loads it: without it the start would be
    /// decided as if the id were free.
    pub(super) async fn find_business(&mut self, start: &StartRun) -> Result<(), StoreError> {
        let chosen = start.business_id.as_ref();
        if (chosen.is_none() && !self.look_first) || !self.fold.lacks_business(start) {
            return Ok(());
        }
        if let Some(id) = chosen {
            return self.look_up_business(vec![(start.namespace.clone(), id.clone())]).await;
        }
        let run = RunKey { id: start.id, namespace: start.namespace.clone() };
        let found = self.backend.input(&run).await?;
        if found.is_some() {
            self.load_runs(vec![run]).await?;
        }
        let taken = found.map(|input| Taken { id: start.id, input, run: None });
        self.fold.know_business(StartKey::of(start), taken);
        Ok(())
    }

    /// A start that tells its run something meets the run's whole history, if the run is there: whether its
    /// channel is open, and whether it was told before.
    pub(super) async fn find_told(&mut self, start: &StartRun) -> Result<(), StoreError> {
        let Some(taken) = self.fold.taken_by(start).filter(|_| !start.signals.is_empty()) else {
            return Ok(());
        };
        let key = RunKey { id: taken.id, namespace: start.namespace.clone() };
        self.load_found(&[key]).await
    }

    /// Finds the business ids of all starts of a batch, and of the handlers of its failures, in one go.
    pub(super) async fn find_all_business(&mut self, batch: &[Message]) -> Result<(), StoreError> {
        let (mut keys, mut handlers) = (Vec::new(), Vec::new());
        for command in batch.iter().flat_map(Message::commands) {
            if let Act::Start(start) = &command.act
                && let Some(id) = &start.business_id
            {
                keys.push((start.namespace.clone(), id.clone()));
            }
            if self.shared && matches!(command.act, Act::Report { report: Report::Fail(_), .. }) {
                let of_handler = |id| (command.run.namespace.clone(), id);
                handlers.extend(handler_business_ids(command.run.id).map(of_handler));
            }
        }
        // One failure looks for its handlers itself, if it has any. Many would take a round trip each.
        if handlers.len() > 2 {
            keys.extend(handlers);
        }
        if keys.len() > 1 {
            keys.sort_unstable();
            keys.dedup();
        }
        self.look_up_business(keys).await
    }

    pub(super) async fn look_up_business(&mut self, keys: Vec<(Name, Name)>) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        let found = self.backend.find_business(&keys).await?;
        let mut taken: Vec<Option<Taken>> = keys.iter().map(|_| None).collect();
        for FoundBusiness { place, id, input, run } in found {
            taken[place] = Some(Taken { id, input, run: Some(run) });
        }
        for ((namespace, id), taken) in keys.into_iter().zip(taken) {
            self.fold.know_business(StartKey::Business(namespace, id), taken);
        }
        Ok(())
    }

    /// Whether the business id of a start that the engine makes names a run of somebody else. Callers are
    /// refused such ids, but rows from before that rule may have them.
    pub(super) fn taken_by_another(&self, start: &StartRun) -> bool {
        self.fold.taken_by(start).is_some_and(|taken| taken.id != start.id)
    }
}
