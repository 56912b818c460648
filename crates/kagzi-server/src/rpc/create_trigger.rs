//! CreateTrigger: every event of a topic starts a run from now on.

use kagzi_engine::Engine;
use kagzi_model::{CreateTrigger, NounRow, Trigger};
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::CreateTriggerRequest,
) -> Result<v1::CreateTriggerResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let topic = check::topic(&request.topic, &request.key)?;
    let trigger = Trigger {
        topic: topic.name,
        key: (!topic.key.is_empty()).then_some(topic.key),
        workflow_type: check::name("workflow_type", &request.workflow_type)?,
        task_queue: check::name("task_queue", &request.task_queue)?,
    };
    let id = check::name("trigger_id", &request.trigger_id)?;
    let rule = CreateTrigger { namespace, id, trigger: trigger.clone() };
    let noun = engine.change_noun(rule).await.map_err(from_engine)?;
    Ok(v1::CreateTriggerResponse { trigger: Some(shown(&noun, trigger)) })
}

/// A trigger as clients see it.
pub fn shown(noun: &NounRow, trigger: Trigger) -> v1::Trigger {
    let Trigger { topic, key, workflow_type, task_queue } = trigger;
    v1::Trigger {
        trigger_id: noun.key.id.to_string(),
        topic: topic.to_string(),
        key: key.map(|key| key.to_string()).unwrap_or_default(),
        workflow_type: workflow_type.to_string(),
        task_queue: task_queue.to_string(),
        created_at: Some(wire::timestamp(noun.created_at)),
    }
}
