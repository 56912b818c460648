//! The sending side of a lane.

use std::sync::Arc;

use kagzi_model::GateKey;
use parking_lot::RwLock;
use tracing::warn;

use super::{
    Message,
    message::{Ask, Request},
    queue::QueueSender,
};
use crate::{LaneStats, QueueKey, ServerControls, StoreError};

/// The sending side of a lane.
#[derive(Clone)]
pub struct LaneHandle {
    pub(super) messages: QueueSender,
    pub(super) stats: Arc<LaneStats>,
    pub(super) shared: bool,
    pub(super) server: Arc<RwLock<Arc<ServerControls>>>,
}

impl LaneHandle {
    /// Sends a request and waits for the answer.
    pub async fn ask<R: Request>(&self, request: R) -> Result<R::Answer, StoreError> {
        let stopped = || StoreError::Unavailable("the store has stopped".into());
        let (ask, answer) = Ask::new(request);
        let message = R::message(ask);
        if !matches!(message, Message::Close { .. }) {
            self.stats.undamaged()?;
        }
        if !self.messages.send(message).await {
            return Err(stopped());
        }
        answer.await.map_err(|_| stopped())?
    }

    /// Passes on a hint that something became due elsewhere. Hints may be lost: polling is the truth.
    pub fn wake(&self, key: Option<QueueKey>) {
        if !self.messages.hint(Message::Wake { key }) {
            warn!("the lane is full or stopped, a wake-up was dropped");
        }
    }

    /// Passes on a hint that a gate opened elsewhere.
    pub fn opened(&self, gate: GateKey) {
        if !self.messages.hint(Message::Opened { gate }) {
            warn!("the lane is full or stopped, a wake-up was dropped");
        }
    }

    /// Says what this server adds to the rules, from the next batch on.
    pub fn configure(&self, controls: ServerControls) {
        *self.server.write() = Arc::new(controls);
    }

    pub fn stats(&self) -> Arc<LaneStats> {
        self.stats.clone()
    }

    /// Other servers write to the same database.
    pub fn shared(&self) -> bool {
        self.shared
    }
}
