//! One attempt at a batch, repeated while other servers change its rows.

use kagzi_model::Command;

use super::{Lane, Message};
use crate::{
    AsideRow, Backend, LaneStats, StoreError,
    turn::{Done, Memory, Moment, Turn, UnansweredLease},
};

/// How often a batch is repeated when other servers keep changing its rows.
const CONFLICTS_MAX: usize = 5;

/// A batch that was not answered.
pub(super) struct Failed {
    pub(super) error: StoreError,
    /// Leases of the batch: they may exist or not.
    pub(super) leases: Vec<UnansweredLease>,
    /// The commit may have happened, and only its answer was lost.
    pub(super) commit_unanswered: bool,
    /// The one row that a careful turn took up by itself.
    pub(super) suspect: Option<AsideRow>,
}

/// How an attempt goes about its batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    /// Waiting runs are given out too.
    pub(super) claims: bool,
    /// What the engine takes up by itself, it takes up one at a time: so the row that cannot be stored is
    /// found.
    pub(super) careful: bool,
}

/// Only what was asked for.
pub(super) const PLAIN: Manner = Manner { claims: false, careful: false };

impl<B: Backend> Lane<B> {
    /// Runs the batch, again if another server changed its rows meanwhile. After an error memory knows
    /// nothing that the batch may have made of it.
    pub(super) async fn attempt(
        &mut self,
        moment: Moment,
        (returned, unanswered): (&[Command], &[UnansweredLease]),
        batch: &mut [Message],
        manner: Manner,
    ) -> Result<Done, Failed> {
        let (mut conflicts, mut duplicate) = (0, false);
        loop {
            let memory = Memory {
                cache: &mut self.cache,
                worker_cache: &mut self.worker_cache,
                board: &mut self.board,
                controls: &mut self.controls,
            };
            let mut turn = Turn::new(moment, self.options, &mut self.backend, memory, &self.stats);
            if manner.careful {
                turn = turn.carefully();
            }
            if duplicate {
                turn = turn.looking_first();
            }
            let failed = match turn.run(returned, unanswered, batch, manner.claims).await {
                Ok(done) => return Ok(done),
                Err(error) => {
                    let (commit_unanswered, suspect) = (turn.committing, turn.suspect.take());
                    // Before the commit was asked for, there is nothing to be in doubt about.
                    let leases = if commit_unanswered { turn.unanswered() } else { Vec::new() };
                    let shared = self.options.shared_poll_ms.is_some();
                    let changes_controls = batch
                        .iter()
                        .any(|message| matches!(message, Message::Namespace(_) | Message::Gate(_)));
                    let all = !shared || changes_controls || error.is_away();
                    if !all {
                        turn.forget();
                    }
                    (Failed { error, leases, commit_unanswered, suspect }, all)
                }
            };
            let (failed, forget_all) = failed;
            self.backend.rollback().await;
            if forget_all {
                self.cache.clear();
                self.worker_cache.clear();
                self.controls.clear();
                // What the failed attempt claimed is waiting again.
                self.board.mark_all();
            }
            match &failed.error {
                StoreError::Conflict(why) | StoreError::Duplicate(why) if conflicts < CONFLICTS_MAX => {
                    tracing::debug!(why, "repeating a batch");
                    LaneStats::add(&self.stats.conflicts, 1);
                    conflicts += 1;
                    duplicate |= matches!(failed.error, StoreError::Duplicate(_));
                }
                _ => return Err(failed),
            }
        }
    }
}
