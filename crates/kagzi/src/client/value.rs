//! Reading what a run has published: `run.value`.

use std::time::SystemTime;

use kagzi_proto::v1;
use serde::de::DeserializeOwned;

use crate::client::handle::RunHandle;
use crate::client::run::RunStatus;
use crate::client::wire::rpc;
use crate::error::Error;
use crate::payload;

/// A value that a run has published.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published<T> {
    /// The last one that is durable.
    pub value: T,
    /// When it was set, by the server's clock.
    pub set_at: SystemTime,
    /// Where the run stood when it was read.
    pub status: RunStatus,
}

impl RunHandle {
    /// What the run's code has published last under this name with
    /// [`ctx.set_value`](crate::WorkflowContext::set_value); `None` when it has not. No worker is asked, so
    /// it works while none is there and after the run has ended.
    ///
    /// ```no_run
    /// # async fn example(run: kagzi::client::RunHandle) -> Result<(), kagzi::Error> {
    /// if let Some(progress) = run.value::<String>("progress").await? {
    ///     println!("{} ({})", progress.value, progress.status);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn value<T: DeserializeOwned>(
        &self,
        name: impl Into<String>,
    ) -> Result<Option<Published<T>>, Error> {
        let client = self.client();
        let request = v1::GetRunValueRequest {
            namespace_id: client.namespace_id().to_owned(),
            run: Some(v1::RunRef { r#ref: Some(v1::run_ref::Ref::RunId(self.run_id().to_owned())) }),
            name: name.into(),
        };
        let answer = rpc!(client, Workflows.get_run_value, Safe, "read a value of a run", request)?;
        if !answer.is_set {
            return Ok(None);
        }
        let value = client.codecs.decode(answer.value.unwrap_or_default()).await;
        let value = value.map_err(|error| Error::undecodable("the value", &error))?;
        let decoded = payload::decode(Some(&value));
        let set_at = answer.set_at.and_then(|at| SystemTime::try_from(at).ok());
        Ok(Some(Published {
            value: decoded.map_err(|error| Error::undecodable("the value", &error))?,
            set_at: set_at.unwrap_or(SystemTime::UNIX_EPOCH),
            status: RunStatus::from_wire(answer.status),
        }))
    }
}
