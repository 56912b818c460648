//! Questions to people and the outbox: what the lane asks of their tables.

use std::future::Future;

use kagzi_model::{
    Name, NounRow, RunKey, Timestamp,
    intervention::{Intervention, InterventionKey, Notice},
};

use crate::{StoreError, TakeNotices};

/// What of questions and notices a batch has changed.
#[derive(Debug, Default)]
pub struct PeopleSet {
    pub questions: crate::Changes<Intervention>,
    /// Questions that were closed: of their notices nothing more is sent that was not sent yet.
    pub silenced: Vec<InterventionKey>,
    /// New lines of the outbox. One that is there already is the same.
    pub notices: Vec<Notice>,
    /// Lines that were taken and sent, or not.
    pub settled: Vec<Notice>,
}

impl PeopleSet {
    /// Nothing to write.
    pub fn is_empty(&self) -> bool {
        self.questions.is_empty()
            && self.silenced.is_empty()
            && self.notices.is_empty()
            && self.settled.is_empty()
    }
}

/// A question that has something to do, with its run.
pub type DueQuestion = (InterventionKey, RunKey);

/// Questions and notices, for the connection that writes.
pub trait InterventionRows: Send {
    /// One question, kept for this transaction. Its run was loaded before: that is the order of locks.
    fn load_intervention(
        &mut self,
        key: &InterventionKey,
    ) -> impl Future<Output = Result<Option<Intervention>, StoreError>> + Send;
    /// Questions about which time has something to do, longest due first.
    fn due_interventions(
        &mut self,
        now: Timestamp,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<DueQuestion>, StoreError>> + Send;
    /// When the next question has something to do.
    fn next_intervention(&mut self) -> impl Future<Output = Result<Option<Timestamp>, StoreError>> + Send;
    /// How many questions are pending of this person, counted no further than `max`.
    fn pending_of(
        &mut self,
        namespace: &Name,
        person: &Name,
        max: usize,
    ) -> impl Future<Output = Result<usize, StoreError>> + Send;
    /// The oldest question of this person that waits for room.
    fn queued_of(
        &mut self,
        namespace: &Name,
        person: &Name,
    ) -> impl Future<Output = Result<Option<InterventionKey>, StoreError>> + Send;
    /// The nouns of a kind, for those that a decision needs all of.
    fn all_nouns(
        &mut self,
        namespace: &Name,
        kind: &str,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<NounRow>, StoreError>> + Send;
    /// Notices of a channel that are due, longest due first; nobody else takes them before `until`.
    fn take_notices(
        &mut self,
        now: Timestamp,
        take: TakeNotices,
    ) -> impl Future<Output = Result<Vec<Notice>, StoreError>> + Send;
}
