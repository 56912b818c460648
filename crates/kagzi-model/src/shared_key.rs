//! Shared keys: something that happens once, whoever asks for it. A key is in progress, completed with a
//! result, or failed; one row has all of it, so that result and state cannot disagree. Its rules are pure.

use serde::{Deserialize, Serialize};

use crate::{
    Failure, Millis, Name, Noun, NounChange, NounKey, NounRejection, NounRow, NounRule, RunId, Timestamp,
};

/// What is kept of one key, whose text is its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedKey {
    pub state: KeyState,
    pub holder: KeyHolder,
    /// Rises with every holder: what an older one still writes is refused.
    pub fence: u64,
    /// A client's claim ends then unless it is renewed. A run's has no time: the run is retried, ends, or
    /// says
    /// why it does not move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_until: Option<Timestamp>,
    /// A hash of what the work is done with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// How long the result is kept, from the end on.
    pub ttl_ms: Millis,
    pub claimed_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The result, as the server keeps bytes as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// Where the work stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    InProgress,
    Completed,
    Failed,
}

/// Who does the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyHolder {
    /// A step of a run: the same one on every worker that executes it.
    Run { run: RunId, step: Name },
    /// A program without a run, by a name that no other claim has.
    Client { name: Name },
}

impl Noun for SharedKey {
    const KIND: &'static str = "shared_key";
}

impl SharedKey {
    /// What was kept is forgotten from then on.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.finished_at.map(|finished| finished.plus_ms(self.ttl_ms))
    }

    fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at().is_some_and(|at| at <= now)
    }

    /// Whether a claim may take it from whoever has it.
    fn is_free(&self, now: Timestamp, released: Option<u64>) -> bool {
        match self.state {
            KeyState::InProgress => {
                let ran_out = self.lock_until.is_some_and(|until| until <= now);
                ran_out || released == Some(self.fence)
            }
            KeyState::Completed => self.is_expired(now),
            KeyState::Failed => {
                self.is_expired(now) || self.failure.as_ref().is_none_or(|failure| !failure.non_retryable)
            }
        }
    }

    /// Whether the same key is used with something else than before.
    pub fn conflicts(&self, now: Timestamp, input: Option<&str>) -> bool {
        !self.is_expired(now) && self.input.as_deref().zip(input).is_some_and(|(known, new)| known != new)
    }

    /// Whether this claim does the work.
    pub fn is_held_by(&self, holder: &KeyHolder, fence: u64) -> bool {
        self.state == KeyState::InProgress && self.holder == *holder && self.fence == fence
    }
}

/// Asks to do the work. Answered with the row as it is then: held by the claimant, or by another, or over.
#[derive(Debug, Clone)]
pub struct ClaimKey {
    pub namespace: Name,
    pub key: Name,
    pub holder: KeyHolder,
    pub input: Option<String>,
    pub ttl_ms: Millis,
    /// For a client: how long it may be silent.
    pub lock_ms: Option<Millis>,
    /// The run that holds the key with this fence has ended without a result.
    pub released: Option<u64>,
}

impl NounRule for ClaimKey {
    fn key(&self) -> NounKey {
        NounKey::of::<SharedKey>(self.namespace.clone(), self.key.clone())
    }

    fn creates(&self) -> bool {
        true
    }

    fn decide(&self, now: Timestamp, known: Option<&NounRow>) -> Result<NounChange, NounRejection> {
        let lock_until = self.lock_ms.map(|ms| now.plus_ms(ms));
        let claimed = |fence| SharedKey {
            state: KeyState::InProgress,
            holder: self.holder.clone(),
            fence,
            lock_until,
            input: self.input.clone(),
            ttl_ms: self.ttl_ms,
            claimed_at: now,
            finished_at: None,
            result: None,
            failure: None,
        };
        let Some(row) = known else {
            let row = NounRow::new(self.namespace.clone(), self.key.clone(), &claimed(1), now);
            return Ok(NounChange::Put(row));
        };
        let key: SharedKey = row.read()?;
        if key.conflicts(now, self.input.as_deref()) {
            return Ok(NounChange::Nothing(row.clone()));
        }
        // The same step on another worker, or a claim whose answer was lost: the same holder goes on.
        if key.is_held_by(&self.holder, key.fence) {
            let renewed = SharedKey { lock_until, ..key.clone() };
            let change =
                if renewed == key { NounChange::Nothing(row.clone()) } else { put(now, row, &renewed) };
            return Ok(change);
        }
        match key.is_free(now, self.released) {
            true => Ok(put(now, row, &claimed(key.fence + 1))),
            false => Ok(NounChange::Nothing(row.clone())),
        }
    }
}

