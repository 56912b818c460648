//! Finding the run or worker that a request names: by id, by business id, or by a unique prefix where it is
//! only read.

use kagzi_engine::Engine;
use kagzi_model::{Name, RunId, WorkerId};
use kagzi_proto::{Reason, v1};
use kagzi_store::StoreError;
use tonic::Status;
use uuid::Uuid;

use crate::{
    check::{self, invalid},
    status::from_engine,
};

/// Shortest prefix: with fewer digits, runs of the same week are all alike.
const PREFIX_LEN_MIN: usize = 8;

/// The run to read: the one of `named`, or whose id is, or begins with, `run_id`.
pub async fn run(
    engine: &Engine,
    namespace: &Name,
    run_id: &str,
    named: Option<&v1::RunRef>,
) -> Result<RunId, Status> {
    match reference(run_id, named)? {
        Reference::RunId(text) => by_prefix(engine, namespace, text).await,
        Reference::BusinessId(id) => by_business_id(engine, namespace, id).await,
    }
}

/// The run to change or to wait for. A prefix could name another run by the time that the request arrives.
pub async fn run_exactly(
    engine: &Engine,
    namespace: &Name,
    run_id: &str,
    named: Option<&v1::RunRef>,
) -> Result<RunId, Status> {
    match reference(run_id, named)? {
        Reference::RunId(text) => check::run_id("run_id", text),
        Reference::BusinessId(id) => by_business_id(engine, namespace, id).await,
    }
}

enum Reference<'r> {
    RunId(&'r str),
    BusinessId(&'r str),
}

fn reference<'r>(run_id: &'r str, named: Option<&'r v1::RunRef>) -> Result<Reference<'r>, Status> {
    use v1::run_ref::Ref;
    match named.and_then(|named| named.r#ref.as_ref()) {
        None => Ok(Reference::RunId(run_id)),
        Some(_) if !run_id.is_empty() => {
            Err(invalid("run_id", run_id, "run is set too; name the run in one of them"))
        }
        Some(Ref::RunId(id)) => Ok(Reference::RunId(id)),
        Some(Ref::BusinessId(id)) => Ok(Reference::BusinessId(id)),
    }
}

async fn by_business_id(engine: &Engine, namespace: &Name, id: &str) -> Result<RunId, Status> {
    let business_id = check::name("business_id", id)?;
    let found = engine.store().run_by_business(namespace, &business_id).await;
    found.map_err(|error| from_engine(error.into()))?.ok_or_else(|| {
        Reason::RunNotFound.status(format!(
            "no run has business id '{business_id}' in namespace '{namespace}'; list them with: \
             kagzi --namespace {namespace} run list"
        ))
    })
}

async fn by_prefix(engine: &Engine, namespace: &Name, text: &str) -> Result<RunId, Status> {
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
