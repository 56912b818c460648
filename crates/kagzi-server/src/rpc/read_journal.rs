//! ReadJournal: the rest of a journal that was too large for one answer.

use kagzi_engine::{Engine, EngineError};
use kagzi_model::Rejection;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, journal_page, response_budget::Room, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::ReadJournalRequest,
) -> Result<v1::ReadJournalResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let lease = wire::read_lease(&namespace, request.lease.as_ref(), (&request.run_id, request.lease_epoch))?;
    let run = engine.read_run(&namespace, lease.run).await.map_err(from_engine)?.run;
    // Whoever has lost the run must stop, not read on.
    let lost = if run.epoch != lease.epoch {
        Some(Rejection::StaleEpoch { run: run.id, named: lease.epoch, current: run.epoch })
    } else if run.lease().is_none() {
        Some(Rejection::NotLeased { run: run.id, status: run.state.status() })
    } else {
        None
    };
    if let Some(lost) = lost {
        return Err(from_engine(EngineError::Rejected(lost)));
    }
    let page = journal_page::read(engine, &run, &request.page_token, Room::new()).await?;
    Ok(v1::ReadJournalResponse { journal: page.entries, next_page_token: page.next_page_token })
}
