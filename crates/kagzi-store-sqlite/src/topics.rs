//! Published events and who waits for them, for the writer and for readers.

use async_trait::async_trait;
use kagzi_model::{Delivery, Name, Payload, PublishedEvent, RunId, Timestamp, Topic, TopicKey};
use kagzi_store::{
    Direction, EventPlace, ListedEvent, Room, StoreError, SubscriptionRow, TOTAL_MAX, TopicReads, TopicRows,
};

use crate::{
    backend::SqliteBackend,
    db::Db,
    reads::SqliteReads,
    value::{Row, bind},
};

kagzi_store::statements! {
/// Every statement about events and topics; a test prepares each on a real database.
STATEMENTS:

const PUBLISHED_AT: &str = "SELECT published_at
   FROM published_events
  WHERE namespace_id = ?1
    AND topic = ?2
    AND event_key = ?3
    AND event_id = ?4";

const NEWEST_EVENT: &str = "SELECT published_at
   FROM published_events INDEXED BY published_events_in_order
  WHERE namespace_id = ?1
    AND topic = ?2
    AND event_key = ?3
  ORDER BY published_at DESC
  LIMIT 1";

const KEPT_EVENT: &str = "SELECT namespace_id, topic, event_key, event_id, published_at, expires_at, due_at,
        reached_run_id, payload, content_type
   FROM published_events INDEXED BY published_events_in_order
  WHERE namespace_id = ?1
    AND topic = ?2
    AND event_key = ?3
    AND published_at > ?4
    AND expires_at > ?5
  ORDER BY published_at
  LIMIT 1";

const COUNT_EVENTS: &str = "SELECT count(*), coalesce(sum(length(payload)), 0)
   FROM published_events
  WHERE namespace_id = ?1";

const KEEP_EVENT: &str = "INSERT INTO published_events (namespace_id, topic, event_key, event_id,
        published_at, expires_at, due_at, reached_run_id, payload, content_type)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

const UNDELIVERED: &str = "SELECT namespace_id, topic, event_key
   FROM published_events INDEXED BY published_events_due
  WHERE due_at IS NOT NULL
  ORDER BY due_at, published_at, namespace_id, topic, event_key
  LIMIT ?1";

const FIRST_UNDELIVERED: &str = "SELECT namespace_id, topic, event_key, event_id, published_at, expires_at,
        due_at, reached_run_id, payload, content_type
   FROM published_events INDEXED BY published_events_undelivered
  WHERE namespace_id = ?1
    AND topic = ?2
    AND event_key = ?3
    AND due_at IS NOT NULL
  ORDER BY published_at
  LIMIT 1";

const DELIVERED: &str = "UPDATE published_events
    SET due_at = ?5, reached_run_id = ?6
  WHERE namespace_id = ?1
    AND topic = ?2
    AND event_key = ?3
    AND event_id = ?4";

const SUBSCRIBERS: &str = "SELECT run_id
   FROM event_subscriptions
  WHERE namespace_id = ?1
    AND topic = ?2
    AND event_key = ?3
    AND run_id > ?4
  ORDER BY run_id
  LIMIT ?5";

const FORGET_EVENTS: &str = "DELETE FROM published_events
  WHERE rowid IN (SELECT rowid
                    FROM published_events
                   WHERE expires_at <= ?1
                     AND due_at IS NULL
                   ORDER BY expires_at
                   LIMIT ?2)";

const SUBSCRIBE: &str = "INSERT OR IGNORE INTO event_subscriptions (namespace_id, topic, event_key, run_id)
 VALUES (?1, ?2, ?3, ?4)";

const UNSUBSCRIBE: &str = "DELETE FROM event_subscriptions
  WHERE namespace_id = ?1
    AND topic = ?2
    AND event_key = ?3
    AND run_id = ?4";

const KEPT_BEHIND: &str = "SELECT namespace_id, topic, event_key, event_id, published_at, expires_at,
        due_at IS NULL, length(payload)
   FROM published_events
  WHERE namespace_id = ?1
    AND (topic, event_key, published_at) > (?2, ?3, ?4)
    AND topic >= ?2
    AND (topic = ?5 OR ?5 = '')
  ORDER BY topic, event_key, published_at
  LIMIT ?6";

const KEPT_BEFORE: &str = "SELECT namespace_id, topic, event_key, event_id, published_at, expires_at,
        due_at IS NULL, length(payload)
   FROM published_events
  WHERE namespace_id = ?1
    AND ((topic, event_key, published_at) < (?2, ?3, ?4) OR ?2 = '')
    AND (topic = ?5 OR ?5 = '')
  ORDER BY topic DESC, event_key DESC, published_at DESC
  LIMIT ?6";

const COUNT_KEPT: &str = "SELECT count(*)
   FROM (SELECT 1
           FROM published_events
          WHERE namespace_id = ?1
            AND (topic = ?2 OR ?2 = '')
          LIMIT ?3) AS kept";
}

impl TopicRows for SqliteBackend {
    async fn published_at(&mut self, key: &TopicKey, id: &Name) -> Result<Option<Timestamp>, StoreError> {
        let TopicKey { namespace, topic } = key;
        self.db().first(PUBLISHED_AT, bind![namespace, topic.name, topic.key, id], |row| row.get(0))
    }

    async fn newest_event(&mut self, key: &TopicKey) -> Result<Option<Timestamp>, StoreError> {
        let TopicKey { namespace, topic } = key;
        self.db().first(NEWEST_EVENT, bind![namespace, topic.name, topic.key], |row| row.get(0))
    }

