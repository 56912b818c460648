//! `kagzi doctor`: is the server well, and does every run have a worker that could take it?

use crate::exit::{Trouble, UNREACHABLE};
use crate::output::{self, Format};
use crate::session::Session;
use crate::table::{self, Mood};
use kagzi::Client;
use kagzi::admin::{Admin, RegisteredWorker, ServerInfo, WorkerStatus};
use kagzi::client::{Reason, Run, RunStatus};
use kagzi::error::{Code, Error};
use serde::Serialize;
use std::collections::BTreeMap;

/// How many waiting runs and online workers are looked at; a sample is enough for a diagnosis.
const SAMPLE_MAX: u16 = 1000;

pub async fn perform(session: &Session) -> anyhow::Result<()> {
    let checks = match session.client().await {
        Err(error) => {
            let hint = "is the address right? start a server with: kagzi dev";
            vec![Check::fail("server", format!("{error:#}"), hint)]
        }
        Ok(client) => {
            let mut checks = vec![Check::ok("server", format!("reachable at {}", session.address))];
            checks.extend(server_checks(&client.admin()).await);
            checks.extend(work_checks(&client).await);
            checks
        }
    };

    match session.format {
        Format::Json => output::print_json(&Diagnosis { checks: &checks })?,
        Format::Table => output::print(&as_table(&checks))?,
    }
    verdict(&checks)
}

#[derive(Serialize)]
struct Diagnosis<'a> {
    checks: &'a [Check],
}

#[derive(Debug, Serialize, PartialEq)]
struct Check {
    check: &'static str,
    result: Outcome,
    detail: String,
    hint: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Ok,
    Warn,
    Fail,
}

impl Check {
    fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Check { check, result: Outcome::Ok, detail: detail.into(), hint: None }
    }

    fn warn(check: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Check { check, result: Outcome::Warn, detail: detail.into(), hint: Some(hint.into()) }
    }

    fn fail(check: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Check { check, result: Outcome::Fail, detail: detail.into(), hint: Some(hint.into()) }
    }
}

async fn server_checks(admin: &Admin) -> Vec<Check> {
    let health = match admin.health().await {
        Ok(health) if health.ready => Check::ok("health", "the server can commit"),
        // It names what to do.
        Ok(health) if health.message.contains("kagzi restore") => {
            Check::fail("health", health.message, "no more work is taken; docs/backup.md says how to go on")
        }
        Ok(health) => Check::fail("health", health.message, "look at the server's log and its disk"),
        Err(error) => Check::fail("health", words(&error), "is this a Kagzi server?"),
    };
    let info = match admin.server_info().await {
        Ok(info) => {
            let mut checks = vec![version_check(&info.version), Check::ok("store", info.store.clone())];
            checks.extend(set_aside_checks(&info));
            checks
        }
        Err(error) => vec![Check::fail("version", words(&error), "is this a Kagzi server?")],
    };
    std::iter::once(health).chain(info).collect()
}

/// Rows that the server cannot read and leaves alone, each by name.
fn set_aside_checks(info: &ServerInfo) -> Vec<Check> {
    let hint =
        "kagzi verify checks the whole database; if a newer server wrote it, run that version everywhere";
    let mut checks: Vec<Check> = info
        .set_aside
        .iter()
        .map(|row| Check::fail("unreadable", format!("{} is left alone: {}", row.name, row.why), hint))
        .collect();
    let unnamed = info.set_aside_total.saturating_sub(info.set_aside.len() as u64);
    if unnamed > 0 {
        checks.push(Check::fail("unreadable", format!("and {unnamed} more rows"), hint));
    }
    checks
}

/// The server's own words, where it said any.
fn words(error: &Error) -> String {
    match error {
        Error::Refused(refusal) if refusal.message.is_empty() => refusal.code.to_string(),
        Error::Refused(refusal) => refusal.message.clone(),
        error => error.to_string(),
    }
}

fn version_check(server: &str) -> Check {
    let cli = env!("CARGO_PKG_VERSION");
    match server == cli {
        true => Check::ok("version", server),
        false => Check::warn(
            "version",
            format!("the server is {server}, this command is {cli}"),
            "use the same version of both",
        ),
    }
}

async fn work_checks(client: &Client) -> Vec<Check> {
    let online = client.admin().workers().status(WorkerStatus::Online).page_size(SAMPLE_MAX);
    let waiting = client.runs().status(RunStatus::Pending).page_size(SAMPLE_MAX);
    let online = match online.page("").await {
        Ok(page) => page.rows,
        Err(error) => return vec![unreadable("workers", &error)],
    };
    let waiting = match waiting.page("").await {
        Ok(page) => page.rows,
        Err(error) => return vec![unreadable("runs", &error)],
    };
    std::iter::once(online_check(&online)).chain(orphan_checks(&waiting, &online)).collect()
}

