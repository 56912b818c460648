//! GetRunValue: what a run has published last under a name. No worker is asked.

use kagzi_engine::Engine;
use kagzi_model::RunKey;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, find, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::GetRunValueRequest,
) -> Result<v1::GetRunValueResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let name = check::name("name", &request.name)?;
    let run = find::run(engine, &namespace, "", request.run.as_ref()).await?;
    // The status is read first: a run that is shown as ended has no later value.
    let row = engine.read_run(&namespace, run).await.map_err(from_engine)?.run;
    let found = engine.value(&RunKey::new(namespace, run), &name).await.map_err(from_engine)?;
    let mut answer = v1::GetRunValueResponse { run_id: run.to_string(), ..Default::default() };
    answer.status = row.state.status() as i32;
    if let Some((event, value)) = found {
        answer.is_set = true;
        answer.set_at = Some(wire::timestamp(event.at));
        answer.sequence = event.seq;
        answer.value = Some(wire::payload(value));
    }
    Ok(answer)
}
