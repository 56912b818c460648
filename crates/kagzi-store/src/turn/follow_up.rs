//! What belongs to a decision on other runs.

use kagzi_model::{Act, Command, Duty, Reply, RunKey, Started, namespace_handler, tell_not_started};

use super::Turn;
use crate::{Backend, StoreError};

impl<B: Backend> Turn<'_, B> {
    /// Applies what belongs to a decision on other runs, in the same commit: a failed run and its handler, a
    /// parent and its child exist together or not at all. What follows may have something to follow itself:
    /// the end of a child that is closed is told to its parent.
    pub(super) async fn follow_up(&mut self) -> Result<(), StoreError> {
        while !self.fold.failed.is_empty() || !self.fold.follow.is_empty() || !self.fold.asking.is_empty() {
            if !self.fold.asking.is_empty() {
                // Rare, and deep.
                Box::pin(self.settle_asking()).await?;
            }
            self.start_handlers().await?;
            let follow = std::mem::take(&mut self.fold.follow);
            if self.shared {
                // Another server may have told the same parent of another child since it was loaded here. Its
                // row is read and locked, so that the two wait for each other instead of colliding.
                for command in follow.iter().filter(|command| !matches!(command.act, Act::Start(_))) {
                    self.fold.evict(command.run.id);
                }
            }
            // In one go: the end of a parent may concern a hundred children.
            self.load(follow.iter()).await?;
            for command in follow {
                self.follow(command).await?;
            }
        }
        Ok(())
    }

    /// Adds the handlers that namespaces have for their failed runs.
    async fn start_handlers(&mut self) -> Result<(), StoreError> {
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
        Ok(())
    }

    /// One command that follows from another. What it follows from has happened: a refusal is a fact that
    /// somebody is told of, and never an error.
    async fn follow(&mut self, mut command: Command) -> Result<(), StoreError> {
        if let Act::Start(start) = &mut command.act {
            self.find_business(start).await?;
            if start.options.handler_of.is_some() && self.taken_by_another(start) {
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
        }
        let outcome = self.decide(&command).await?;
        let (namespace, run) = (&command.run.namespace, command.run.id);
        match (&command.act, outcome) {
            (Act::Start(start), outcome) => {
                let Some(parent) = &start.options.parent else {
                    if let Err(rejection) = outcome {
                        tracing::error!(%namespace, %run, %rejection, "could not follow up on a decision");
                    }
                    return Ok(());
                };
                let why = match outcome {
                    Ok(Reply::Started(Started { existed: true, run })) => {
                        format!("its id already names run {run}")
                    }
                    Ok(_) => return Ok(()),
                    Err(rejection) => rejection.to_string(),
                };
                let parent = RunKey::new(start.namespace.clone(), parent.run);
                self.fold.follow.push(tell_not_started(parent, start.id, &why));
            }
            // A parent that is no longer kept, or a child that has ended by itself.
            (Act::Duty(Duty::ChildEnded(_)) | Act::Order { .. }, Err(rejection)) => {
                tracing::debug!(%namespace, %run, %rejection, "nothing was left to follow up on");
            }
            (Act::Duty(_) | Act::Report { .. }, Err(rejection)) => {
                tracing::error!(%namespace, %run, %rejection, "could not follow up on a decision");
            }
            (Act::Duty(_) | Act::Order { .. } | Act::Report { .. }, Ok(_)) => {}
        }
        Ok(())
    }
}
