//! Why a call on the engine failed.

use kagzi_model::{
    ControlRejection, NounRejection, PublishRejection, Rejection, intervention::InterventionRejection,
    schedule::ScheduleRejection,
};
use kagzi_store::{RegistryError, StoreError};

/// The caller asked for the impossible, or the world failed; a transport maps each to its own code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Rejected(#[from] Rejection),
    #[error(transparent)]
    Rule(#[from] ControlRejection),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Schedule(#[from] ScheduleRejection),
    #[error(transparent)]
    Noun(#[from] NounRejection),
    #[error(transparent)]
    Publish(#[from] PublishRejection),
    #[error(transparent)]
    Intervention(#[from] InterventionRejection),
    #[error(transparent)]
    Store(#[from] StoreError),
}
