//! Death at every commit. Each scenario is played once per commit and victim: the server just before it, the
//! server just after it, the worker whose report it is. Whoever died is started again, and the scenario must
//! end as if nobody had.

use std::time::Duration;

use futures_util::future::join_all;
use kagzi_faults::{
    CrashPoint, Fate, Move, Pace, Process, Script, Stage, StepPlan, Victim, crashing_stage, eventually,
    start_request,
};
use kagzi_proto::v1::{self, StartWorkflowRequest, TimeoutConfig, WorkflowStatus, run_ref::Ref};

const WORKER: &[&str] = &["--handler", "handler"];
/// Plays of one scenario at a time; most of each is waiting.
const AT_ONCE: u64 = 5;
/// No scenario has this many commits: something is repeated for ever.
const COMMITS_MAX: u64 = 60;

/// A run, and what must be true of it in the end.
struct Scenario {
    request: StartWorkflowRequest,
    ends: WorkflowStatus,
    /// Codes of the attempts that count, in order.
    failed: Vec<&'static str>,
    /// A failure handler runs, once.
    handled: bool,
    /// Somebody outside completes this promise with its own name as soon as it is there.
    promise: Option<&'static str>,
    /// What the run was told from outside, in order.
    heard: Vec<&'static str>,
    /// How many runs it takes, handlers and children among them.
    runs: usize,
}

fn scenario(script: &Script) -> Scenario {
    let request = StartWorkflowRequest { business_id: "it".into(), ..start_request("script", script) };
    let (ends, failed, heard) = (WorkflowStatus::Completed, vec![], vec![]);
    Scenario { request, ends, failed, handled: false, promise: None, heard, runs: 1 }
}

/// Plays it for every commit that it makes, until one play goes through without a death.
async fn survives_every_death(scenario: Scenario) {
    for victim in [Victim::ServerBefore, Victim::ServerAfter, Victim::Worker] {
        let mut commit = 1;
        loop {
            let plays = commit..commit + AT_ONCE;
            let died = join_all(plays.map(|commit| play(&scenario, CrashPoint { victim, commit }))).await;
            if died.contains(&false) {
                let deaths = commit - 1 + died.iter().filter(|died| **died).count() as u64;
                println!("{victim:?}: {deaths} deaths");
                assert!(deaths >= 3, "{victim:?}: a scenario has at least a start, a step and an end");
                break;
            }
            commit += AT_ONCE;
            assert!(commit < COMMITS_MAX, "{victim:?}: does it never end?");
        }
    }
}

/// One play. True when somebody died.
async fn play(scenario: &Scenario, crash: CrashPoint) -> bool {
    let stage = crashing_stage!(Pace::Fast, crash);
    let mut worker = stage.worker(WORKER).await;
    stage.mark_worker(&worker);
    let mut died = false;

    let run = tokio::select! {
        run = end_of(&stage, scenario) => run,
        never = keep_alive(&stage, &mut worker, &mut died) => match never {},
    };

    let context = format!("{crash:?}");
    assert_eq!(stage.run(&run).await.status(), scenario.ends, "{context}");
    let events = stage.events(&run).await;
    let mut failed = codes_of_failed_attempts(&events);
    if matches!(crash.victim, Victim::Worker) {
        // The attempt that died with its worker, where the server knew that it had begun, counts as any
        // other.
        let expected = scenario.failed.first().copied().unwrap_or("WORKER_LOST");
        failed.iter_mut().filter(|code| **code == "WORKER_LOST").for_each(|code| *code = expected.to_owned());
    }
    assert_eq!(failed, scenario.failed, "{context}");
    if scenario.handled {
        let handled = stage.handlers_of(&run).await;
        assert_eq!(handled.len(), 1, "{context}");
        assert_eq!(handled[0].status(), WorkflowStatus::Completed, "{context}");
    }
    if scenario.ends == WorkflowStatus::Completed {
        assert_eq!(stage.heard(&run).await, scenario.heard, "{context}");
    }
    assert_eq!(stage.close().await.runs, scenario.runs, "{context}");
    died
}

/// Starts the run and waits until it, and its handler, have ended.
async fn end_of(stage: &Stage, scenario: &Scenario) -> String {
    let run = stage.start_surely(scenario.request.clone()).await;
    if let Some(name) = scenario.promise {
        complete_surely(stage, &run, name).await;
    }
    stage.finished(&run).await;
    if scenario.handled {
        let handler = eventually("the handler is there", async || stage.handler_started(&run).await).await;
        stage.finished(&handler).await;
    }
    run
}

