//! How many schedules a namespace may have.

use kagzi_model::schedule::{ScheduleKey, ScheduleRejection};
use kagzi_store::{Direction, PageRequest, ScheduleFilter};

use crate::{Engine, EngineError};

impl Engine {
    /// Refuses a new schedule of a namespace that has as many as it may have. The repeat of one that is there
    /// is answered.
    pub(crate) async fn has_room_for_schedule(&self, key: &ScheduleKey) -> Result<(), EngineError> {
        let max = self.settings().schedules_max;
        let page = PageRequest { from: None, direction: Direction::Next, limit: max };
        let found = self.store().schedules(&key.namespace, &ScheduleFilter::default(), &page).await?;
        let room = found.rows.len() < max;
        if room || self.store().schedule_by_id(&key.namespace, &key.id).await?.is_some() {
            return Ok(());
        }
        Err(ScheduleRejection::TooMany { namespace: key.namespace.clone(), max }.into())
    }
}
