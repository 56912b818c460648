//! Shared keys, in and out.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kagzi_model::{KeyHolder, KeyState, Name, NounRow, Payload, RunId, SharedKey};
use kagzi_proto::v1;
use tonic::Status;

use super::{failure, timestamp};
use crate::check::{self, invalid};

/// As clients see it. Lists leave the results out.
pub fn shared_key(row: &NounRow, key: SharedKey, with_result: bool) -> v1::SharedKey {
    let expires_at = key.expires_at().map(timestamp);
    let holder = match key.holder {
        KeyHolder::Run { run, step } => {
            v1::KeyHolder { run_id: run.to_string(), step: step.to_string(), ..Default::default() }
        }
        KeyHolder::Client { name } => v1::KeyHolder { name: name.to_string(), ..Default::default() },
    };
    v1::SharedKey {
        key: row.key.id.to_string(),
        state: state(key.state).into(),
        holder: Some(holder),
        fence: key.fence,
        input_hash: key.input.unwrap_or_default(),
        claimed_at: Some(timestamp(key.claimed_at)),
        finished_at: key.finished_at.map(timestamp),
        expires_at,
        lock_until: key.lock_until.map(timestamp),
        result: key.result.filter(|_| with_result).map(|kept| read_result(&kept)),
        failure: key.failure.as_ref().map(failure),
    }
}

fn state(state: KeyState) -> v1::KeyState {
    match state {
        KeyState::InProgress => v1::KeyState::InProgress,
        KeyState::Completed => v1::KeyState::Completed,
        KeyState::Failed => v1::KeyState::Failed,
    }
}

/// Who claims, or says how it ended.
pub fn read_holder(holder: Option<v1::KeyHolder>) -> Result<KeyHolder, Status> {
    let v1::KeyHolder { run_id, step, name } = holder.unwrap_or_default();
    match (run_id.is_empty(), name.is_empty()) {
        (false, true) => {
            let run: RunId = check::run_id("holder.run_id", &run_id)?;
            Ok(KeyHolder::Run { run, step: check::step_path("holder.step", &step)? })
        }
        (true, false) => Ok(KeyHolder::Client { name: check::name("holder.name", &name)? }),
        (true, true) | (false, false) => {
            Err(invalid("holder", name, "give run_id and step, or name, and not both"))
        }
    }
}

/// Results are kept as text: content type, a line break, and the bytes in base 64.
pub fn kept_result(result: &Payload) -> String {
    format!("{}\n{}", result.content_type, STANDARD.encode(&result.data))
}

fn read_result(kept: &str) -> v1::Payload {
    let (content_type, data) = kept.split_once('\n').unwrap_or(("", kept));
    let data = STANDARD.decode(data).unwrap_or_default();
    v1::Payload { data: data.into(), content_type: content_type.to_owned() }
}

/// The text of a key.
pub fn read_key(key: &str) -> Result<Name, Status> {
    check::name("key", key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_comes_back_as_it_was() {
        for (data, content_type) in [(&b"{}"[..], "application/json"), (&[0, 159, 10], ""), (b"", "x")] {
            let payload = Payload { data: data.to_vec().into(), content_type: content_type.into() };
            let read = read_result(&kept_result(&payload));
            assert_eq!((read.data.as_ref(), read.content_type.as_str()), (data, content_type));
        }
    }

    #[test]
    fn a_holder_is_a_step_or_a_program_and_not_both() {
        let run = uuid::Uuid::from_u128(7).to_string();
        let holder = |run_id: &str, step: &str, name: &str| {
            let (run_id, step, name) = (run_id.to_owned(), step.to_owned(), name.to_owned());
            read_holder(Some(v1::KeyHolder { run_id, step, name }))
        };
        assert!(matches!(holder(&run, "charge", ""), Ok(KeyHolder::Run { .. })));
        assert!(matches!(holder("", "", "importer"), Ok(KeyHolder::Client { .. })));
        assert!(holder(&run, "charge", "importer").is_err() && holder("", "", "").is_err());
        assert!(holder(&run, "", "").is_err() && read_holder(None).is_err());
    }
}
