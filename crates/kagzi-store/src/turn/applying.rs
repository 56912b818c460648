//! A command's way through a turn: what it needs is made ready, it is decided, and what follows is done.

use kagzi_model::{
    Act, Attempted, Command, Order, Reclaimed, Rejection, Reply, Report, RunFailed, RunKey, Signalled,
    is_event_channel,
};

use super::Turn;
use crate::{Backend, LaneStats, Outcome, StoreError, fold::stale_write};

impl<B: Backend> Turn<'_, B> {
    /// Decides a command. A decision that writes is checked by the database: the row's version or the event's
    /// number is taken when another server was first. One that writes nothing, a refusal above all, is
    /// checked here: made from memory alone on a shared database, it is made again from the row.
    pub(super) async fn decide(&mut self, command: &Command) -> Result<Outcome, StoreError> {
        if let Some(refused) = self.left_alone(command) {
            return Ok(Err(refused));
        }
        let outcome = self.fold.apply(command);
        // Heartbeats have compared their runs with the database already.
        let renewed = outcome.is_ok() && matches!(command.act, Act::Report { report: Report::Renew(_), .. });
        if self.shared
            && !renewed
            && let Some(namespace) = self.fold.evict(command.run.id)
        {
            // In its own namespace: a command that names the run in another one must not take it away from
            // the commands that follow.
            self.load_runs(vec![RunKey::new(namespace, command.run.id)]).await?;
            return Ok(self.fold.apply(command));
        }
        Ok(outcome)
    }

    /// A run that cannot be read here is not decided here.
    pub(super) fn left_alone(&self, command: &Command) -> Option<Rejection> {
        if self.stats.aside.is_empty() || matches!(command.act, Act::Start(_)) {
            return None;
        }
        let key = command.run.clone();
        let note = self.stats.aside.why(&key).filter(|_| self.fold.lacks(key.id))?;
        Some(Rejection::Unreadable { run: key.id, why: note.why })
    }

    pub(super) async fn apply(&mut self, command: &Command) -> Result<Outcome, StoreError> {
        if let Act::Report { report, .. } = &command.act
            && report.awaits().is_some_and(|wait| is_event_channel(&wait.channel))
        {
            Box::pin(self.hear_before(command)).await?;
        }
        let outcome = match self.prepare(command).await? {
            Ok(Some(filled)) => self.decide(&filled).await?,
            Ok(None) => self.decide(command).await?,
            Err(refused) => Err(refused),
        };
        self.follow_up().await?;
        self.count(command, &outcome);
        Ok(outcome)
    }

    pub(super) fn count(&mut self, command: &Command, outcome: &Outcome) {
        self.commands += 1;
        LaneStats::add(&self.stats.commands, 1);
        match outcome {
            Ok(Reply::Attempted(Attempted::Retry { .. })) => LaneStats::add(&self.stats.step_retries, 1),
            Ok(
                Reply::RunFailed(RunFailed { retry_at: Some(_) })
                | Reply::Reclaimed(Reclaimed::TakenBack { at: Some(_) }),
            ) => LaneStats::add(&self.stats.run_retries, 1),
            Ok(Reply::Signalled(Signalled { already: false })) => {
                LaneStats::add(&self.stats.signals_told, 1);
            }
            Ok(Reply::Signalled(Signalled { already: true })) => {
                LaneStats::add(&self.stats.signals_repeated, 1);
            }
            Ok(
                Reply::Attempted(Attempted::Final { .. })
                | Reply::RunFailed(RunFailed { retry_at: None })
                | Reply::Reclaimed(_)
                | Reply::Started(_)
                | Reply::Claimed(_)
                | Reply::Begin(_)
                | Reply::Done(_)
                | Reply::Asleep(_)
                | Reply::Waited(_)
                | Reply::ChildBegan(_)
                | Reply::Blocked(_)
                | Reply::Ordered(_),
            ) => {}
            Err(rejection) => {
                LaneStats::add(&self.stats.refused, 1);
                if matches!(&command.act, Act::Order { order: Order::Signal(_), .. }) {
                    let full = matches!(rejection, Rejection::TooManySignals { .. });
                    let counter = if full { &self.stats.signals_full } else { &self.stats.signals_refused };
                    LaneStats::add(counter, 1);
                }
                if stale_write(command, rejection) {
                    LaneStats::add(&self.stats.refused_stale, 1);
                }
            }
        }
    }

    /// What a start needs before it is decided: the run that may have its business id, and the rules of its
    /// namespace. Answers with what these make of the start, if they fill any of its fields.
    pub(super) async fn prepare(
        &mut self,
        command: &Command,
    ) -> Result<Result<Option<Command>, Rejection>, StoreError> {
        let Act::Start(start) = &command.act else { return Ok(Ok(None)) };
        self.find_business(start).await?;
        self.find_told(start).await?;
        let admitted = self.admit(start).await?;
        Ok(admitted.map(|filled| filled.map(Command::start)))
    }
}
