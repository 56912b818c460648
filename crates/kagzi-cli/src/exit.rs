//! Exit codes are a contract with scripts: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 7 unreachable.

use crate::output;
use kagzi::error::Code;
pub use kagzi_shell::trouble::Trouble;
use std::io;
use std::process::ExitCode;

/// Prints the error for a person and answers with the code for a script.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if let Some(message) = message(error) {
        output::note(&format!("error: {message}"));
    }
    ExitCode::from(code(error))
}

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const NOT_FOUND: u8 = 3;
const CONFLICT: u8 = 4;
pub const UNREACHABLE: u8 = 7;

fn code(error: &anyhow::Error) -> u8 {
    if reader_has_left(error) {
        return 0;
    }
    if let Some(trouble) = error.downcast_ref::<Trouble>() {
        return match trouble {
            Trouble::Usage(_) => USAGE,
            Trouble::NotFound(_) => NOT_FOUND,
            Trouble::Unreachable { .. } => UNREACHABLE,
            Trouble::Reported { code } => *code,
        };
    }
    match error.downcast_ref() {
        Some(kagzi::Error::Unreachable { .. }) => UNREACHABLE,
        Some(kagzi::Error::Refused(refusal)) => code_of_refusal(refusal.code),
        // The SDK may learn of others; none of them has a code of its own.
        Some(_) | None => FAILED,
    }
}

fn code_of_refusal(code: Code) -> u8 {
    match code {
        Code::InvalidArgument => USAGE,
        Code::NotFound => NOT_FOUND,
        Code::AlreadyExists | Code::Aborted | Code::FailedPrecondition => CONFLICT,
        Code::Unavailable => UNREACHABLE,
        // The SDK may learn of others; none of them has a code of its own.
        _ => FAILED,
    }
}

fn message(error: &anyhow::Error) -> Option<String> {
    if reader_has_left(error) || matches!(error.downcast_ref(), Some(Trouble::Reported { .. })) {
        return None;
    }
    if let Some(kagzi::Error::Refused(refusal)) = error.downcast_ref()
        && !refusal.message.is_empty()
    {
        return Some(refusal.message.clone());
    }
    Some(format!("{error:#}"))
}

/// `kagzi run list | head -1` is no failure.
fn reader_has_left(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;
    use kagzi::error::{Error, Refusal};

    fn refused(code: Code, message: &str) -> anyhow::Error {
        Error::from(Refusal::new("show the run", code, message)).into()
    }

    #[test]
    fn refusals_become_exit_codes() {
        let cases = [
            (Code::NotFound, 3),
            (Code::AlreadyExists, 4),
            (Code::Aborted, 4),
            (Code::FailedPrecondition, 4),
            (Code::InvalidArgument, 2),
            (Code::Unavailable, 7),
            (Code::Internal, 1),
            (Code::Unimplemented, 1),
        ];

        for (kind, expected) in cases {
            assert_eq!(code(&refused(kind, "")), expected, "{kind:?}");
        }
    }

    #[test]
    fn context_does_not_hide_the_exit_code() {
        let error = Err::<(), _>(refused(Code::NotFound, "no run 0192"))
            .context("could not show the run")
            .unwrap_err();

        assert_eq!(code(&error), 3);
    }

    #[test]
    fn troubles_have_their_own_codes() {
        let address = "127.0.0.1:50051".parse().unwrap();
        let unreachable = Trouble::Unreachable { address, why: "nothing listens there".into() };

        assert_eq!(code(&Trouble::usage("bad")), 2);
        assert_eq!(code(&Trouble::NotFound("gone".into()).into()), 3);
        let said = "no server at 127.0.0.1:50051: nothing listens there; start one with: kagzi dev";
        assert_eq!(unreachable.to_string(), said);
        assert_eq!(code(&unreachable.into()), 7);
        let unreachable = kagzi::Error::Unreachable { addresses: "x:1".into(), message: "refused".into() };
        assert_eq!(code(&unreachable.into()), 7);
        assert_eq!(code(&anyhow::anyhow!("anything else")), 1);
    }

    #[test]
    fn a_refusal_is_reported_in_the_servers_words() {
        let error = refused(Code::NotFound, "no run starts with 0192");

        assert_eq!(message(&error).unwrap(), "no run starts with 0192");
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let error = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));

        assert_eq!((code(&error), message(&error)), (0, None));
    }
}
