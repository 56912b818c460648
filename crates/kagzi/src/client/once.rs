//! `client.once(key)`: work that is done once, whoever asks for it.

use std::future::Future;
use std::time::Duration;

use futures_util::Stream;
use kagzi_proto::v1::{self, finish_key_request::Outcome};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::client::Client;
use crate::client::wire::rpc;
use crate::error::Error;
use crate::keys::{self, KeyError};
use crate::page::{self, Page};
use crate::step_error::StepFailure;
use crate::worker::equipment::Equipment;
use crate::{failure, payload, retry_policy};

/// How long the result is kept, and how long a holder may be silent.
const TTL: Duration = Duration::from_secs(7 * 86_400);
const LOCK: Duration = Duration::from_secs(300);

/// Between two looks at a key that another holds.
const LOOK: Duration = Duration::from_millis(50);
const LOOK_MAX: Duration = Duration::from_secs(2);

/// Work that is being described, see [`Client::once`].
#[must_use = "nothing is claimed before .run(..)"]
pub struct Once {
    client: Client,
    key: String,
    ttl: Duration,
    lock: Duration,
    or_busy: bool,
    input: Result<String, KeyError>,
}

/// Why [`Once::run`] has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OnceError {
    /// Another does the work right now; only with [`Once::or_busy`].
    #[error("another does this work: {holder}")]
    Busy {
        /// Who: `run RUN, step STEP`, or the name of a program's claim.
        holder: String,
    },
    /// The same key was used with another input.
    #[error("the key is used with another input; its result is for something else")]
    Conflict(#[source] Error),
    /// The work failed for good before; it is not done again until the key is forgotten.
    #[error("the work has failed for good: {0}")]
    Failed(StepFailure),
    /// The work was done, but this claim had run out meanwhile and another has the key: the effect may have
    /// happened twice.
    #[error("the claim was lost while the work was done: another may have done it too")]
    Lost(#[source] Error),
    /// What this call's work returned. The key is free again, unless the error says that trying again makes
    /// no sense.
    #[error(transparent)]
    Work(anyhow::Error),
    /// The input has no hash.
    #[error(transparent)]
    Input(#[from] KeyError),
    /// The result cannot be written as JSON, or a kept one is no such value.
    #[error("the result cannot be kept or read as this type: {0}")]
    Value(String),
    /// The server could not be asked.
    #[error(transparent)]
    Call(#[from] Error),
}

/// What the work is told: under which claim it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OnceClaim {
    /// The key: hand it to a receiver that deduplicates.
    pub key: String,
    /// Rises with every holder of the key: hand it to a store that refuses older ones.
    pub fence: u64,
}

/// A shared key, as people see it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KeyView {
    /// Its text.
    pub key: String,
    /// `in_progress`, `completed` or `failed`.
    pub state: &'static str,
    /// Who holds or held it: `run RUN, step STEP`, or the name of a program's claim.
    pub holder: String,
    /// Rises with every holder.
    pub fence: u64,
    /// When its holder claimed it.
    pub claimed_at: Option<std::time::SystemTime>,
    /// When it was over.
    pub finished_at: Option<std::time::SystemTime>,
    /// When its result is forgotten.
    pub expires_at: Option<std::time::SystemTime>,
    /// How it failed.
    pub failure: Option<StepFailure>,
    /// Its result, as it is kept; not in lists.
    pub result: Option<serde_json::Value>,
}

impl Client {
    /// Work that is done once for everybody who names the same key, for programs without a run: whoever comes
    /// first does it, the others wait and get its result, which is kept for seven days.
    ///
    /// The claim is renewed while the work is done. A program that dies loses it after five minutes of
    /// silence, and then another does the work; what the first one says later is refused. So the work may be
    /// done twice where its holder died, or was silent for too long, between the effect and the word that it
    /// is done: hand [`OnceClaim::key`] to a receiver that deduplicates.
    ///
    /// ```no_run
    /// # async fn import(client: kagzi::Client) -> anyhow::Result<()> {
    /// use std::time::Duration;
    ///
    /// let rows: u64 = client
    ///     .once("import:2026-11")
    ///     .input(&"2026-11.csv")
    ///     .ttl(Duration::from_secs(86_400))
    ///     .lock(Duration::from_secs(60))
    ///     .run(|claim| async move {
    ///         println!("importing under {} with fence {}", claim.key, claim.fence);
    ///         Ok(42)
    ///     })
    ///     .await?;
    /// // Only if nobody does it right now.
    /// let tried = client.once("import:2026-12").or_busy().run(|_| async { Ok(rows) }).await;
    /// println!("{tried:?}, {:?}", client.key("import:2026-11").await?);
    /// client.forget_key("import:2026-11").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn once(&self, key: impl Into<String>) -> Once {
        let (client, key) = (self.clone(), key.into());
        Once { client, key, ttl: TTL, lock: LOCK, or_busy: false, input: Ok(String::new()) }
    }

    /// Reads a shared key, with its result.
    pub async fn key(&self, key: impl Into<String>) -> Result<KeyView, Error> {
        let request = v1::GetKeyRequest { namespace_id: self.namespace_id().to_owned(), key: key.into() };
        let answer = rpc!(self, Workflows.get_key, Safe, "read a shared key", request)?;
        let mut found = answer.key.unwrap_or_default();
        if let Some(result) = found.result.take() {
            found.result = self.codecs.decode(result).await.ok();
        }
        found.failure = readable(self, found.failure.take()).await;
        Ok(KeyView::from_proto(found))
    }

    /// The shared keys of the namespace, by their text. Nothing is asked yet.
    pub fn shared_keys(&self) -> SharedKeys {
        let namespace_id = self.namespace_id().to_owned();
        let request = v1::ListKeysRequest { namespace_id, ..Default::default() };
        SharedKeys { client: self.clone(), request }
    }

    /// Forgets a shared key, whatever became of it: the next who names it does the work again.
    pub async fn forget_key(&self, key: impl Into<String>) -> Result<(), Error> {
        let request = v1::ForgetKeyRequest { namespace_id: self.namespace_id().to_owned(), key: key.into() };
        rpc!(self, Workflows.forget_key, Unsafe, "forget a shared key", request).map(drop)
    }
}

