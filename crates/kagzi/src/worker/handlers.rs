//! The workflow functions of a worker, by type, with their input and output types erased.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use kagzi_proto::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::run::context::WorkflowContext;
use crate::step_error::StepFailure;
use crate::{codes, failure, payload};

/// Decodes the input and makes the function's future; the error is the failure of an undecodable input.
pub(crate) type Handler = Arc<dyn Fn(WorkflowContext, Option<&v1::Payload>) -> Started + Send + Sync>;
type Started = Result<BoxFuture<'static, anyhow::Result<v1::Payload>>, Box<v1::Failure>>;

#[derive(Default, Clone)]
pub(crate) struct Handlers {
    by_type: HashMap<String, Handler>,
    /// Registered more than once. Told when the worker starts, because `register` returns no error.
    duplicates: Vec<String>,
}

impl Handlers {
    pub(crate) fn insert<F, Fut, I, O>(&mut self, workflow_type: &str, function: F)
    where
        F: Fn(WorkflowContext, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = anyhow::Result<O>> + Send + 'static,
        I: DeserializeOwned + Send + 'static,
        O: Serialize + 'static,
    {
        let function = Arc::new(function);
        let handler: Handler = Arc::new(move |context, input| {
            let input = payload::decode::<I>(input).map_err(|error| {
                let message = format!("the run's input cannot be decoded: {error}");
                Box::new(failure::new(codes::INVALID_INPUT, message, true))
            })?;
            let function = function.clone();
            // The call is made inside the future, where a panic is caught.
            Ok(Box::pin(async move { encode_output(&function(context, input).await?) }))
        });
        if self.by_type.insert(workflow_type.to_owned(), handler).is_some() {
            self.duplicates.push(workflow_type.to_owned());
        }
    }

    pub(crate) fn get(&self, workflow_type: &str) -> Option<Handler> {
        self.by_type.get(workflow_type).cloned()
    }

    pub(crate) fn workflow_types(&self) -> Vec<String> {
        let mut types: Vec<String> = self.by_type.keys().cloned().collect();
        types.sort_unstable();
        types
    }

    pub(crate) fn duplicates(&self) -> &[String] {
        &self.duplicates
    }
}

fn encode_output<O: Serialize>(output: &O) -> anyhow::Result<v1::Payload> {
    payload::encode(output).map_err(|error| {
        let message = format!("the run's output cannot be encoded: {error}");
        StepFailure::new(codes::INVALID_OUTPUT, message).non_retryable().into()
    })
}
