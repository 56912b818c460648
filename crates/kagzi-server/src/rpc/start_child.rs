//! StartChild: a unary worker's run starts another one; where it waits for the child's end, the lease ends.

use kagzi_engine::{Engine, Told};
use kagzi_model::{ClosePolicy, Name, act};
use kagzi_proto::v1::{self, ChildMode};
use tonic::Status;

use super::start_workflow;
use crate::{
    check::{self, invalid},
    services::limits,
    status::from_engine,
    wire,
};

pub async fn handle(
    engine: &Engine,
    request: v1::StartChildRequest,
) -> Result<v1::StartChildResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let lease = check::lease_ref(&namespace, request.lease.as_ref())?;
    let asked = v1::StartChild {
        step: request.step,
        start: request.start,
        close_policy: request.close_policy,
        mode: request.mode,
        timeout_ms: request.timeout_ms,
    };
    let start = act::StartChild { park: true, ..read(engine, &namespace, asked)? };
    let began = engine.report(&lease, start).await.map_err(from_engine)?;
    let run_id = began.child.to_string();
    let Some(waited) = began.waited else {
        return Ok(v1::StartChildResponse { run_id, waited: None, parked: false });
    };
    let told = engine.told(&lease.key(), waited).await.map_err(from_engine)?;
    let parked = matches!(told, Told::Waiting { .. });
    Ok(v1::StartChildResponse { run_id, waited: Some(wire::waited(told)), parked })
}

/// Checks what a worker asks for, by stream or by call.
pub fn read(engine: &Engine, namespace: &Name, asked: v1::StartChild) -> Result<act::StartChild, Status> {
    let named = asked.step.unwrap_or_default();
    let Some(mut start) = asked.start else {
        return Err(invalid("start", "", "it must say what to start"));
    };
    start.namespace_id = namespace.to_string();
    // The call has the identity of its step, and needs no other.
    start.request_id.clear();
    let own_queue = start.task_queue.is_empty();
    if own_queue {
        start.task_queue = "of-its-parent".to_owned();
    }
    let mut start = start_workflow::read(engine, limits(engine), start)?;
    if own_queue {
        start.task_queue = Name::empty();
    }
    let mode = match ChildMode::try_from(asked.mode) {
        Ok(ChildMode::Unspecified) => ChildMode::Await,
        Ok(mode) => mode,
        Err(_) => return Err(invalid("mode", asked.mode, "it must be a ChildMode, 1 to 3")),
    };
    let close = match v1::ClosePolicy::try_from(asked.close_policy) {
        Ok(v1::ClosePolicy::Unspecified) if mode == ChildMode::Detach => ClosePolicy::Abandon,
        Ok(v1::ClosePolicy::Unspecified | v1::ClosePolicy::Cancel) => ClosePolicy::Cancel,
        Ok(v1::ClosePolicy::Terminate) => ClosePolicy::Terminate,
        Ok(v1::ClosePolicy::Abandon) => ClosePolicy::Abandon,
        Err(_) => {
            return Err(invalid("close_policy", asked.close_policy, "it must be a ClosePolicy, 1 to 3"));
        }
    };
    let timeout_ms = check::wait_ms("timeout_ms", asked.timeout_ms)?;
    if timeout_ms.is_some() && mode != ChildMode::Await {
        let rule = "only a step that waits for its child has a time; limit the child by its own timeouts";
        return Err(invalid("timeout_ms", timeout_ms.unwrap_or_default(), rule));
    }
    Ok(act::StartChild {
        step: check::step(&named.path, named.position)?,
        start: Box::new(start),
        close,
        awaited: mode == ChildMode::Await,
        told: mode != ChildMode::Detach,
        timeout_ms,
        park: false,
    })
}