impl Once {
    /// How long the result is kept, from the end of the work on. Seven days, unless it is said.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long this program may be silent before another does the work. Five minutes, unless it is said; a
    /// second at least. It is renewed by itself while the work is done.
    pub fn lock(mut self, lock: Duration) -> Self {
        self.lock = lock.max(Duration::from_secs(1));
        self
    }

    /// What the work is done with: its hash is kept, and the same key with another input is refused.
    pub fn input(mut self, input: &impl Serialize) -> Self {
        self.input = keys::hash_of(input);
        self
    }

    /// Does not wait for another holder: [`OnceError::Busy`].
    pub fn or_busy(mut self) -> Self {
        self.or_busy = true;
        self
    }

    /// Does the work, or waits for whoever does it, and answers with its result.
    pub async fn run<T, F, Fut>(self, work: F) -> Result<T, OnceError>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce(OnceClaim) -> Fut,
        Fut: Future<Output = anyhow::Result<T>>,
    {
        let Once { client, key, ttl, lock, or_busy, input } = self;
        let holder = v1::KeyHolder { name: format!("client-{}", Uuid::new_v4()), ..Default::default() };
        let claim = v1::ClaimKeyRequest {
            namespace_id: client.namespace_id().to_owned(),
            key: key.clone(),
            holder: Some(holder.clone()),
            input_hash: input?,
            ttl_ms: retry_policy::millis(ttl),
            lock_ms: retry_policy::millis(lock),
        };
        let mut look = LOOK;
        let fence = loop {
            let asked = rpc!(client, Workflows.claim_key, Safe, "claim a shared key", claim.clone());
            let answer = asked.map_err(refused)?;
            let found = answer.key.unwrap_or_default();
            match found.state() {
                _ if answer.claimed => break found.fence,
                v1::KeyState::Completed => return read(&client, found.result).await,
                v1::KeyState::Failed => {
                    let failure = readable(&client, found.failure).await.unwrap_or_default();
                    return Err(OnceError::Failed(StepFailure::from_proto(failure)));
                }
                v1::KeyState::InProgress | v1::KeyState::Unspecified if or_busy => {
                    return Err(OnceError::Busy { holder: holder_text(found.holder) });
                }
                v1::KeyState::InProgress | v1::KeyState::Unspecified => {
                    tokio::time::sleep(look).await;
                    look = (look * 2).min(LOOK_MAX);
                }
            }
        };
        let finish = |outcome| v1::FinishKeyRequest {
            namespace_id: client.namespace_id().to_owned(),
            key: key.clone(),
            holder: Some(holder.clone()),
            fence,
            outcome: Some(outcome),
        };
        let renewing = async {
            loop {
                tokio::time::sleep(lock / 3).await;
                let renew = finish(Outcome::RenewMs(retry_policy::millis(lock)));
                // A renewal that fails is tried again; if it was the last, the end of the work says so.
                if let Err(error) = rpc!(client, Workflows.finish_key, Safe, "renew a shared key", renew) {
                    tracing::warn!(%key, %error, "the claim of a shared key could not be renewed");
                }
            }
        };
        let worked = tokio::select! {
            worked = work(OnceClaim { key: key.clone(), fence }) => worked,
            () = renewing => unreachable!("renewing never ends"),
        };
        let value = match worked {
            Ok(value) => value,
            Err(error) => {
                let failure = failure::of_shared(&error, &Equipment::default());
                let failure = client.codecs.encode_failure(failure).await;
                let told = finish(Outcome::Failure(failure));
                if let Err(error) = rpc!(client, Workflows.finish_key, Safe, "end a shared key", told) {
                    tracing::warn!(%key, %error, "nobody could be told that the work has failed");
                }
                return Err(OnceError::Work(error));
            }
        };
        let result = payload::encode(&value).map_err(|error| OnceError::Value(error.to_string()))?;
        let encoded = client.codecs.encode(result.clone()).await;
        let encoded = encoded.map_err(|error| OnceError::Value(error.to_string()))?;
        let told = finish(Outcome::Result(encoded));
        rpc!(client, Workflows.finish_key, Safe, "end a shared key", told).map_err(lost)?;
        payload::decode(Some(&result)).map_err(|error| OnceError::Value(error.to_string()))
    }
}

