//! A run of an ordinary size: ten recorded steps, payloads of 100 bytes.

use kagzi_model::{
    Aggregate, Command, EventKind, Failure, Labels, LeaseRef, Name, Payload, RetryPolicy, RunId, RunKey,
    RunOptions, StartRun, StepRef, StepResult, Timestamp, WorkerId, act, decide,
};
use uuid::Uuid;

use crate::Hot;

pub const NOW: Timestamp = Timestamp(1_000_000_000_000);
const RUN: RunId = RunId(Uuid::from_u128(0x0197_0000_0000_7000_8000_0000_0000_0001));
const WORKER: WorkerId = WorkerId(Uuid::from_u128(7));
const STEPS: u32 = 10;

/// Every function that is counted, in the order of a run's life.
pub fn hot() -> Vec<Hot> {
    let hot = |name, seen: fn() -> Option<Aggregate>, command| Hot { name, seen, input: None, command };
    let waiting = || Some(started());
    let held = || Some(leased());
    let step = step_of(STEPS);
    let retry = RetryPolicy { maximum_attempts: Some(9), ..RetryPolicy::default() };
    let failure = Failure::new("BUSY", "the till is busy");
    let until = NOW.plus_ms(30_000);
    let fail_step = lease().report(act::FailStep {
        step: step.clone(),
        attempt: 1,
        failure,
        policy: retry.clone(),
        elapsed_ms: 0,
        park: true,
    });
    let trailing = StepResult { step: step.clone(), attempt: 1, result: payload(), elapsed_ms: 1 };
    let complete = |steps| lease().report(act::Complete { steps, output: payload() });
    vec![
        hot("start", || None, start()),
        Hot { name: "start_again", seen: waiting, input: Some(payload()), command: start() },
        hot("lease", waiting, claim()),
        hot(
            "begin_step",
            held,
            lease().report(act::BeginStep {
                step: step.clone(),
                timeout_ms: Some(60_000),
                standard_ms: None,
                policy: retry,
            }),
        ),
        hot("record_step", held, record_step()),
        hot("fail_step_and_retry", held, fail_step),
        hot("sleep_and_park", held, lease().report(act::Sleep { step, duration_ms: 60_000, park: true })),
        hot("renew", held, lease().report(act::Renew { until: until.plus_ms(5_000) })),
        hot("complete", held, complete(Vec::new())),
        hot("complete_with_step", held, complete(vec![trailing])),
    ]
}

pub fn record_step() -> Command {
    let step = step_of(STEPS);
    lease().report(act::RecordStep(StepResult { step, attempt: 1, result: payload(), elapsed_ms: 3 }))
}

/// On its worker, with its recorded steps.
pub fn leased() -> Aggregate {
    let mut run = started();
    take(&mut run, &claim());
    for position in 0..STEPS {
        let StepRef { path, position } = step_of(position);
        let kind = EventKind::StepCompleted { step: path, position, attempt: 1, elapsed_ms: 3 };
        run.absorb(NOW, &kind);
    }
    run
}

fn started() -> Aggregate {
    let change = decide(NOW, None, None, &start()).expect("a sound start");
    let mut run = Aggregate::new(change.run.clone().expect("a new row"), 0);
    run.apply(NOW, &change);
    run
}

fn take(run: &mut Aggregate, command: &Command) {
    let change = decide(NOW, Some(run), None, command).expect("the scene is sound");
    run.apply(NOW, &change);
}

fn start() -> Command {
    Command::start(StartRun {
        namespace: namespace(),
        id: RUN,
        business_id: Some("order-1".into()),
        workflow_type: "order".into(),
        task_queue: "main".into(),
        input: payload(),
        deadline_at: None,
        options: RunOptions::default(),
        labels: Labels::default(),
        signals: Vec::new(),
    })
}

fn claim() -> Command {
    RunKey::new(namespace(), RUN).duty(act::Claim { worker: WORKER, until: NOW.plus_ms(30_000) })
}

fn lease() -> LeaseRef {
    LeaseRef { namespace: namespace(), run: RUN, epoch: 1 }
}

fn step_of(position: u32) -> StepRef {
    StepRef { path: format!("step-{position}").as_str().into(), position }
}

fn payload() -> Payload {
    Payload::new(vec![b'k'; 100])
}

fn namespace() -> Name {
    "default".into()
}
