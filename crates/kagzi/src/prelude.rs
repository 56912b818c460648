//! What most programs with workflows name: `use kagzi::prelude::*;`.

pub use crate::client::{Client, RunHandle, RunStatus};
#[cfg(feature = "embedded")]
pub use crate::embedded::Embedded;
pub use crate::error::Error;
pub use crate::worker::Worker;
pub use crate::workflow::{
    NonRetryableError, RetryAfterError, RetryPolicy, StepContext, StepError, StepFailure, Workflow,
    WorkflowContext,
};