async fn read<T: DeserializeOwned>(client: &Client, kept: Option<v1::Payload>) -> Result<T, OnceError> {
    let decoded = client.codecs.decode(kept.unwrap_or_default()).await;
    let decoded = decoded.map_err(|error| OnceError::Value(error.to_string()))?;
    payload::decode(Some(&decoded)).map_err(|error| OnceError::Value(error.to_string()))
}

/// A failure whose text no codec of ours can read keeps its code.
async fn readable(client: &Client, failure: Option<v1::Failure>) -> Option<v1::Failure> {
    let mut failure = failure?;
    if let Err(error) = client.codecs.decode_failure(&mut failure).await {
        failure.message = format!("its text cannot be read: {error}");
    }
    Some(failure)
}

fn refused(error: Error) -> OnceError {
    if is_for(&error, "KEY_CONFLICT") { OnceError::Conflict(error) } else { OnceError::Call(error) }
}

/// A key that was forgotten meanwhile is lost too.
fn lost(error: Error) -> OnceError {
    let is_lost = is_for(&error, "KEY_LOST") || error.is_not_found();
    if is_lost { OnceError::Lost(error) } else { OnceError::Call(error) }
}

fn is_for(error: &Error, reason: &str) -> bool {
    matches!(error, Error::Refused(refusal) if refusal.reason == reason)
}

fn holder_text(holder: Option<v1::KeyHolder>) -> String {
    let v1::KeyHolder { run_id, step, name } = holder.unwrap_or_default();
    if run_id.is_empty() { name } else { format!("run {run_id}, step {step}") }
}

impl KeyView {
    fn from_proto(key: v1::SharedKey) -> KeyView {
        let time = |at: Option<prost_types::Timestamp>| at.and_then(|at| at.try_into().ok());
        let state = match key.state() {
            v1::KeyState::Completed => "completed",
            v1::KeyState::Failed => "failed",
            v1::KeyState::InProgress | v1::KeyState::Unspecified => "in_progress",
        };
        KeyView {
            state,
            holder: holder_text(key.holder),
            fence: key.fence,
            claimed_at: time(key.claimed_at),
            finished_at: time(key.finished_at),
            expires_at: time(key.expires_at),
            failure: key.failure.map(StepFailure::from_proto),
            result: key.result.and_then(|kept| payload::decode(Some(&kept)).ok()),
            key: key.key,
        }
    }
}

/// Shared keys that are being asked for, by their text.
///
/// ```no_run
/// # async fn list(client: kagzi::Client) -> anyhow::Result<()> {
/// use futures_util::TryStreamExt;
///
/// let list = client.shared_keys().page_size(100).with_total();
/// let first = list.page("").await?;
/// println!("{} of {:?}", first.rows.len(), first.total);
/// let all = list.all().await?;
/// let streamed: Vec<_> = list.stream().try_collect().await?;
/// assert_eq!(all, streamed);
/// # Ok(()) }
/// ```
#[must_use = "nothing is asked before .page(..), .stream() or .all()"]
#[derive(Clone)]
pub struct SharedKeys {
    client: Client,
    request: v1::ListKeysRequest,
}

impl SharedKeys {
    /// Keys per page, at most 1000. Default: 50.
    pub fn page_size(mut self, keys: u16) -> Self {
        self.request.page_size = keys.into();
        self
    }

    /// Also count all of them, up to 10,000: [`Page::total`].
    pub fn with_total(mut self) -> Self {
        self.request.include_total = true;
        self
    }

    /// One page: the first for an empty token, else the one that the token of another page names.
    pub async fn page(&self, token: impl Into<String>) -> Result<Page<KeyView>, Error> {
        let request = v1::ListKeysRequest { page_token: token.into(), ..self.request.clone() };
        let page = rpc!(self.client, Workflows.list_keys, Safe, "list shared keys", request)?;
        let keys = page.keys.into_iter().map(KeyView::from_proto).collect();
        let list = Page::new(keys, page.next_page_token, page.prev_page_token);
        let list = list.without(page.unreadable_count);
        Ok(if self.request.include_total { list.counted(page.total_count, page.total_capped) } else { list })
    }

    /// All keys, fetched page by page as they are taken.
    pub fn stream(self) -> impl Stream<Item = Result<KeyView, Error>> + Send {
        page::stream(self, |keys, token| async move { keys.page(token).await })
    }

    /// All of them at once.
    pub async fn all(&self) -> Result<Vec<KeyView>, Error> {
        page::all(self.clone().stream()).await
    }
}
