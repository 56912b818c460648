//! What happens to a batch that cannot be stored although the store works: it is taken apart until only the
//! culprit is refused.
//!
//! A batch mixes tenants. One command that the database refuses (a text that it cannot hold, an id that is
//! taken, a row that cannot be read) must not fail its neighbours, and it must not keep housekeeping or
//! claims from going on.

use kagzi_model::{Command, Rejection, RunId};
use tracing::error;

use super::{Ask, Failed, Lane, Manner, Message, PLAIN, Request};
use crate::{
    Backend, LaneStats, Outcome, StoreError,
    turn::{Moment, UnansweredLease},
};

/// Rows that are set aside in one go. What is still wrong then is found in the next turn.
const SUSPECTS_MAX: usize = 16;

impl<B: Backend> Lane<B> {
    /// Does each part of a failed batch by itself.
    pub(super) async fn take_apart(
        &mut self,
        moment: Moment,
        (returned, unanswered): (Vec<Command>, Vec<UnansweredLease>),
        batch: Vec<Message>,
        failed: Failed,
    ) {
        error!(error = %failed.error, messages = batch.len(), "a batch could not be stored, taking it apart");
        LaneStats::add(&self.stats.taken_apart, 1);
        if failed.commit_unanswered {
            self.observer.commit_unanswered();
        }
        // What the failed attempt leased may exist if its commit was asked for.
        let unanswered = unanswered.into_iter().chain(failed.leases);
        for lease in unanswered {
            let owed = std::slice::from_ref(&lease);
            match self.attempt(moment, (&[], owed), &mut [], PLAIN).await {
                Ok(done) => self.settle(Vec::new(), done),
                Err(failed) if failed.error.is_away() => self.unanswered.push(lease),
                // It runs out by itself.
                Err(failed) => error!(error = %failed.error, "a lease could not be given back"),
            }
        }
        for command in returned {
            match self.attempt(moment, (std::slice::from_ref(&command), &[]), &mut [], PLAIN).await {
                Ok(done) => self.settle(Vec::new(), done),
                Err(failed) if failed.error.is_away() => self.returned.push(command),
                Err(failed) => error!(error = %failed.error, "a lease could not be given back"),
            }
        }
        for message in batch {
            self.alone(moment, message).await;
        }
        self.claim_carefully(moment).await;
    }

    /// One message in a turn of its own.
    async fn alone(&mut self, moment: Moment, mut message: Message) {
        match self.attempt(moment, (&[], &[]), std::slice::from_mut(&mut message), PLAIN).await {
            Ok(done) => self.settle(vec![message], done),
            Err(failed) if failed.error.is_away() => self.refuse(vec![message], failed),
            Err(failed) => match message {
                Message::Apply(mut ask) => match self.by_run(moment, &ask.request, &failed.error).await {
                    Ok(outcomes) => {
                        ask.answer(outcomes);
                        Message::Apply(ask).send();
                    }
                    Err(error) => Message::Apply(ask).refuse(&error),
                },
                Message::Sweep(ask) => {
                    let swept = self.sweep_carefully(moment, Message::Sweep(ask)).await;
                    if let Err((message, error)) = swept {
                        message.refuse(&error);
                    }
                }
                other => other.refuse(&failed.error),
            },
        }
    }

    /// The commands of a call, run by run: those of one run belong together, those of different runs do not
    /// know each other.
    async fn by_run(
        &mut self,
        moment: Moment,
        commands: &[Command],
        error: &StoreError,
    ) -> Result<Vec<Outcome>, StoreError> {
        let mut runs: Vec<RunId> = Vec::new();
        let mut seen = crate::hash::HashSet::default();
        runs.extend(commands.iter().map(|command| command.run.id).filter(|run| seen.insert(*run)));
        let refused = |error: &StoreError| Err(Rejection::NotStorable { why: error.to_string() });
        if matches!(error, StoreError::Conflict(_)) && runs.len() == 1 {
            // Other servers write to this run all the time: it may be asked for again.
            return Err(error.clone());
        }
        if runs.len() == 1 {
            return Ok(commands.iter().map(|_| refused(error)).collect());
        }
        let mut outcomes: Vec<Option<Outcome>> = commands.iter().map(|_| None).collect();
        for run in runs {
            let of_run = |(_, command): &(usize, &Command)| command.run.id == run;
            let (places, own): (Vec<usize>, Vec<Command>) =
                commands.iter().enumerate().filter(of_run).map(|(at, command)| (at, command.clone())).unzip();
            let count = own.len();
            let (ask, mut answered) = Ask::new(own);
            let mut part = vec![Request::message(ask)];
            let part = match self.attempt(moment, (&[], &[]), &mut part, PLAIN).await {
                Ok(done) => {
                    self.settle(part, done);
                    answered.try_recv().unwrap_or_else(|_| Err(StoreError::Bug("no answer".into())))?
                }
                Err(failed) if failed.error.is_away() => return Err(failed.error),
                Err(failed) => (0..count).map(|_| refused(&failed.error)).collect(),
            };
            for (at, outcome) in places.into_iter().zip(part) {
                outcomes[at] = Some(outcome);
            }
        }
        Ok(outcomes.into_iter().map(|outcome| outcome.expect("every command belongs to a run")).collect())
    }

    /// Housekeeping that takes up one row at a time. The row that cannot be stored is set aside, and the rest
    /// goes on.
    async fn sweep_carefully(
        &mut self,
        moment: Moment,
        mut message: Message,
    ) -> Result<(), (Message, StoreError)> {
        let manner = Manner { careful: true, ..PLAIN };
        let mut last = None;
        for _ in 0..SUSPECTS_MAX {
            match self.attempt(moment, (&[], &[]), std::slice::from_mut(&mut message), manner).await {
                Ok(done) => {
                    self.settle(vec![message], done);
                    return Ok(());
                }
                Err(failed) if failed.suspect.is_some() && !failed.error.is_away() => {
                    last = Some(self.set_aside(moment, failed));
                }
                Err(failed) => return Err((message, failed.error)),
            }
        }
        Err((message, last.unwrap_or_else(|| StoreError::Bug("nothing could be swept".into()))))
    }

    /// Gives out runs one at a time until that works again.
    async fn claim_carefully(&mut self, moment: Moment) {
        if self.clock.steady() < self.claims_after {
            return;
        }
        for _ in 0..SUSPECTS_MAX {
            match self.attempt(moment, (&[], &[]), &mut [], Manner { claims: true, careful: true }).await {
                Ok(done) => return self.settle(Vec::new(), done),
                Err(failed) if failed.suspect.is_some() && !failed.error.is_away() => {
                    self.set_aside(moment, failed);
                }
                Err(failed) => {
                    self.refuse(Vec::new(), failed);
                    return;
                }
            }
        }
    }

    fn set_aside(&mut self, moment: Moment, failed: Failed) -> StoreError {
        let Failed { error, suspect, .. } = failed;
        if let Some(row) = suspect {
            self.stats.aside.put(row, &format!("what it leads to could not be stored: {error}"), moment.now);
        }
        error
    }
}
