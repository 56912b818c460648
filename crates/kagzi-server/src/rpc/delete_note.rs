//! DeleteNote: nothing is kept of it.

use kagzi_engine::Engine;
use kagzi_model::DeleteNote;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::DeleteNoteRequest,
) -> Result<v1::DeleteNoteResponse, Status> {
    let rule = DeleteNote {
        namespace: check::namespace(&request.namespace_id)?,
        workflow_type: check::name("workflow_type", &request.workflow_type)?,
    };
    engine.change_noun(rule).await.map_err(from_engine)?;
    Ok(v1::DeleteNoteResponse {})
}
