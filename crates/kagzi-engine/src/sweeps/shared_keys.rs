//! Shared keys whose results have been kept long enough are forgotten. A claim does not need it: it looks at
//! the time itself. This only makes room.

use std::{sync::Arc, time::Duration};

use kagzi_model::{DEFAULT_NAMESPACE, ForgetKey, Name, Noun, SharedKey};
use kagzi_store::{ChangeNoun, Direction, StoreError};
use tracing::info;

use super::{Sweep, When};
use crate::Engine;

/// Results are kept for days; an hour more does not matter.
const LOOK_EVERY: Duration = Duration::from_secs(3600);
/// Keys and namespaces that are read at once. A key may bring its result, which nobody needs here.
const CHUNK_LEN: usize = 100;

pub struct SharedKeys;

impl Sweep for SharedKeys {
    fn name(&self) -> &'static str {
        "shared_keys"
    }

    fn jitter(&self) -> Duration {
        LOOK_EVERY / 12
    }

    fn first(&self, _: &Engine) -> When {
        When::In(LOOK_EVERY / 60)
    }

    async fn round(&mut self, engine: &Engine) -> Result<When, StoreError> {
        let (mut after, mut forgotten) = (None, forget_expired(engine, &DEFAULT_NAMESPACE.into()).await?);
        loop {
            let namespaces = engine.store().namespaces(after.as_ref(), CHUNK_LEN).await?;
            let Some(last) = namespaces.last().map(|listed| listed.name.clone()) else { break };
            for listed in namespaces.iter().filter(|listed| &*listed.name != DEFAULT_NAMESPACE) {
                forgotten += forget_expired(engine, &listed.name).await?;
            }
            after = Some(last);
        }
        if forgotten > 0 {
            info!(keys = forgotten, "shared keys were forgotten whose results had been kept long enough");
        }
        Ok(When::In(LOOK_EVERY))
    }

    fn failed(&mut self, _: &Engine, _: &StoreError) -> When {
        When::In(LOOK_EVERY)
    }
}

/// How many of the namespace's keys were forgotten.
pub async fn forget_expired(engine: &Engine, namespace: &Name) -> Result<usize, StoreError> {
    let (mut after, mut forgotten, now) = (None, 0, engine.clock().now());
    loop {
        let store = engine.store();
        let kind = SharedKey::KIND;
        let rows = store.nouns(namespace, kind, Direction::Next, after.as_ref(), CHUNK_LEN).await?;
        for row in &rows {
            let expires_at = row.read::<SharedKey>().ok().and_then(|key| key.expires_at());
            if expires_at.is_some_and(|at| at <= now) {
                let (namespace, key) = (row.key.namespace.clone(), row.key.id.clone());
                let rule = ForgetKey { namespace, key, if_expired: true };
                forgotten += usize::from(store.ask(ChangeNoun(Arc::new(rule))).await?.is_ok());
            }
        }
        match rows.into_iter().last() {
            Some(last) => after = Some(last.key.id),
            None => return Ok(forgotten),
        }
    }
}
