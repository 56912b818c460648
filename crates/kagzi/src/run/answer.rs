//! What people answer, as the code reads it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[allow(unused_imports, reason = "named in the documentation")]
use crate::run::context::WorkflowContext;

/// What somebody answered to [`WorkflowContext::approval`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Approval {
    /// Yes, or no.
    pub approved: bool,
    /// Other arguments that somebody approved instead, where the question allows it.
    #[serde(default)]
    pub edited: Option<serde_json::Value>,
    /// Who answered; empty when nobody did in time.
    #[serde(default)]
    pub by: String,
    /// `user`, `escalation`, `operator`, or `timeout_default` when nobody answered in time.
    #[serde(default)]
    pub source: String,
    /// What was said with the answer.
    #[serde(default)]
    pub note: String,
    /// SHA-256 of what was shown, in hexadecimal digits.
    #[serde(default)]
    arguments_sha256: String,
}

impl Approval {
    /// What was approved, read as what the code asked about: what somebody made of it, or these arguments
    /// where nobody changed them. An error when it was rejected.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn refund(ctx: WorkflowContext, cents: u64) -> anyhow::Result<u64> {
    ///     let approval = ctx.approval("refund").of(&cents).editable().to("group:finance").await?;
    ///     approval.granted(cents)
    /// }
    /// ```
    pub fn granted<T: DeserializeOwned>(&self, shown: T) -> anyhow::Result<T> {
        anyhow::ensure!(self.approved, "it was rejected by {}: {}", self.whom(), self.note);
        match &self.edited {
            None => Ok(shown),
            Some(edited) => Ok(serde_json::from_value(edited.clone())?),
        }
    }

    /// An error unless it was approved, unchanged, for exactly these arguments.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn refund(ctx: WorkflowContext, cents: u64) -> anyhow::Result<u64> {
    ///     let approval = ctx.approval("refund").of(&cents).await?;
    ///     approval.checked(&cents)?;
    ///     Ok(cents)
    /// }
    /// ```
    pub fn checked<T: Serialize + ?Sized>(&self, arguments: &T) -> anyhow::Result<()> {
        anyhow::ensure!(self.approved, "it was rejected by {}: {}", self.whom(), self.note);
        anyhow::ensure!(self.edited.is_none(), "{} approved other arguments", self.whom());
        let shown = kagzi_proto::sha256_hex(&serde_json::to_string(arguments)?);
        anyhow::ensure!(shown == self.arguments_sha256, "other arguments were shown when it was approved");
        Ok(())
    }

    fn whom(&self) -> &str {
        if self.by.is_empty() { "nobody, because its time was over" } else { &self.by }
    }
}

/// What somebody decided, by [`WorkflowContext::decide`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Decision {
    /// The id of the option.
    pub option: String,
    /// Who decided; empty when nobody did in time.
    #[serde(default)]
    pub by: String,
    /// `user`, `escalation`, `operator`, or `timeout_default` when nobody answered in time.
    #[serde(default)]
    pub source: String,
    /// What was said with it.
    #[serde(default)]
    pub note: String,
}

/// What somebody did by hand, after [`WorkflowContext::takeover`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Takeover {
    /// Whatever proves it.
    pub proof: String,
    /// Who did it.
    #[serde(default)]
    pub by: String,
    /// What was said with it.
    #[serde(default)]
    pub note: String,
}

/// Data that somebody gave, after [`WorkflowContext::input`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Input<T> {
    /// The data, as the schema of its type has it.
    pub data: T,
    /// Who gave it.
    #[serde(default)]
    pub by: String,
    /// What was said with it.
    #[serde(default)]
    pub note: String,
}
