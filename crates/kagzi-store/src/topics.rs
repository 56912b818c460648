//! Published events in a store: how one is published, and what people read.

use std::collections::HashMap;

use async_trait::async_trait;
use kagzi_model::{Name, Timestamp, TopicKey, limits};

use crate::{Direction, StoreError, hash::HashSet};

/// Where a list of kept events goes on: topic, key and place of the event beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPlace {
    pub topic: Name,
    pub key: Name,
    pub at: Timestamp,
}

/// A kept event without its payload.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedEvent {
    pub key: TopicKey,
    pub id: Name,
    pub at: Timestamp,
    pub expires_at: Timestamp,
    /// It has reached everybody who waited for it.
    pub is_delivered: bool,
    pub payload_bytes: u64,
}

/// Published events, for people.
#[async_trait]
pub trait TopicReads: Send + Sync {
    /// Events that are kept, by topic, key and place, from the one behind `from` on; those before `from`, the
    /// nearest first, when the direction is back. Of one topic, or of all.
    async fn kept_events(
        &self,
        namespace: &Name,
        topic: Option<&Name>,
        direction: Direction,
        from: Option<&EventPlace>,
        limit: usize,
    ) -> Result<Vec<ListedEvent>, StoreError>;
    /// How many there are, counted no further than one beyond [`TOTAL_MAX`](crate::TOTAL_MAX).
    async fn count_kept_events(&self, namespace: &Name, topic: Option<&Name>) -> Result<u64, StoreError>;
}

/// What a lane remembers about topics from turn to turn.
#[derive(Default)]
pub struct TopicMemory {
    /// How many more events each namespace may keep before they are counted again, and how many bytes.
    room: HashMap<Name, Room>,
    /// Topics of the engine's that nobody waits for and no trigger wants. Only where no other server writes
    /// to the database.
    unheard: HashSet<TopicKey>,
}

/// Events and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub events: u64,
    pub bytes: u64,
}

/// Namespaces and topics that are remembered; beyond it all are forgotten.
const REMEMBERED_MAX: usize = 10_000;

impl TopicMemory {
    /// Uses up the room of one event; false when it must be counted how much there is.
    pub fn take_room(&mut self, namespace: &Name, bytes: u64) -> bool {
        let Some(room) = self.room.get_mut(namespace) else { return false };
        let fits = room.events > 0 && room.bytes >= bytes;
        if fits {
            (room.events, room.bytes) = (room.events - 1, room.bytes - bytes);
        }
        fits
    }

    /// So many events are kept, counted now. On a database that several servers share, each may use half of
    /// what is left before it counts again.
    pub fn counted(&mut self, namespace: &Name, kept: Room, shared: bool) {
        if self.room.len() >= REMEMBERED_MAX {
            self.room.clear();
        }
        let share = if shared { 2 } else { 1 };
        let left = |max: u64, kept: u64| max.saturating_sub(kept).div_ceil(share);
        let room = Room {
            events: left(limits::EVENTS_KEPT_MAX, kept.events),
            bytes: left(limits::EVENTS_KEPT_BYTES_MAX, kept.bytes),
        };
        self.room.insert(namespace.clone(), room);
    }

    /// Nobody wants the events of this topic, as far as is known.
    pub fn is_unheard(&self, key: &TopicKey) -> bool {
        self.unheard.contains(key)
    }

    pub fn know_unheard(&mut self, key: TopicKey) {
        if self.unheard.len() >= REMEMBERED_MAX {
            self.unheard.clear();
        }
        self.unheard.insert(key);
    }

    /// Somebody may want events from now on.
    pub fn somebody_listens(&mut self) {
        self.unheard.clear();
    }
}
