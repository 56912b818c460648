//! docs/errors.md is the catalogue of codes in another form. `KAGZI_WRITE_DOCS=1 cargo test -p kagzi-proto`
//! writes it.

use std::{fmt::Write, fs, path::Path};

use kagzi_proto::codes::{DOMAIN, FAILURE_CODES, Reason};

#[test]
fn the_page_of_errors_lists_every_reason_and_every_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
    let fresh = page();
    if std::env::var_os("KAGZI_WRITE_DOCS").is_some() {
        fs::write(&path, &fresh).unwrap();
    }

    let committed = fs::read_to_string(&path).unwrap_or_default();

    assert!(committed == fresh, "docs/errors.md is old: run KAGZI_WRITE_DOCS=1 cargo test -p kagzi-proto");
}

fn page() -> String {
    let mut page = String::from(HEAD);
    page.push_str("\n| reason | gRPC code | what happened | what to do |\n|---|---|---|---|\n");
    for reason in Reason::ALL {
        let (name, code) = (reason.name(), screaming(&format!("{:?}", reason.code())));
        writeln!(page, "| `{name}` | {code} | {} | {} |", reason.meaning(), reason.advice()).unwrap();
    }
    let stops: Vec<_> = Reason::ALL.iter().filter(|reason| reason.ends_execution()).collect();
    let names: Vec<_> = stops.iter().map(|reason| format!("`{}`", reason.name())).collect();
    writeln!(
        page,
        "\nA worker stops executing a run when it is refused with one of these:\n{}.",
        names.join(", ")
    )
    .unwrap();
    page.push_str(FAILURES);
    page.push_str("\n| code | what happened |\n|---|---|\n");
    for (code, means) in FAILURE_CODES {
        writeln!(page, "| `{code}` | {means} |").unwrap();
    }
    page.replace("DOMAIN", DOMAIN)
}

fn screaming(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_uppercase());
    }
    out
}

const HEAD: &str = "# Errors

<!-- Written from crates/kagzi-proto/src/codes.rs by KAGZI_WRITE_DOCS=1 cargo test -p kagzi-proto -->

## Refused calls

A refused call answers with a gRPC code, a message for people, and a `google.rpc.Status` in the trailer
`grpc-status-details-bin`, as gRPC's richer errors have it. Its `google.rpc.ErrorInfo` has a `reason` from
this table, the domain `DOMAIN` and metadata that say what it is about; a `google.rpc.BadRequest` names the
fields that are wrong. On streams the same `google.rpc.Status` is part of the message that answers. Programs
compare reasons, never messages: those may change. UNAVAILABLE means that the same request may be sent
again, but for `OUTCOME_UNKNOWN`. What gRPC itself refuses before the server sees it (UNIMPLEMENTED, a
message in another compression) has a code and no reason.
";

const FAILURES: &str = "
## Failures of runs and steps

`Failure.code` of a run, a step or an attempt is the code that the workflow's code gave it, or one of these.
Retry policies name them in `non_retryable_errors` and `retryable_errors`, and lists of runs are filtered by
them.
";
