//! DeleteContact: nobody knows any more how the person is reached.

use kagzi_engine::Engine;
use kagzi_model::intervention::ContactRule;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::DeleteContactRequest,
) -> Result<v1::DeleteContactResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let name = check::name("name", &request.name)?;
    engine.change_noun(ContactRule::Delete { namespace, name }).await.map_err(from_engine)?;
    Ok(v1::DeleteContactResponse {})
}
