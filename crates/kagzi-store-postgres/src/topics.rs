//! Published events and who waits for them, for the writer and for readers.

use async_trait::async_trait;
use kagzi_model::{Delivery, Name, Payload, PublishedEvent, RunId, Timestamp, Topic, TopicKey};
use kagzi_store::{
    Direction, EventPlace, ListedEvent, Room, StoreError, SubscriptionRow, TOTAL_MAX, TopicReads, TopicRows,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    backend::PostgresBackend,
    reads::PostgresReads,
    row,
    session::Session,
    write::{Sending, column, send},
};

kagzi_store::statements! {
/// Every statement about events and topics; a test prepares each on a real database.
STATEMENTS:

// A lock of memory and not of a row: a topic that nobody has used yet can be locked too, and none is left
// behind. In the order of their numbers, so that two servers never wait for each other crosswise.
const LOCK_TOPICS: &str = "SELECT pg_advisory_xact_lock(461195673, number)
   FROM (SELECT DISTINCT hashtext(name) AS number
           FROM unnest($1::text[]) AS name
          ORDER BY number) AS topics";

const PUBLISHED_AT: &str = "SELECT published_at
   FROM kagzi.published_events
  WHERE namespace_id = $1
    AND topic = $2
    AND event_key = $3
    AND event_id = $4";

const NEWEST_EVENT: &str = "SELECT published_at
   FROM kagzi.published_events
  WHERE namespace_id = $1
    AND topic = $2
    AND event_key = $3
  ORDER BY published_at DESC
  LIMIT 1";

const KEPT_EVENT: &str = "SELECT namespace_id, topic, event_key, event_id, published_at, expires_at, due_at,
        reached_run_id, payload, content_type
   FROM kagzi.published_events
  WHERE namespace_id = $1
    AND topic = $2
    AND event_key = $3
    AND published_at > $4
    AND expires_at > $5
  ORDER BY published_at
  LIMIT 1";

const COUNT_EVENTS: &str = "SELECT count(*), coalesce(sum(octet_length(payload)), 0)::bigint
   FROM kagzi.published_events
  WHERE namespace_id = $1";

const KEEP_EVENT: &str = "INSERT INTO kagzi.published_events (namespace_id, topic, event_key, event_id,
        published_at, expires_at, due_at, reached_run_id, payload, content_type)
 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

const UNDELIVERED: &str = "SELECT namespace_id, topic, event_key
   FROM kagzi.published_events
  WHERE due_at IS NOT NULL
  ORDER BY due_at, published_at, namespace_id, topic, event_key
  LIMIT $1";

// Locked, so that two servers do not deliver the same event: the second one waits, and finds out how far the
// first one came.
const FIRST_UNDELIVERED: &str = "SELECT namespace_id, topic, event_key, event_id, published_at, expires_at,
        due_at, reached_run_id, payload, content_type
   FROM kagzi.published_events
  WHERE namespace_id = $1
    AND topic = $2
    AND event_key = $3
    AND due_at IS NOT NULL
  ORDER BY published_at
  LIMIT 1
    FOR UPDATE";

const DELIVERED: &str = "UPDATE kagzi.published_events
    SET due_at = $5, reached_run_id = $6
  WHERE namespace_id = $1
    AND topic = $2
    AND event_key = $3
    AND event_id = $4";

const SUBSCRIBERS: &str = "SELECT run_id
   FROM kagzi.event_subscriptions
  WHERE namespace_id = $1
    AND topic = $2
    AND event_key = $3
    AND run_id > $4
  ORDER BY run_id
  LIMIT $5";

// What another server is deleting at this moment is passed over.
const FORGET_EVENTS: &str = "WITH old AS (
    SELECT namespace_id, topic, event_key, event_id
      FROM kagzi.published_events
     WHERE expires_at <= $1
       AND due_at IS NULL
     ORDER BY expires_at
     LIMIT $2
       FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM kagzi.published_events
     USING old
     WHERE published_events.namespace_id = old.namespace_id
       AND published_events.topic = old.topic
       AND published_events.event_key = old.event_key
       AND published_events.event_id = old.event_id
 RETURNING 1
)
SELECT count(*) FROM gone";

const SUBSCRIBE: &str = "INSERT INTO kagzi.event_subscriptions (namespace_id, topic, event_key, run_id)
 SELECT *
   FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[])
     ON CONFLICT DO NOTHING";