    async fn kept_event(
        &mut self,
        key: &TopicKey,
        behind: Timestamp,
        now: Timestamp,
    ) -> Result<Option<PublishedEvent>, StoreError> {
        let TopicKey { namespace, topic } = key;
        self.db().first(KEPT_EVENT, bind![namespace, topic.name, topic.key, behind, now], read)
    }

    async fn count_events(&mut self, namespace: &Name) -> Result<Room, StoreError> {
        let read = |row: &Row<'_>| Ok(Room { events: row.get(0)?, bytes: row.get(1)? });
        let counted = self.db().first(COUNT_EVENTS, bind![namespace], read)?;
        Ok(counted.unwrap_or(Room { events: 0, bytes: 0 }))
    }

    async fn keep_event(&mut self, event: &PublishedEvent) -> Result<(), StoreError> {
        let PublishedEvent { key, id, at, expires_at, delivery, payload } = event;
        let TopicKey { namespace, topic } = key;
        let (due_at, reached) = columns(*delivery);
        let data: &[u8] = &payload.data;
        let all = bind![
            namespace,
            topic.name,
            topic.key,
            id,
            *at,
            *expires_at,
            due_at,
            reached,
            data,
            payload.content_type
        ];
        self.db().execute(KEEP_EVENT, all).map(drop)
    }

    async fn undelivered(&mut self, limit: usize) -> Result<Vec<TopicKey>, StoreError> {
        self.db().all(UNDELIVERED, bind![limit], read_key)
    }

    async fn first_undelivered(&mut self, key: &TopicKey) -> Result<Option<PublishedEvent>, StoreError> {
        let TopicKey { namespace, topic } = key;
        self.db().first(FIRST_UNDELIVERED, bind![namespace, topic.name, topic.key], read)
    }

    async fn delivered(&mut self, key: &TopicKey, id: &Name, delivery: Delivery) -> Result<(), StoreError> {
        let TopicKey { namespace, topic } = key;
        let (due_at, reached) = columns(delivery);
        self.db().execute(DELIVERED, bind![namespace, topic.name, topic.key, id, due_at, reached]).map(drop)
    }

    async fn subscribers(
        &mut self,
        key: &TopicKey,
        behind: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<RunId>, StoreError> {
        let TopicKey { namespace, topic } = key;
        let behind = behind.unwrap_or(RunId(uuid::Uuid::nil()));
        self.db().all(SUBSCRIBERS, bind![namespace, topic.name, topic.key, behind, limit], |row| row.get(0))
    }

    async fn forget_events(&mut self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.db().execute(FORGET_EVENTS, bind![now, limit])
    }
}

/// Writes the waits that were opened and those that are over.
pub fn write(
    db: &Db,
    subscribed: &[SubscriptionRow],
    unsubscribed: &[SubscriptionRow],
) -> Result<(), StoreError> {
    for (sql, rows) in [(UNSUBSCRIBE, unsubscribed), (SUBSCRIBE, subscribed)] {
        for SubscriptionRow { key: TopicKey { namespace, topic }, run } in rows {
            db.execute(sql, bind![namespace, topic.name, topic.key, run])?;
        }
    }
    Ok(())
}

fn columns(delivery: Delivery) -> (Option<Timestamp>, Option<RunId>) {
    match delivery {
        Delivery::Due { at, behind } => (Some(at), behind),
        Delivery::Done => (None, None),
    }
}

fn read_key(row: &Row<'_>) -> Result<TopicKey, StoreError> {
    let topic = Topic { name: row.get(1)?, key: row.get(2)? };
    Ok(TopicKey { namespace: row.get(0)?, topic })
}

fn read(row: &Row<'_>) -> Result<PublishedEvent, StoreError> {
    let due: Option<Timestamp> = row.get(6)?;
    let behind: Option<RunId> = row.get(7)?;
    Ok(PublishedEvent {
        key: read_key(row)?,
        id: row.get(3)?,
        at: row.get(4)?,
        expires_at: row.get(5)?,
        delivery: due.map_or(Delivery::Done, |at| Delivery::Due { at, behind }),
        payload: Payload { data: row.bytes(8)?.to_vec().into(), content_type: row.get(9)? },
    })
}

#[async_trait]
impl TopicReads for SqliteReads {
    async fn kept_events(
        &self,
        namespace: &Name,
        topic: Option<&Name>,
        direction: Direction,
        from: Option<&EventPlace>,
        limit: usize,
    ) -> Result<Vec<ListedEvent>, StoreError> {
        let sql = match direction {
            Direction::Next => KEPT_BEHIND,
            Direction::Prev => KEPT_BEFORE,
        };
        let (namespace, topic) = (namespace.clone(), topic.cloned().unwrap_or_default());
        let nowhere = EventPlace { topic: Name::empty(), key: Name::empty(), at: Timestamp(i64::MIN) };
        let from = from.cloned().unwrap_or(nowhere);
        let bound = move |db: &Db| {
            db.all(sql, bind![namespace, from.topic, from.key, from.at, topic, limit], read_listed)
        };
        self.pool().read(bound).await
    }

    async fn count_kept_events(&self, namespace: &Name, topic: Option<&Name>) -> Result<u64, StoreError> {
        let (namespace, topic) = (namespace.clone(), topic.cloned().unwrap_or_default());
        let count =
            move |db: &Db| db.first(COUNT_KEPT, bind![namespace, topic, TOTAL_MAX + 1], |row| row.get(0));
        Ok(self.pool().read(count).await?.unwrap_or(0))
    }
}

fn read_listed(row: &Row<'_>) -> Result<ListedEvent, StoreError> {
    Ok(ListedEvent {
        key: read_key(row)?,
        id: row.get(3)?,
        at: row.get(4)?,
        expires_at: row.get(5)?,
        is_delivered: row.get(6)?,
        payload_bytes: row.get(7)?,
    })
}
