//! Runs a command with `KAGZI_TEST_STORE` naming a fresh database on a throw-away PostgreSQL, which goes when
//! the command ends: `with_database scripts/examples.sh`. See `kagzi_store_postgres::fixture`.

use std::process::{Command, ExitCode};

use kagzi_store_postgres::fixture;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: with_database COMMAND [ARGUMENT...]");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let database = runtime.expect("a runtime can always be built").block_on(fixture::database());
    let ended = Command::new(&program).args(words).env("KAGZI_TEST_STORE", database).status();
    match ended {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("could not run {}: {error}", program.display());
            ExitCode::FAILURE
        }
    }
}
