//! A call: an operation gets its identity, and what is recorded of it is looked up.

use std::sync::Arc;

use kagzi_proto::v1::StepRef;

use crate::run::context::WorkflowContext;
use crate::run::inside;
use crate::run::journal::Recorded;
use crate::run::slot::Slot;
use crate::run::state::RunState;

/// A step or sleep that was called.
pub(crate) struct Called {
    pub(crate) slot: Arc<Slot>,
    pub(crate) recorded: Option<Recorded>,
}

impl WorkflowContext {
    /// Gives the step its identity and looks it up in the journal, at the moment of the call. The error is
    /// told when the call is awaited.
    pub(crate) fn call(&self, name: &str) -> anyhow::Result<Called> {
        self.misplaced(name)?;
        Ok(self.called(self.scope.call(name)?))
    }

    /// The same for an operation whose path is its own, whatever the scope: somebody else knows it by that.
    pub(crate) fn call_own(&self, path: String) -> anyhow::Result<Called> {
        self.misplaced(&path)?;
        self.run.turns.lock().scopes.call_own(self.scope.number(), &path);
        Ok(self.called(self.scope.call_own(path)))
    }

    /// The same for a scope that is recorded as one, and the context of its code.
    pub(crate) fn call_scope(&self, name: &str) -> anyhow::Result<(Called, WorkflowContext)> {
        self.misplaced(name)?;
        let (step, scope) = self.scope.call_scope(name)?;
        let context = WorkflowContext { run: self.run.clone(), scope: Arc::new(scope) };
        Ok((self.called(step), context))
    }

    /// The context of a scope that is recorded as one, now that its code begins under this number.
    pub(crate) fn begun(&self, number: usize) -> WorkflowContext {
        WorkflowContext { run: self.run.clone(), scope: Arc::new(self.scope.begun(number)) }
    }

    /// Fails where the code that is being executed must not use this context.
    fn misplaced(&self, what: &str) -> anyhow::Result<()> {
        let misplaced = inside::misplaced(self.run.key(), self.scope.number(), what);
        misplaced.map_or(Ok(()), Err)
    }

    /// The scopes around this context that are recorded as one, by their numbers.
    pub(crate) fn scopes(&self) -> &[usize] {
        self.scope.numbers()
    }

    fn called(&self, mut step: StepRef) -> Called {
        let recorded = self.run.journal.lock().take(&step);
        if let Some(known) = recorded.as_ref().and_then(|recorded| recorded.entry.step.as_ref()) {
            step.position = known.position;
        }
        let mut turns = self.run.turns.lock();
        let slot = Slot::new(self.run.clone(), step, turns.told(), self.scope.number());
        if let Some(Recorded { place, weight, .. }) = &recorded
            && *place > 0
        {
            turns.call_recorded(*place, &slot, *weight);
        }
        drop(turns);
        Called { slot, recorded }
    }

    pub(crate) fn run_state(&self) -> &Arc<RunState> {
        &self.run
    }
}
