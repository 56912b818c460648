//! Published events and who waits for them: what the lane asks of their tables.

use std::future::Future;

use kagzi_model::{Delivery, Name, PublishedEvent, RunId, Timestamp, TopicKey};

use crate::{StoreError, topics::Room};

/// A run that waits for events of a topic. There is a row exactly for those that live and wait.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriptionRow {
    pub key: TopicKey,
    pub run: RunId,
}

/// Published events, for the connection that writes.
pub trait TopicRows: Send {
    /// Until the commit nobody else publishes on these topics or opens a wait for them. Whoever is alone on
    /// the database need not do anything.
    fn lock_topics(&mut self, _keys: &[TopicKey]) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }
    /// When the event with this id was published, if it is kept.
    fn published_at(
        &mut self,
        key: &TopicKey,
        id: &Name,
    ) -> impl Future<Output = Result<Option<Timestamp>, StoreError>> + Send;
    /// The place of the newest event of a topic.
    fn newest_event(
        &mut self,
        key: &TopicKey,
    ) -> impl Future<Output = Result<Option<Timestamp>, StoreError>> + Send;
    /// The first event of a topic behind this place that has not expired.
    fn kept_event(
        &mut self,
        key: &TopicKey,
        behind: Timestamp,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<PublishedEvent>, StoreError>> + Send;
    /// How many events a namespace keeps, and the bytes of their payloads.
    fn count_events(&mut self, namespace: &Name) -> impl Future<Output = Result<Room, StoreError>> + Send;
    /// Keeps a new event.
    fn keep_event(&mut self, event: &PublishedEvent) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Topics with events that are still to be delivered, whoever has waited longest first. Some of them may
    /// be named twice.
    fn undelivered(&mut self, limit: usize)
    -> impl Future<Output = Result<Vec<TopicKey>, StoreError>> + Send;
    /// The first event of a topic that is still to be delivered. Until the commit nobody else delivers it.
    fn first_undelivered(
        &mut self,
        key: &TopicKey,
    ) -> impl Future<Output = Result<Option<PublishedEvent>, StoreError>> + Send;
    /// Notes how far an event was delivered.
    fn delivered(
        &mut self,
        key: &TopicKey,
        id: &Name,
        delivery: Delivery,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Runs that wait for events of a topic, in the order of their ids, behind this one.
    fn subscribers(
        &mut self,
        key: &TopicKey,
        behind: Option<RunId>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<RunId>, StoreError>> + Send;
    /// Deletes up to `limit` events that have expired and were delivered, and says how many.
    fn forget_events(
        &mut self,
        now: Timestamp,
        limit: usize,
    ) -> impl Future<Output = Result<usize, StoreError>> + Send;
}
