//! CreateNote: where people find what to do about the runs of a workflow type.

use kagzi_engine::Engine;
use kagzi_model::{CreateNote, Note, NounRow};
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::CreateNoteRequest,
) -> Result<v1::CreateNoteResponse, Status> {
    let note = Note { link: check::note(&request.link)?, owner: check::note(&request.owner)? };
    let rule = CreateNote {
        namespace: check::namespace(&request.namespace_id)?,
        workflow_type: check::name("workflow_type", &request.workflow_type)?,
        note: note.clone(),
    };
    let noun = engine.change_noun(rule).await.map_err(from_engine)?;
    Ok(v1::CreateNoteResponse { note: Some(shown(&noun, note)) })
}

/// A note as clients see it.
pub fn shown(noun: &NounRow, Note { link, owner }: Note) -> v1::Note {
    let created_at = Some(wire::timestamp(noun.created_at));
    v1::Note { workflow_type: noun.key.id.to_string(), link, owner, created_at }
}
