//! Published events: how one is published, and which are kept.

use kagzi_model::{Name, PublishEvent, PublishReply};
use kagzi_store::{Direction, EventPlace, ListedEvent, Page, Total};

use crate::{Engine, EngineError};

impl Engine {
    /// Publishes an event. It is durable, and on its way to whoever waits for it.
    pub async fn publish(&self, event: PublishEvent) -> Result<PublishReply, EngineError> {
        Ok(self.store().ask(event).await??)
    }

    /// A page of the events that are kept, in the order of the list whichever way it is read.
    pub async fn kept_events(
        &self,
        namespace: &Name,
        topic: Option<&Name>,
        direction: Direction,
        from: Option<&EventPlace>,
        limit: usize,
    ) -> Result<Page<ListedEvent>, EngineError> {
        let mut rows = self.store().kept_events(namespace, topic, direction, from, limit + 1).await?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let (has_next, has_prev) = match direction {
            Direction::Next => (more, from.is_some()),
            Direction::Prev => {
                rows.reverse();
                (from.is_some(), more)
            }
        };
        Ok(Page { rows, has_next, has_prev, ..Page::empty() })
    }

    /// How many there are, counted no further than [`TOTAL_MAX`](kagzi_store::TOTAL_MAX).
    pub async fn count_kept_events(
        &self,
        namespace: &Name,
        topic: Option<&Name>,
    ) -> Result<Total, EngineError> {
        Ok(Total::of(self.store().count_kept_events(namespace, topic).await?))
    }
}