const UNSUBSCRIBE: &str = "DELETE FROM kagzi.event_subscriptions
  USING unnest($1::text[], $2::text[], $3::text[], $4::uuid[]) AS old (namespace_id, topic, event_key, run_id)
  WHERE event_subscriptions.namespace_id = old.namespace_id
    AND event_subscriptions.topic = old.topic
    AND event_subscriptions.event_key = old.event_key
    AND event_subscriptions.run_id = old.run_id";

const KEPT_BEHIND: &str = "SELECT namespace_id, topic, event_key, event_id, published_at, expires_at,
        due_at IS NULL, octet_length(payload)::bigint
   FROM kagzi.published_events
  WHERE namespace_id = $1
    AND (topic, event_key, published_at) > ($2, $3, $4)
    AND (topic = $5 OR $5 = '')
  ORDER BY topic, event_key, published_at
  LIMIT $6";

const KEPT_BEFORE: &str = "SELECT namespace_id, topic, event_key, event_id, published_at, expires_at,
        due_at IS NULL, octet_length(payload)::bigint
   FROM kagzi.published_events
  WHERE namespace_id = $1
    AND ((topic, event_key, published_at) < ($2, $3, $4) OR $2 = '')
    AND (topic = $5 OR $5 = '')
  ORDER BY topic DESC, event_key DESC, published_at DESC
  LIMIT $6";

const COUNT_KEPT: &str = "SELECT count(*)
   FROM (SELECT 1
           FROM kagzi.published_events
          WHERE namespace_id = $1
            AND (topic = $2 OR $2 = '')
          LIMIT $3) AS kept";
}

impl TopicRows for PostgresBackend {
    async fn lock_topics(&mut self, keys: &[TopicKey]) -> Result<(), StoreError> {
        let name = |key: &TopicKey| format!("{}\u{1}{}\u{1}{}", key.namespace, key.topic.name, key.topic.key);
        let names: Vec<String> = keys.iter().map(name).collect();
        self.query(LOCK_TOPICS, &[&names]).await.map(drop)
    }

    async fn published_at(&mut self, key: &TopicKey, id: &Name) -> Result<Option<Timestamp>, StoreError> {
        let TopicKey { namespace, topic } = key;
        let rows = self.query(PUBLISHED_AT, &[&&**namespace, &&*topic.name, &&*topic.key, &&**id]).await?;
        rows.first().map(|found| row::get(found, 0).map(Timestamp)).transpose()
    }

    async fn newest_event(&mut self, key: &TopicKey) -> Result<Option<Timestamp>, StoreError> {
        let TopicKey { namespace, topic } = key;
        let rows = self.query(NEWEST_EVENT, &[&&**namespace, &&*topic.name, &&*topic.key]).await?;
        rows.first().map(|found| row::get(found, 0).map(Timestamp)).transpose()
    }

    async fn kept_event(
        &mut self,
        key: &TopicKey,
        behind: Timestamp,
        now: Timestamp,
    ) -> Result<Option<PublishedEvent>, StoreError> {
        let TopicKey { namespace, topic } = key;
        let bound: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
            &[&&**namespace, &&*topic.name, &&*topic.key, &behind.0, &now.0];
        self.query(KEPT_EVENT, bound).await?.first().map(read).transpose()
    }

    async fn count_events(&mut self, namespace: &Name) -> Result<Room, StoreError> {
        let rows = self.query(COUNT_EVENTS, &[&&**namespace]).await?;
        let number = |at| row::get::<i64>(&rows[0], at).map(i64::cast_unsigned);
        Ok(Room { events: number(0)?, bytes: number(1)? })
    }

    async fn keep_event(&mut self, event: &PublishedEvent) -> Result<(), StoreError> {
        let PublishedEvent { key, id, at, expires_at, delivery, payload } = event;
        let TopicKey { namespace, topic } = key;
        let (due_at, reached) = columns(*delivery);
        let data: &[u8] = &payload.data;
        let bound: &[&(dyn tokio_postgres::types::ToSql + Sync)] = &[
            &&**namespace,
            &&*topic.name,
            &&*topic.key,
            &&**id,
            &at.0,
            &expires_at.0,
            &due_at,
            &reached,
            &data,
            &&*payload.content_type,
        ];
        self.query(KEEP_EVENT, bound).await.map(drop)
    }

    async fn undelivered(&mut self, limit: usize) -> Result<Vec<TopicKey>, StoreError> {
        self.query(UNDELIVERED, &[&(limit as i64)]).await?.iter().map(read_key).collect()
    }

    async fn first_undelivered(&mut self, key: &TopicKey) -> Result<Option<PublishedEvent>, StoreError> {
        let TopicKey { namespace, topic } = key;
        let rows = self.query(FIRST_UNDELIVERED, &[&&**namespace, &&*topic.name, &&*topic.key]).await?;
        rows.first().map(read).transpose()
    }

