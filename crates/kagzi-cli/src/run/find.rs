use crate::exit::Trouble;
use crate::session::{Session, Workflows};
use anyhow::Context;
use kagzi_proto::v1::{GetWorkflowRunRequest, WorkflowRun};
use tonic::Code;

/// The contract asks for at least this much of a run id.
const PREFIX_LEN_MIN: usize = 8;

/// Finds a run by its id, a unique prefix of it, or its business id, and returns it whole.
pub async fn run(workflows: &mut Workflows, session: &Session, id: &str) -> anyhow::Result<WorkflowRun> {
    if could_be_run_id(id) {
        match get(workflows, session, ById::Run(id)).await {
            // What is no id to the server may still be a business id; a prefix that fits several runs is not.
            Err(status) if status.code() == Code::NotFound => {}
            Err(status)
                if status.code() == Code::InvalidArgument && !status.message().contains("add digits") => {}
            answer => return found(answer?),
        }
    }
    match get(workflows, session, ById::Business(id)).await {
        Err(status) if status.code() == Code::NotFound => Err(no_such_run(id)),
        answer => found(answer?),
    }
}

/// The full run id, for calls that accept nothing else. A full one is taken at its word, which saves a call.
pub async fn run_id(workflows: &mut Workflows, session: &Session, id: &str) -> anyhow::Result<String> {
    match uuid::Uuid::try_parse(id) {
        Ok(full) => Ok(full.to_string()),
        Err(_) => Ok(run(workflows, session, id).await?.run_id),
    }
}

enum ById<'a> {
    Run(&'a str),
    Business(&'a str),
}

async fn get(
    workflows: &mut Workflows,
    session: &Session,
    id: ById<'_>,
) -> Result<Option<WorkflowRun>, tonic::Status> {
    let mut request =
        GetWorkflowRunRequest { namespace_id: session.namespace.clone(), ..GetWorkflowRunRequest::default() };
    match id {
        ById::Run(id) => request.run_id = id.to_lowercase(),
        ById::Business(id) => request.business_id = id.to_owned(),
    }
    Ok(workflows.get_workflow_run(request).await?.into_inner().workflow_run)
}

fn found(answer: Option<WorkflowRun>) -> anyhow::Result<WorkflowRun> {
    answer.context("the server answered without a run")
}

fn could_be_run_id(id: &str) -> bool {
    (PREFIX_LEN_MIN..=36).contains(&id.len()) && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

fn no_such_run(id: &str) -> anyhow::Error {
    let too_short = id.len() < PREFIX_LEN_MIN;
    let hint = if too_short { "; a prefix of a run id needs 8 characters or more" } else { "" };
    Trouble::NotFound(format!("no run has the id or business id `{id}`{hint}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_like_a_run_id_is_asked_for_as_one() {
        assert!(could_be_run_id("0199f3c2"));
        assert!(could_be_run_id("0199F3C2-7d1a-7c4e-9b1f-5a2e8d7c6b3a"));
        assert!(!could_be_run_id("0199f3c"));
        assert!(!could_be_run_id("order-1001"));
    }

    #[test]
    fn a_short_prefix_that_found_nothing_is_told_why() {
        assert!(no_such_run("0199").to_string().contains("8 characters"));
        assert!(!no_such_run("order-1001").to_string().contains("8 characters"));
    }
}
