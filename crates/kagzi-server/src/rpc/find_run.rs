//! Finding the run or worker that a user means: by id, or by a unique prefix of one.

use kagzi_engine::Engine;
use kagzi_model::{Name, RunId, WorkerId};
use kagzi_proto::Reason;
use kagzi_store::StoreError;
use tonic::Status;
use uuid::Uuid;

use crate::{check::invalid, status::from_engine};

/// Shortest prefix: with fewer digits, runs of the same week are all alike.
const PREFIX_LEN_MIN: usize = 8;

/// The run whose id is, or begins with, `text`.
pub async fn run(engine: &Engine, namespace: &Name, text: &str) -> Result<RunId, Status> {
    if let Ok(id) = Uuid::try_parse(text) {
        return Ok(RunId(id));
    }
    let digits = digits("run_id", text)?;
    let found = engine.store().runs_by_prefix(namespace, &digits).await;
    one(Kind { what: "run", field: "run_id", missing: Reason::RunNotFound }, namespace, text, found)
}

/// The worker whose id is, or begins with, `text`.
pub async fn worker(engine: &Engine, namespace: &Name, text: &str) -> Result<WorkerId, Status> {
    if let Ok(id) = Uuid::try_parse(text) {
        return Ok(WorkerId(id));
    }
    let digits = digits("worker_id", text)?;
    let found = engine.store().workers_by_prefix(namespace, &digits).await;
    one(Kind { what: "worker", field: "worker_id", missing: Reason::WorkerNotFound }, namespace, text, found)
}

fn digits(field: &str, text: &str) -> Result<String, Status> {
    let digits: String = text.chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect();
    let hexadecimal = digits.chars().all(|c| c.is_ascii_hexdigit());
    if !hexadecimal || !(PREFIX_LEN_MIN..=32).contains(&digits.len()) {
        return Err(invalid(
            field,
            text,
            format_args!("it must be a UUID, or at least the first {PREFIX_LEN_MIN} digits of one"),
        ));
    }
    Ok(digits)
}

/// What is looked for, and where its id stands.
struct Kind {
    what: &'static str,
    field: &'static str,
    missing: Reason,
}

fn one<Id>(
    Kind { what, field, missing }: Kind,
    namespace: &Name,
    text: &str,
    found: Result<Vec<Id>, StoreError>,
) -> Result<Id, Status> {
    let mut found = found.map_err(|error| from_engine(error.into()))?;
    match (found.pop(), found.is_empty()) {
        (Some(id), true) => Ok(id),
        (Some(_), false) => {
            Err(invalid(field, text, format_args!("more than one {what} id begins like that; add digits")))
        }
        (None, _) => Err(missing.status(format!(
            "there is no {what} '{text}' in namespace '{namespace}'; list them with: \
                 kagzi --namespace {namespace} {what} list"
        ))),
    }
}