    async fn delivered(&mut self, key: &TopicKey, id: &Name, delivery: Delivery) -> Result<(), StoreError> {
        let TopicKey { namespace, topic } = key;
        let (due_at, reached) = columns(delivery);
        let bound: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
            &[&&**namespace, &&*topic.name, &&*topic.key, &&**id, &due_at, &reached];
        self.query(DELIVERED, bound).await.map(drop)
    }

    async fn subscribers(
        &mut self,
        key: &TopicKey,
        behind: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<RunId>, StoreError> {
        let TopicKey { namespace, topic } = key;
        let behind = behind.map_or(Uuid::nil(), |behind| behind.0);
        let bound: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
            &[&&**namespace, &&*topic.name, &&*topic.key, &behind, &(limit as i64)];
        self.query(SUBSCRIBERS, bound).await?.iter().map(|found| row::get(found, 0).map(RunId)).collect()
    }

    async fn forget_events(&mut self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let rows = self.query(FORGET_EVENTS, &[&now.0, &(limit as i64)]).await?;
        Ok(usize::try_from(row::get::<i64>(&rows[0], 0)?).unwrap_or(0))
    }
}

/// The statements for waits that are over and waits that were opened.
pub fn statements(
    session: &Session,
    subscribed: Vec<SubscriptionRow>,
    unsubscribed: Vec<SubscriptionRow>,
) -> Vec<Sending<'_>> {
    let mut sending: Vec<Sending<'_>> = Vec::new();
    for (sql, rows) in [(UNSUBSCRIBE, unsubscribed), (SUBSCRIBE, subscribed)] {
        if rows.is_empty() {
            continue;
        }
        sending.push(Box::pin(async move {
            let columns = vec![
                column(&rows, |row| &*row.key.namespace),
                column(&rows, |row| &*row.key.topic.name),
                column(&rows, |row| &*row.key.topic.key),
                column(&rows, |row| row.run.0),
            ];
            send(session, sql, columns).await
        }));
    }
    sending
}

fn columns(delivery: Delivery) -> (Option<i64>, Option<Uuid>) {
    match delivery {
        Delivery::Due { at, behind } => (Some(at.0), behind.map(|run| run.0)),
        Delivery::Done => (None, None),
    }
}

fn read_key(found: &Row) -> Result<TopicKey, StoreError> {
    let topic = Topic { name: row::name(found, 1)?, key: row::name(found, 2)? };
    Ok(TopicKey { namespace: row::name(found, 0)?, topic })
}

fn read(found: &Row) -> Result<PublishedEvent, StoreError> {
    let due: Option<i64> = row::get(found, 6)?;
    let behind = row::get::<Option<Uuid>>(found, 7)?.map(RunId);
    let data: Vec<u8> = row::get(found, 8)?;
    Ok(PublishedEvent {
        key: read_key(found)?,
        id: row::name(found, 3)?,
        at: Timestamp(row::get(found, 4)?),
        expires_at: Timestamp(row::get(found, 5)?),
        delivery: due.map_or(Delivery::Done, |at| Delivery::Due { at: Timestamp(at), behind }),
        payload: Payload { data: data.into(), content_type: row::name(found, 9)? },
    })
}

#[async_trait]
impl TopicReads for PostgresReads {
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
        let (after_topic, after_key, at) =
            from.map_or(("", "", i64::MIN), |from| (&*from.topic, &*from.key, from.at.0));
        let topic = topic.map_or("", |topic| topic);
        let bound: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
            &[&&**namespace, &after_topic, &after_key, &at, &topic, &(limit as i64)];
        self.query(sql, bound).await?.iter().map(read_listed).collect()
    }

    async fn count_kept_events(&self, namespace: &Name, topic: Option<&Name>) -> Result<u64, StoreError> {
        let topic = topic.map_or("", |topic| topic);
        let limit = TOTAL_MAX.cast_signed() + 1;
        let rows = self.query(COUNT_KEPT, &[&&**namespace, &topic, &limit]).await?;
        row::get::<i64>(&rows[0], 0).map(i64::cast_unsigned)
    }
}

fn read_listed(found: &Row) -> Result<ListedEvent, StoreError> {
    Ok(ListedEvent {
        key: read_key(found)?,
        id: row::name(found, 3)?,
        at: Timestamp(row::get(found, 4)?),
        expires_at: Timestamp(row::get(found, 5)?),
        is_delivered: row::get(found, 6)?,
        payload_bytes: row::get::<i64>(found, 7)?.cast_unsigned(),
    })
}
