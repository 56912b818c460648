//! Values that a run publishes: `ctx.set_value`. Nothing that the code awaits depends on them, so they are no
//! part of the order in which a replay is told things: the last one of each name is sent before whatever the
//! run reports next, and the server knows by its number whether it was set before.

use std::collections::HashMap;

use kagzi_proto::v1::{self, report};

use crate::run::context::WorkflowContext;
use crate::run::state::RunState;
use crate::{limits, payload};

/// The values of one run.
#[derive(Default)]
pub(crate) struct Published {
    by_name: HashMap<String, Value>,
    /// The highest number that was given out in scopes that are recorded as one and over: a replay does not
    /// execute them, so later numbers begin above it.
    given_inside: u64,
    /// Some of them were not sent.
    unsent: bool,
}

#[derive(Default)]
struct Value {
    /// How often the code has set it in this execution.
    number: u64,
    last: v1::Payload,
    unsent: bool,
}

impl WorkflowContext {
    /// Publishes a value that others read without a worker, while the run runs and after its end:
    /// [`RunHandle::value`](crate::client::RunHandle::value), `kagzi run value`. It may be called as often as
    /// you like: the last value of a name is written down before the next thing that the run does, and one
    /// that has not changed is not written again. At most 100 names, and 64 KiB each.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn import(ctx: WorkflowContext, rows: u64) -> anyhow::Result<()> {
    ///     for row in 0..rows {
    ///         ctx.set_value("progress", &format!("{row} of {rows}"))?;
    ///         ctx.scope(&row.to_string()).run("import", async { Ok(()) }).await?;
    ///     }
    ///     ctx.set_value("progress", "done")
    /// }
    /// ```
    pub fn set_value<V: serde::Serialize + ?Sized>(&self, name: &str, value: &V) -> anyhow::Result<()> {
        let is_name = !name.is_empty() && name.len() <= limits::NAME_BYTES_MAX;
        anyhow::ensure!(
            is_name && !name.contains(char::is_control),
            "the name of a value is {name:?}: 1 to {} bytes, without control characters",
            limits::NAME_BYTES_MAX
        );
        let value = payload::encode(value)?;
        let bytes = value.data.len();
        anyhow::ensure!(
            bytes <= limits::VALUE_BYTES_MAX,
            "value '{name}' has {bytes} bytes: at most {} are allowed",
            limits::VALUE_BYTES_MAX
        );
        let mut published = self.run_state().published.lock();
        if !published.by_name.contains_key(name) && published.by_name.len() >= limits::VALUES_MAX {
            anyhow::bail!("this run has {} values, the most that are allowed", limits::VALUES_MAX);
        }
        let given_inside = published.given_inside;
        let known = published.by_name.entry(name.to_owned()).or_default();
        // The first one is never taken for the empty one that is not there.
        if known.number == 0 || known.last != value {
            known.number = known.number.max(given_inside) + 1;
            (known.last, known.unsent) = (value, true);
            published.unsent = true;
        }
        Ok(())
    }
}

impl Published {
    /// The highest number that was given out.
    pub(crate) fn highest(&self) -> u64 {
        self.by_name.values().map(|value| value.number).max().unwrap_or(0)
    }

    /// Up to this number they were given out by the time that a scope was recorded.
    pub(crate) fn were_given(&mut self, highest: u64) {
        self.given_inside = self.given_inside.max(highest);
    }
}

impl RunState {
    pub(crate) fn has_unsent_values(&self) -> bool {
        self.published.lock().unsent
    }

    /// What was set and not sent, in the order of names.
    fn unsent_values(&self) -> Vec<v1::ValueSet> {
        let mut published = self.published.lock();
        if !std::mem::take(&mut published.unsent) {
            return Vec::new();
        }
        let unsent = published.by_name.iter_mut().filter(|(_, value)| value.unsent);
        let mut unsent: Vec<_> = unsent
            .map(|(name, value)| {
                value.unsent = false;
                let (name, number, value) = (name.clone(), value.number, Some(value.last.clone()));
                v1::ValueSet { name, number, value }
            })
            .collect();
        unsent.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        unsent
    }

    /// Sends them, before whatever is reported later. Nobody waits for the answers.
    pub(crate) async fn send_values(&self) {
        for mut set in self.unsent_values() {
            match self.encode("a value", set.value.take().unwrap_or_default()).await {
                Ok(encoded) => {
                    set.value = Some(encoded);
                    self.uplink.tell(self.lease.clone(), report::Body::ValueSet(set)).await;
                }
                Err(refused) => {
                    let (run, name) = (&self.lease.run_id, &set.name);
                    tracing::warn!(%run, %name, "a value was not published: {}", refused.message);
                }
            }
        }
    }
}
