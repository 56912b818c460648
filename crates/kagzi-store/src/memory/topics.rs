//! Published events of the reference store.

use async_trait::async_trait;
use kagzi_model::{Delivery, Name, PublishedEvent, RunId, Timestamp, TopicKey};

use super::{MemoryBackend, MemoryReads, Tables};
use crate::{
    Direction, EventPlace, ListedEvent, StoreError, SubscriptionRow, TOTAL_MAX, TopicReads, TopicRows,
    topics::Room,
};

impl Tables {
    fn of_topic(&self, key: &TopicKey) -> impl Iterator<Item = &PublishedEvent> {
        let from = (key.clone(), Timestamp(i64::MIN));
        self.published.range(from..=(key.clone(), Timestamp::MAX)).map(|(_, event)| event)
    }

    fn event_mut(&mut self, key: &TopicKey, id: &Name) -> Option<&mut PublishedEvent> {
        self.published.values_mut().find(|event| event.key == *key && event.id == *id)
    }
}

fn due_at(event: &PublishedEvent) -> Option<Timestamp> {
    match event.delivery {
        Delivery::Due { at, .. } => Some(at),
        Delivery::Done => None,
    }
}

impl TopicRows for MemoryBackend {
    async fn published_at(&mut self, key: &TopicKey, id: &Name) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.working.of_topic(key).find(|event| event.id == *id).map(|event| event.at))
    }

    async fn newest_event(&mut self, key: &TopicKey) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.working.of_topic(key).last().map(|event| event.at))
    }

    async fn kept_event(
        &mut self,
        key: &TopicKey,
        behind: Timestamp,
        now: Timestamp,
    ) -> Result<Option<PublishedEvent>, StoreError> {
        let is_wanted = |event: &&PublishedEvent| event.at > behind && event.expires_at > now;
        Ok(self.working.of_topic(key).find(is_wanted).cloned())
    }

    async fn count_events(&mut self, namespace: &Name) -> Result<Room, StoreError> {
        let kept = self.working.published.values().filter(|event| event.key.namespace == *namespace);
        Ok(kept.fold(Room { events: 0, bytes: 0 }, |sum, event| Room {
            events: sum.events + 1,
            bytes: sum.bytes + event.payload.data.len() as u64,
        }))
    }

    async fn keep_event(&mut self, event: &PublishedEvent) -> Result<(), StoreError> {
        self.working.published.insert((event.key.clone(), event.at), event.clone());
        Ok(())
    }

    async fn undelivered(&mut self, limit: usize) -> Result<Vec<TopicKey>, StoreError> {
        let mut due: Vec<(Timestamp, &PublishedEvent)> = Vec::new();
        due.extend(self.working.published.values().filter_map(|event| Some((due_at(event)?, event))));
        due.sort_by_key(|(at, event)| (*at, event.at, event.key.clone()));
        Ok(due.into_iter().take(limit).map(|(_, event)| event.key.clone()).collect())
    }

    async fn first_undelivered(&mut self, key: &TopicKey) -> Result<Option<PublishedEvent>, StoreError> {
        Ok(self.working.of_topic(key).find(|event| due_at(event).is_some()).cloned())
    }

    async fn delivered(&mut self, key: &TopicKey, id: &Name, delivery: Delivery) -> Result<(), StoreError> {
        if let Some(event) = self.working.event_mut(key, id) {
            event.delivery = delivery;
        }
        Ok(())
    }

    async fn subscribers(
        &mut self,
        key: &TopicKey,
        behind: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<RunId>, StoreError> {
        let waits = |row: &&SubscriptionRow| row.key == *key && behind.is_none_or(|behind| row.run > behind);
        Ok(self.working.subscriptions.iter().filter(waits).take(limit).map(|row| row.run).collect())
    }

    async fn forget_events(&mut self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let published = &mut self.working.published;
        let is_over = |event: &PublishedEvent| event.expires_at <= now && due_at(event).is_none();
        let mut over: Vec<(Timestamp, _)> = Vec::new();
        over.extend(
            published.iter().filter(|(_, event)| is_over(event)).map(|(at, event)| (event.expires_at, at)),
        );
        over.sort_by_key(|(expires_at, _)| *expires_at);
        let gone: Vec<_> = over.into_iter().take(limit).map(|(_, at)| at.clone()).collect();
        gone.iter().for_each(|at| drop(published.remove(at)));
        Ok(gone.len())
    }
}

#[async_trait]
impl TopicReads for MemoryReads {
    async fn kept_events(
        &self,
        namespace: &Name,
        topic: Option<&Name>,
        direction: Direction,
        from: Option<&EventPlace>,
        limit: usize,
    ) -> Result<Vec<ListedEvent>, StoreError> {
        let tables = self.tables.read();
        let place =
            |event: &PublishedEvent| (event.key.topic.name.clone(), event.key.topic.key.clone(), event.at);
        let beside = from.map(|from| (from.topic.clone(), from.key.clone(), from.at));
        let is_wanted = |event: &&PublishedEvent| {
            event.key.namespace == *namespace && topic.is_none_or(|topic| event.key.topic.name == *topic)
        };
        let rows = tables.published.values().filter(is_wanted);
        Ok(match direction {
            Direction::Next => {
                let behind = rows.filter(|row| beside.as_ref().is_none_or(|beside| place(row) > *beside));
                behind.take(limit).map(listed).collect()
            }
            Direction::Prev => {
                let before = rows.filter(|row| beside.as_ref().is_none_or(|beside| place(row) < *beside));
                before.rev().take(limit).map(listed).collect()
            }
        })
    }

    async fn count_kept_events(&self, namespace: &Name, topic: Option<&Name>) -> Result<u64, StoreError> {
        let all = self.kept_events(namespace, topic, Direction::Next, None, TOTAL_MAX as usize + 1).await?;
        Ok(all.len() as u64)
    }
}

fn listed(event: &PublishedEvent) -> ListedEvent {
    ListedEvent {
        key: event.key.clone(),
        id: event.id.clone(),
        at: event.at,
        expires_at: event.expires_at,
        is_delivered: due_at(event).is_none(),
        payload_bytes: event.payload.data.len() as u64,
    }
}
