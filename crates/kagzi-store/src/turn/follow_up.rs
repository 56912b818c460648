//! What belongs to a decision on other runs.

use kagzi_model::{Act, namespace_handler};

use super::Turn;
use crate::{Backend, StoreError};

impl<B: Backend> Turn<'_, B> {
    /// Applies what belongs to a decision on other runs: a failed run and its handler exist together or not
    /// at all.
    pub(super) async fn follow_up(&mut self) -> Result<(), StoreError> {
        for id in std::mem::take(&mut self.fold.failed) {
            let Some(entry) = self.fold.entry(id) else { continue };
            let namespace = entry.aggregate.run.namespace.clone();
            let Some(queue) = self.handler_queue(&namespace).await? else { continue };
            let entry = self.fold.entry(id).expect("known above");
            if let Some((start, event)) = namespace_handler(&entry.aggregate, queue) {
                self.fold.append(id, event);
                self.fold.follow.push(start);
            }
        }
        // A followed command has nothing to follow itself: handlers start no handlers.
        for mut command in std::mem::take(&mut self.fold.follow) {
            if let Act::Start(start) = &mut command.act {
                self.find_business(start).await?;
                if self.taken_by_another(start) {
                    // The id of a handler follows from the failed run, and so does its run id: without a
                    // business id there is still one handler, and the failed run's history names it.
                    let (namespace, id) = (&start.namespace, start.business_id.as_deref());
                    tracing::warn!(%namespace, id, run = %start.id, "a handler's business id is taken by \
                        another run");
                    start.business_id = None;
                }
                self.controls_in_use(&start.namespace.clone()).await?;
                if let Some(filled) = self.fill(start) {
                    **start = filled;
                }
            } else {
                let key = command.run.clone();
                self.load_runs(vec![key]).await?;
            }
            if let Err(rejection) = self.decide(&command).await? {
                let (namespace, run) = (&command.run.namespace, command.run.id);
                tracing::error!(%namespace, %run, %rejection, "could not follow up on a decision");
            }
        }
        Ok(())
    }
}