/// Completes the promise whatever happens to the server meanwhile, and once more: whoever does not know
/// whether it was heard says it again.
async fn complete_surely(stage: &Stage, run: &str, name: &str) {
    let value = serde_json::to_vec(name).expect("a name is JSON");
    let request = v1::CompletePromiseRequest {
        run: Some(v1::RunRef { r#ref: Some(Ref::RunId(run.to_owned())) }),
        name: name.to_owned(),
        payload: Some(v1::Payload { data: value.into(), ..Default::default() }),
        ..Default::default()
    };
    let told = async || stage.workflows().complete_promise(request.clone()).await.ok();
    eventually("the promise is there and completed", told).await;
    let again = eventually("it is completed", told).await.into_inner();
    assert!(again.already_completed, "the first word counts");
}

/// Starts again whoever dies.
async fn keep_alive(stage: &Stage, worker: &mut Process, died: &mut bool) -> std::convert::Infallible {
    loop {
        *died |= stage.replace_dead(worker, WORKER).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn codes_of_failed_attempts(events: &[v1::RunEvent]) -> Vec<String> {
    let code = |event: &v1::RunEvent| {
        let detail: serde_json::Value = serde_json::from_str(&event.detail_json).expect("details are JSON");
        detail["failure"]["code"].as_str().expect("a failure has a code").to_owned()
    };
    events.iter().filter(|event| event.kind() == v1::EventKind::StepFailed).map(code).collect()
}

#[tokio::test]
async fn a_death_at_any_commit_of_a_retry_leaves_two_charged_attempts_and_one_result() {
    let flaky = StepPlan { name: "flaky".into(), failures: 2, retry_ms: Some(30), ..StepPlan::default() };
    let failed = vec!["ERROR"; 2];

    survives_every_death(Scenario { failed, ..scenario(&Script::default().planned(flaky).step("next")) })
        .await;
}

#[tokio::test]
async fn a_death_at_any_commit_of_a_timeout_that_the_worker_notices_charges_it_once() {
    let slow = StepPlan {
        name: "slow".into(),
        hangs: 1,
        timeout_ms: Some(100),
        retry_ms: Some(30),
        ..StepPlan::default()
    };
    let failed = vec!["TIMED_OUT"];

    survives_every_death(Scenario { failed, ..scenario(&Script::default().planned(slow)) }).await;
}

#[tokio::test]
async fn a_death_at_any_commit_of_a_timeout_that_only_the_server_notices_charges_it_once() {
    let stuck = StepPlan {
        name: "stuck".into(),
        gate: Some("never".into()),
        blocks: true,
        timeout_ms: Some(100),
        retry_ms: Some(30),
        ..StepPlan::default()
    };
    let failed = vec!["TIMED_OUT"];

    survives_every_death(Scenario { failed, ..scenario(&Script::default().planned(stuck)) }).await;
}

#[tokio::test]
async fn a_death_at_any_commit_of_a_deadline_ends_the_run_once_and_starts_its_handler_once() {
    let script = Script::default().step("first").then(Move::Sleep { ms: 600_000 }).step("never");
    let mut request = scenario(&script).request;
    request.timeouts = Some(TimeoutConfig { execution_timeout_seconds: Some(1), ..TimeoutConfig::default() });
    request.on_failure_workflow = "handler".into();
    let (ends, failed) = (WorkflowStatus::TimedOut, vec![]);
    let usual = scenario(&Script::default());

    survives_every_death(Scenario { request, ends, failed, handled: true, runs: 2, ..usual }).await;
}

#[tokio::test]
async fn a_death_at_any_commit_of_a_failure_starts_its_handler_once() {
    let hopeless =
        StepPlan { name: "hopeless".into(), failures: 9, attempts_max: Some(1), ..StepPlan::default() };
    let mut request = scenario(&Script::default().planned(hopeless)).request;
    request.on_failure_workflow = "handler".into();
    let (ends, failed) = (WorkflowStatus::Failed, vec!["ERROR"]);
    let usual = scenario(&Script::default());

    survives_every_death(Scenario { request, ends, failed, handled: true, runs: 2, ..usual }).await;
}

#[tokio::test]
async fn a_death_at_any_commit_of_a_promise_leaves_it_completed_once() {
    let promise = Move::Promise { name: "payment".into(), timeout_ms: None };
    let script = Script::default().then(promise).step("ship");

    survives_every_death(Scenario { promise: Some("payment"), heard: vec!["payment"], ..scenario(&script) })
        .await;
}

#[tokio::test]
async fn a_death_at_any_commit_of_a_promise_that_nobody_completes_ends_it_in_its_time() {
    let promise = Move::Promise { name: "payment".into(), timeout_ms: Some(300) };
    let script = Script::default().then(promise).step("ship");

    survives_every_death(Scenario { heard: vec!["PROMISE_TIMED_OUT"], ..scenario(&script) }).await;
}

/// Among the deaths are those between a child's row and the answer that its parent's worker waits for.
#[tokio::test]
async fn a_death_at_any_commit_of_children_starts_each_of_them_once_and_loses_no_end() {
    let family = Move::Children { count: 2, script: Script::steps(&["pack"]), fate: Fate::Awaited };

    survives_every_death(Scenario { runs: 3, ..scenario(&Script::default().then(family).step("ship")) })
        .await;
}