/// A list that the server did not give.
fn unreadable(check: &'static str, error: &Error) -> Check {
    let hint = match error.code() {
        Some(Code::DataLoss) => "the database is damaged: kagzi verify FILE says what is broken",
        Some(Code::Unavailable) => "the server's store does not answer: look at the server's log",
        _other => "is the namespace right?",
    };
    Check::fail(check, words(error), hint)
}

fn online_check(online: &[RegisteredWorker]) -> Check {
    match online.len() {
        0 => Check::warn("workers", "no worker is online", "start your worker, or see it work: kagzi demo"),
        1 => Check::ok("workers", "1 online"),
        n => Check::ok("workers", format!("{n} online")),
    }
}

/// Runs that are ready but that no online worker could take, grouped by what is missing.
fn orphan_checks(waiting: &[Run], online: &[RegisteredWorker]) -> Vec<Check> {
    let has_worker = |run: &Run| {
        online.iter().any(|worker| {
            worker.task_queue == run.task_queue && worker.workflow_types.contains(&run.workflow_type)
        })
    };
    let mut orphans: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for run in waiting.iter().filter(|run| run.reason == Some(Reason::Ready) && !has_worker(run)) {
        *orphans.entry((&run.task_queue, &run.workflow_type)).or_default() += 1;
    }
    if orphans.is_empty() {
        return vec![Check::ok("runs", "every ready run has a worker")];
    }
    orphans
        .into_iter()
        .map(|((queue, workflow_type), count)| {
            Check::warn(
                "runs",
                format!(
                    "{count} ready on queue `{queue}`, but no online worker there registers type \
                         `{workflow_type}`"
                ),
                format!("start a worker on `{queue}` that registers `{workflow_type}`"),
            )
        })
        .collect()
}

fn as_table(checks: &[Check]) -> String {
    let mut table = table::with_columns(&["CHECK", "RESULT", "DETAIL", "HINT"]);
    for check in checks {
        let result = match check.result {
            Outcome::Ok => table::mood_cell("ok", Mood::Good),
            Outcome::Warn => table::mood_cell("warn", Mood::Idle),
            Outcome::Fail => table::mood_cell("fail", Mood::Bad),
        };
        table.add_row([
            check.check.into(),
            result,
            check.detail.as_str().into(),
            check.hint.as_deref().unwrap_or_default().into(),
        ]);
    }
    table::text(table)
}

/// Warnings are for people; only a failed check fails the command.
fn verdict(checks: &[Check]) -> anyhow::Result<()> {
    let failed = |name| checks.iter().any(|check| check.check == name && check.result == Outcome::Fail);
    if failed("server") {
        return Err(Trouble::Reported { code: UNREACHABLE }.into());
    }
    match checks.iter().any(|check| check.result == Outcome::Fail) {
        true => Err(Trouble::Reported { code: 1 }.into()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(queue: &str, workflow_type: &str) -> Run {
        let mut run = Run::default();
        (run.task_queue, run.workflow_type) = (queue.into(), workflow_type.into());
        run.reason = Some(Reason::Ready);
        run
    }

    fn worker(queue: &str, workflow_type: &str) -> RegisteredWorker {
        let mut worker = RegisteredWorker::default();
        (worker.task_queue, worker.workflow_types) = (queue.into(), vec![workflow_type.into()]);
        worker
    }

    #[test]
    fn a_ready_run_without_a_worker_for_its_type_is_a_warning() {
        let waiting = [ready("orders", "charge"), ready("orders", "charge"), ready("orders", "ship")];

        let checks = orphan_checks(&waiting, &[worker("orders", "ship"), worker("mail", "charge")]);

        assert_eq!(checks.len(), 1);
        assert_eq!(checks[0].result, Outcome::Warn);
        assert!(checks[0].detail.starts_with("2 ready on queue `orders`"), "{}", checks[0].detail);
    }

    #[test]
    fn a_run_that_waits_for_a_retry_needs_no_worker_yet() {
        let mut retrying = ready("orders", "charge");
        retrying.reason = Some(Reason::Retry);

        assert_eq!(orphan_checks(&[retrying], &[])[0].result, Outcome::Ok);
    }

    #[test]
    fn only_failed_checks_fail_the_command() {
        let warned = [Check::ok("server", ""), Check::warn("workers", "", "")];
        let failed = [Check::ok("server", ""), Check::fail("health", "", "")];
        let unreachable = [Check::fail("server", "", "")];

        let code = |checks: &[Check]| match verdict(checks) {
            Ok(()) => 0,
            Err(error) => match error.downcast_ref() {
                Some(Trouble::Reported { code }) => *code,
                Some(_) | None => panic!("{error}"),
            },
        };
        assert_eq!((code(&warned), code(&failed), code(&unreachable)), (0, 1, 7));
    }

    #[test]
    fn a_diagnosis_as_a_table_and_as_json() {
        let checks = [
            Check::ok("server", "reachable at 127.0.0.1:50051"),
            Check::warn("workers", "no worker is online", "start your worker"),
        ];

        insta::assert_snapshot!(as_table(&checks));
        insta::assert_snapshot!(output::json(&Diagnosis { checks: &checks }));
    }
}
