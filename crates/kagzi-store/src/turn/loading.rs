//! What a turn loads of runs before it decides about them.

use kagzi_model::{Act, Command};

use super::Turn;
use crate::{AsideRow, Backend, LaneStats, Loaded, RunKey, StoreError};

impl<B: Backend> Turn<'_, B> {
    /// Loads in one go what the commands need and memory does not have.
    pub(super) async fn load<'c>(
        &mut self,
        commands: impl Iterator<Item = &'c Command>,
    ) -> Result<(), StoreError> {
        let mut lacking = Vec::new();
        for command in commands {
            if !matches!(command.act, Act::Start(_)) && self.fold.lacks(command.run.id) {
                lacking.push(command.run.clone());
            }
        }
        self.load_runs(lacking).await
    }

    pub(super) async fn load_runs(&mut self, mut keys: Vec<RunKey>) -> Result<(), StoreError> {
        keys.retain(|key| self.fold.lacks(key.id));
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            return Ok(());
        }
        let Loaded { runs, unreadable } = self.backend.load(&keys).await?;
        for aggregate in runs {
            let key = RunKey { id: aggregate.run.id, namespace: aggregate.run.namespace.clone() };
            match &aggregate.unknown {
                None => {
                    LaneStats::add(&self.stats.runs_loaded, 1);
                    let living = aggregate.last_seq + 1 - aggregate.run.first_seq;
                    LaneStats::add(&self.stats.events_loaded, living);
                    self.stats.aside.take_back(&AsideRow::Run(key));
                    self.fold.know(aggregate);
                }
                Some(kind) => {
                    let why = format!(
                        "its history has an event '{kind}' that this server does not understand: a newer \
                         server \
                         wrote it, or it is damaged"
                    );
                    self.stats.aside.put(AsideRow::Run(key), &why, self.now);
                }
            }
        }
        for (key, why) in unreadable {
            self.stats.aside.put(AsideRow::Run(key), &why, self.now);
        }
        Ok(())
    }

    /// Loads runs that the database named, although memory may think otherwise of them.
    pub(super) async fn load_found(&mut self, keys: &[RunKey]) -> Result<(), StoreError> {
        if self.shared {
            for key in keys {
                self.fold.evict(key.id);
            }
        }
        self.load_runs(keys.to_vec()).await
    }
}
