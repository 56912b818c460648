use crate::exit::Trouble;
use kagzi::Client;
use kagzi::client::{Run, RunHandle};
use kagzi::error::{Code, Error};

/// The contract asks for at least this much of a run id.
const PREFIX_LEN_MIN: usize = 8;

/// Finds a run by its id, a unique prefix of it, or its business id, and returns it whole.
pub async fn run(client: &Client, id: &str) -> anyhow::Result<Run> {
    if could_be_run_id(id) {
        match client.get(id.to_lowercase()).await {
            // What is no id to the server may still be a business id; a prefix that fits several runs is not.
            Err(error) if error.is_not_found() => {}
            Err(Error::Refused(refusal))
                if refusal.code == Code::InvalidArgument && !refusal.message.contains("add digits") => {}
            answer => return Ok(answer?),
        }
    }
    match client.get_by_id(id).await {
        Err(error) if error.is_not_found() => Err(no_such_run(id)),
        answer => Ok(answer?),
    }
}

/// The handle of a run, for calls that accept nothing but a full id. A full one is taken at its word, which
/// saves a call.
pub async fn handle(client: &Client, id: &str) -> anyhow::Result<RunHandle> {
    match uuid::Uuid::try_parse(id) {
        Ok(full) => Ok(client.handle(full.to_string())),
        Err(_) => Ok(client.handle(run(client, id).await?.run_id)),
    }
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