/// How the work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyOutcome {
    Completed {
        result: String,
    },
    /// For good when the failure is non-retryable; else the next claim tries again.
    Failed(Failure),
    /// Not over: the holder lives.
    Renewed {
        lock_ms: Millis,
    },
}

/// Says how the work ended, or that it goes on. A holder that was replaced changes nothing; it sees that in
/// the row that it is answered with.
#[derive(Debug, Clone)]
pub struct FinishKey {
    pub namespace: Name,
    pub key: Name,
    pub holder: KeyHolder,
    pub fence: u64,
    pub outcome: KeyOutcome,
}

impl NounRule for FinishKey {
    fn key(&self) -> NounKey {
        NounKey::of::<SharedKey>(self.namespace.clone(), self.key.clone())
    }

    fn creates(&self) -> bool {
        false
    }

    fn decide(&self, now: Timestamp, known: Option<&NounRow>) -> Result<NounChange, NounRejection> {
        let row = known.ok_or_else(|| NounRejection::NotFound(self.key()))?;
        let key: SharedKey = row.read()?;
        if !key.is_held_by(&self.holder, self.fence) {
            return Ok(NounChange::Nothing(row.clone()));
        }
        let over = |state| SharedKey { state, lock_until: None, finished_at: Some(now), ..key.clone() };
        let next = match &self.outcome {
            KeyOutcome::Completed { result } => {
                SharedKey { result: Some(result.clone()), ..over(KeyState::Completed) }
            }
            KeyOutcome::Failed(failure) => {
                SharedKey { failure: Some(failure.clone()), ..over(KeyState::Failed) }
            }
            KeyOutcome::Renewed { lock_ms } => {
                // A run's claim has no time that could be renewed.
                SharedKey { lock_until: key.lock_until.map(|_| now.plus_ms(*lock_ms)), ..key.clone() }
            }
        };
        Ok(if next == key { NounChange::Nothing(row.clone()) } else { put(now, row, &next) })
    }
}

/// Forgets a key, whatever became of it: the next claim does the work again.
#[derive(Debug, Clone)]
pub struct ForgetKey {
    pub namespace: Name,
    pub key: Name,
    /// Only if it has expired by now: what the sweep asks.
    pub if_expired: bool,
}

impl NounRule for ForgetKey {
    fn key(&self) -> NounKey {
        NounKey::of::<SharedKey>(self.namespace.clone(), self.key.clone())
    }

    fn creates(&self) -> bool {
        false
    }

    fn decide(&self, now: Timestamp, known: Option<&NounRow>) -> Result<NounChange, NounRejection> {
        if self.if_expired
            && let Some(row) = known
            && !row.read::<SharedKey>()?.is_expired(now)
        {
            return Ok(NounChange::Nothing(row.clone()));
        }
        NounChange::delete(known, self.key())
    }
}

fn put(now: Timestamp, row: &NounRow, key: &SharedKey) -> NounChange {
    let NounKey { namespace, id, .. } = row.key.clone();
    let (version, created_at) = (row.version + 1, row.created_at);
    NounChange::Put(NounRow { version, created_at, ..NounRow::new(namespace, id, key, now) })
}

/// Asks for a key and changes nothing.
#[derive(Debug, Clone)]
pub struct ReadKey {
    pub namespace: Name,
    pub key: Name,
}

impl NounRule for ReadKey {
    fn key(&self) -> NounKey {
        NounKey::of::<SharedKey>(self.namespace.clone(), self.key.clone())
    }

    fn creates(&self) -> bool {
        false
    }

    fn decide(&self, _: Timestamp, known: Option<&NounRow>) -> Result<NounChange, NounRejection> {
        known.cloned().map(NounChange::Nothing).ok_or_else(|| NounRejection::NotFound(self.key()))
    }
}
