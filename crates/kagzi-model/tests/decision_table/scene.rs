//! One run in every state, one step in every state, and every command that could reach them.

use kagzi_model::{
    Aggregate, Author, ClosePolicy, Command, EventKind, Failure, Finality, IdReuse, Labels, Lease, LeaseRef,
    Name, OnFailure, Order, Parked, Payload, RetryPolicy, Run, RunId, RunKey, RunOptions, StartRun, State,
    StepRef, StepResult, Timestamp, Topic, Wait, Wake, WorkerId, act, child_channel, intervention,
};
use uuid::Uuid;

pub const NOW: Timestamp = Timestamp(1_000_000_000_000);
pub const RUN: RunId = RunId(Uuid::from_u128(0x0197_0000_0000_7000_8000_0000_0000_0001));
const HANDLER: RunId = RunId(Uuid::from_u128(8));
const CHILD: RunId = RunId(Uuid::from_u128(70));
const OTHER_CHILD: RunId = RunId(Uuid::from_u128(71));
const WORKER: WorkerId = WorkerId(Uuid::from_u128(7));
/// The epoch of the run as the scene finds it.
const EPOCH: u64 = 3;

pub fn namespace() -> Name {
    "default".into()
}

pub fn input() -> Payload {
    Payload::new(&b"input"[..])
}

fn failure() -> Failure {
    Failure::new("BROKEN", "it broke")
}

fn run(state: State) -> Run {
    let finished_at = state.finished().then_some(NOW);
    Run {
        namespace: namespace(),
        id: RUN,
        business_id: Some("order-1".into()),
        workflow_type: "order".into(),
        task_queue: "main".into(),
        state,
        version: 1,
        epoch: EPOCH,
        attempts: 0,
        dispatch_count: 3,
        crashes: 1,
        generation: 1,
        first_seq: 1,
        created_at: NOW.plus_ms(-60_000),
        started_at: Some(NOW.plus_ms(-50_000)),
        finished_at,
        deadline_at: None,
        close_at: None,
        options: RunOptions::default().into(),
        labels: Labels::default(),
    }
}

fn leased(until: Timestamp) -> State {
    State::Leased(Lease { worker: WORKER, since: NOW.plus_ms(-5_000), until, step_timeout_at: None })
}

fn retry(at: Timestamp) -> State {
    State::retry(Some("flaky".into()), 1, at, failure())
}

/// A run whose history has one recorded step, one that waits for its retry, and one sleep.
fn aggregate(state: State) -> Aggregate {
    let mut seen = Aggregate::new(run(state), 0);
    let before = NOW.plus_ms(-4_000);
    let events = [
        EventKind::RunStarted,
        completed("done", 0),
        failed("flaky", 1, Some(NOW.plus_ms(1_000))),
        EventKind::SleepScheduled { step: "nap".into(), position: 2, until: NOW.plus_ms(5_000) },
    ];
    events.iter().for_each(|kind| seen.absorb(before, kind));
    seen
}

/// A run that has started two children and waits for both, and one that it has detached.
fn with_children(state: State) -> Aggregate {
    let mut seen = aggregate(state);
    for (number, (child, close, awaited)) in (5..).zip([
        (CHILD, ClosePolicy::Cancel, true),
        (OTHER_CHILD, ClosePolicy::Terminate, true),
        (HANDLER, ClosePolicy::Abandon, false),
    ]) {
        let started = EventKind::ChildStarted {
            step: format!("child-{number}").into(),
            position: number,
            child,
            workflow_type: "ship".into(),
            task_queue: "main".into(),
            close,
            awaited,
            until: None,
            told: awaited,
        };
        seen.absorb(NOW.plus_ms(-1_000), &started);
    }
    if seen.run.state.finished() {
        seen.run.close_at = Some(NOW);
    }
    seen
}

fn waiting_for_child(wake: Wake) -> State {
    let wait = Wait::on(child_channel(CHILD), None);
    let since = Some(NOW.plus_ms(-1_000));
    let step = Some("child-5".into());
    State::Waiting(Box::new(Parked { step, attempt: 0, at: None, wait, since, others: 1, wake }))
}

/// A run that waits for a signal on `approved`, with a time or without, and has one unread on `orders`.
fn signalled(state: impl Fn(Wait) -> State, until: Option<Timestamp>) -> Aggregate {
    let channel = Name::from("approved");
    let mut seen = aggregate(state(Wait::Signal { channel: channel.clone(), until }));
    let began = EventKind::WaitBegan { step: "ok".into(), position: 3, channel, until };
    let received = EventKind::SignalReceived {
        channel: "orders".into(),
        id: "tea".into(),
        failure: None,
        published: None,
    };
    let promised = EventKind::PromiseMade {
        step: "~promise/payment".into(),
        position: 4,
        name: "payment".into(),
        token_hash: "hash".into(),
        until: None,
        heartbeat_ms: Some(2_000),
    };
    [began, received, promised].iter().for_each(|kind| seen.absorb(NOW.plus_ms(-3_000), kind));
    seen
}

/// The same in its second generation, which nobody was given yet: what it takes along is the unread signal.
fn continued(mut seen: Aggregate) -> Aggregate {
    let lease = LeaseRef { namespace: namespace(), run: RUN, epoch: EPOCH };
    seen.run.state = leased(NOW.plus_ms(1_000));
    let command = lease.report(act::Continue { steps: Vec::new(), input: input() });
    let change = kagzi_model::decide(NOW, Some(&seen), None, &command).expect("it holds the lease");
    seen.apply(NOW, &change);
    seen
}

fn step_overdue(mut seen: Aggregate) -> Aggregate {
    seen.absorb(NOW.plus_ms(-4_000), &started("slow", 3, Some(NOW)));
    if let State::Leased(lease) = &mut seen.run.state {
        lease.step_timeout_at = Some(NOW);
    }
    seen
}

fn with_options(mut seen: Aggregate, options: RunOptions) -> Aggregate {
    seen.run.options = options.into();
    seen.run.crashes = 0;
    seen
}

fn retries_the_run() -> RunOptions {
    RunOptions { run_retry: Some(RetryPolicy::default()), ..RunOptions::default() }
}

fn has_a_handler() -> RunOptions {
    let on_failure = Some(OnFailure { workflow_type: "clean-up".into(), task_queue: None });
    let retry = RetryPolicy { maximum_attempts: Some(1), ..RetryPolicy::default() };
    RunOptions { on_failure, retry, ..RunOptions::default() }
}

fn is_a_handler() -> RunOptions {
    RunOptions { handler_of: Some(HANDLER), ..RunOptions::default() }
}

pub fn states() -> Vec<(String, Aggregate)> {
    let (soon, past, since) = (NOW.plus_ms(1_000), NOW.plus_ms(-1), NOW.plus_ms(-5_000));
    let timer = |at| State::timer("nap".into(), at);
    let waiting = |wait: Wait| State::waiting(Some("ok".into()), 0, wait.due_at(), wait);
    let overdue = |mut seen: Aggregate| {
        seen.run.deadline_at = Some(NOW);
        seen
    };
    let crashed = |mut seen: Aggregate| {
        seen.run.crashes = 2;
        seen
    };
    let given_back = |releases, mut seen: Aggregate| {
        seen.releases = releases;
        seen
    };
    let paused = State::Paused { by: "quarantine".into(), why: "it crashed".into(), since };
    [
        ("READY", aggregate(State::Ready { since })),
        ("TIMER, not due", aggregate(timer(soon))),
        ("TIMER, due", aggregate(timer(NOW))),
        ("RETRY, not due", aggregate(retry(soon))),
        ("RETRY, due", aggregate(retry(past))),
        ("SIGNAL, without a time", signalled(waiting, None)),
        ("SIGNAL, not due", signalled(waiting, Some(soon))),
        ("SIGNAL, due", signalled(waiting, Some(NOW))),
        ("LEASED with an open wait", signalled(|_| leased(soon), None)),
        ("CHILD", with_children(waiting_for_child(Wake::First))),
        ("CHILD, all of them", with_children(waiting_for_child(Wake::Last))),
        ("LEASED with children", with_children(leased(soon))),
        ("CANCELLED with children", with_children(State::Cancelled { reason: "stop".into() })),
        ("LEASED", aggregate(leased(soon))),
        ("LEASED, ran out", aggregate(leased(past))),
        ("LEASED, crashed twice", crashed(aggregate(leased(past)))),
        ("LEASED, given back once", given_back(1, aggregate(leased(soon)))),
        ("LEASED, given back 9 times", given_back(9, aggregate(leased(soon)))),
        ("LEASED, step overdue", step_overdue(aggregate(leased(soon)))),
        ("LEASED, retries the run", with_options(aggregate(leased(soon)), retries_the_run())),
        ("LEASED, has a handler", with_options(aggregate(leased(past)), has_a_handler())),
        ("LEASED, is a handler", with_options(aggregate(leased(soon)), is_a_handler())),
        ("READY, continued", continued(signalled(|_| State::Ready { since }, None))),
        ("PAUSED", aggregate(paused.clone())),
        ("COMPLETED", aggregate(State::Completed)),
        ("FAILED", aggregate(State::Failed { failure: failure() })),
        ("CANCELLED", aggregate(State::Cancelled { reason: "enough".into() })),
        ("TIMED_OUT", aggregate(State::TimedOut { failure: failure() })),
        ("READY, deadline passed", overdue(aggregate(State::Ready { since }))),
        ("TIMER, deadline passed", overdue(aggregate(timer(soon)))),
        ("RETRY, deadline passed", overdue(aggregate(retry(soon)))),
        ("LEASED, deadline passed", overdue(aggregate(leased(soon)))),
        ("PAUSED, deadline passed", overdue(aggregate(paused))),
    ]
    .map(|(name, seen)| (name.to_owned(), seen))
    .into()
}

/// The worker's commands, at an epoch.
fn writes(epoch: u64) -> Vec<(&'static str, Command)> {
    let lease = LeaseRef { namespace: namespace(), run: RUN, epoch };
    let step = |path: &str, position| StepRef { path: path.into(), position };
    let fail_step = |park| {
        lease.report(act::FailStep {
            step: step("new", 3),
            attempt: 1,
            failure: failure(),
            policy: RetryPolicy::default(),
            elapsed_ms: 0,
            park,
        })
    };
    let sleep = |park| lease.report(act::Sleep { step: step("new", 3), duration_ms: 100, park });
    let (result, output, elapsed_ms) = (Payload::new(&b"r"[..]), Payload::new(&b"o"[..]), 5);
    let last = StepResult { step: step("new", 3), attempt: 1, result: result.clone(), elapsed_ms };
    vec![
        ("BeginStep", begin(&lease, step("new", 3), None)),
        ("BeginStep with timeout", begin(&lease, step("new", 3), Some(2_000))),
        ("Progress", progress(&lease, step("new", 3))),
        (
            "RecordStep",
            lease.report(act::RecordStep(StepResult {
                step: step("new", 3),
                attempt: 1,
                result,
                elapsed_ms,
            })),
        ),
        ("FailStep", fail_step(false)),
        ("FailStep and park", fail_step(true)),
        ("Sleep", sleep(false)),
        ("Sleep and park", sleep(true)),
        ("SleepOver", lease.report(act::SleepOver { step: "nap".into() })),
        ("SetLabel", set_label(&lease, step("new", 3))),
        ("MakePromise", make_promise(&lease, step("new", 3))),
        ("SetValue", set_value(&lease)),
        ("Complete", lease.report(act::Complete { steps: Vec::new(), output: output.clone() })),
        ("Complete with a last result", lease.report(act::Complete { steps: vec![last.clone()], output })),
        ("Continue", lease.report(act::Continue { steps: Vec::new(), input: input() })),
        ("Continue with a last result", lease.report(act::Continue { steps: vec![last], input: input() })),
        ("Fail", lease.report(act::Fail { failure: failure(), step: None })),
        ("Park", lease.report(act::Park { waits: Vec::new(), wake: Default::default() })),
        ("Park for nap", lease.report(act::Park { waits: vec!["nap".into()], wake: Default::default() })),
        ("RecordSteps", record_steps(&lease, &["new", "newer"])),
        ("RecordSteps, one twice", record_steps(&lease, &["new", "new"])),
        ("CloseStep", lease.report(act::CloseStep { step: step("new", 3) })),
        ("AwaitSignal", await_signal(&lease, step("wait", 4), "approved", None)),
        ("AwaitSignal, unread", await_signal(&lease, step("wait", 4), "orders", None)),
        ("AwaitSignal, no time", await_signal(&lease, step("wait", 4), "approved", Some(0))),
        ("AwaitOrPark", await_or_park(&lease, step("wait", 4), "approved", &["wait"])),
        ("AwaitOrPark, unread", await_or_park(&lease, step("wait", 4), "orders", &["wait"])),
        ("AwaitOrPark, beside nap", await_or_park(&lease, step("wait", 4), "approved", &["wait", "nap"])),
        ("Ask", ask(&lease, step("refund", 4), false)),
        ("Ask and park", ask(&lease, step("refund", 4), true)),
        ("StartChild", start_child(&lease, step("child", 9), true)),
        ("StartChild, not awaited", start_child(&lease, step("child", 9), false)),
        ("StartChild, known", start_child(&lease, step("child-5", 5), true)),
        ("Release", lease.report(act::Release { why: "leaving".into() })),
        ("Block", lease.report(act::Block { message: "code changed".into() })),
        ("Renew", lease.report(act::Renew { until: NOW.plus_ms(30_000) })),
    ]
}

fn ask(lease: &LeaseRef, step: StepRef, park: bool) -> Command {
    let ask = Box::new(intervention::Ask::new(intervention::InterventionType::Approval, "Refund 30?"));
    lease.report(act::Ask { step, ask, park })
}

fn tell_answer(step: &str) -> Command {
    let (payload, failure) = (Payload::new(&b"{}"[..]), None);
    let (by, source, answer) = (Some("ada".into()), "user".into(), "approved".into());
    let (question, tell) = (Uuid::from_u128(9), intervention::Tell { payload, failure });
    let told = act::TellAnswer { step: step.into(), question, tell, by, source, answer };
    RunKey::new(namespace(), RUN).duty(told)
}

fn start_child(lease: &LeaseRef, step: StepRef, awaited: bool) -> Command {
    let start = Box::new(StartRun {
        namespace: "of another".into(),
        id: RunId(Uuid::from_u128(77)),
        business_id: None,
        workflow_type: "ship".into(),
        task_queue: "".into(),
        input: input(),
        deadline_at: None,
        options: RunOptions::default(),
        labels: Labels::default(),
        signals: Vec::new(),
    });
    let (close, timeout_ms) = (ClosePolicy::Cancel, Some(60_000));
    lease.report(act::StartChild { step, start, close, awaited, told: true, timeout_ms, park: false })
}

fn child_ended(child: RunId, id: &str, failed: bool) -> Command {
    let (output, failure) = (Some(Payload::new(&b"shipped"[..])), failed.then(failure));
    RunKey::new(namespace(), RUN).duty(act::ChildEnded { child, id: id.into(), output, failure })
}

fn hear_event(opening: bool) -> Command {
    let (topic, payload) = (Topic::new("order.paid", "42"), Payload::new(&b"7"[..]));
    let hear =
        act::HearEvent { topic, id: "e-1".into(), published: Timestamp(i64::MAX - 1), payload, opening };
    RunKey::new(namespace(), RUN).duty(hear)
}

fn record_steps(lease: &LeaseRef, paths: &[&str]) -> Command {
    let result = |(position, path): (u32, &&str)| StepResult {
        step: StepRef { path: (*path).into(), position },
        attempt: 1,
        result: Payload::new(&b"r"[..]),
        elapsed_ms: 5,
    };
    lease.report(act::RecordSteps { steps: (3..).zip(paths).map(result).collect() })
}

fn begin(lease: &LeaseRef, step: StepRef, timeout_ms: Option<i64>) -> Command {
    lease.report(act::BeginStep { step, timeout_ms, standard_ms: None, policy: RetryPolicy::default() })
}

fn await_signal(lease: &LeaseRef, step: StepRef, channel: &str, timeout_ms: Option<i64>) -> Command {
    let (channel, last_call, park) = (channel.into(), false, false);
    lease.report(act::AwaitSignal { step, channel, timeout_ms, last_call, park })
}

fn await_or_park(lease: &LeaseRef, step: StepRef, channel: &str, waits: &[&str]) -> Command {
    let (channel, timeout_ms, last_call, park) = (channel.into(), None, false, false);
    let wait = act::AwaitSignal { step, channel, timeout_ms, last_call, park };
    let waits = waits.iter().map(|path| (*path).into()).collect();
    lease.report(act::AwaitOrPark { wait, park: act::Park { waits, wake: Default::default() } })
}

/// A last call, or with `park` a wait that gives the run back.
fn last_call(lease: &LeaseRef, step: StepRef, park: bool) -> Command {
    let (channel, timeout_ms, last_call) = ("approved".into(), None, !park);
    lease.report(act::AwaitSignal { step, channel, timeout_ms, last_call, park })
}

fn signal(channel: &str, id: &str) -> Command {
    let (payload, failure) = (Payload::new(&b"yes"[..]), None);
    let signal = act::Signal { channel: channel.into(), id: id.into(), payload, failure };
    RunKey::new(namespace(), RUN).order(Author::new("tester", ""), signal)
}

fn order(order: impl Into<Order>) -> Command {
    RunKey::new(namespace(), RUN).order(Author::new("tester", ""), order)
}

fn complete_promise(name: &str, token_hash: Option<&str>) -> Command {
    let (payload, failure) = (Payload::new(&b"paid"[..]), None);
    let token_hash = token_hash.map(Name::from);
    order(act::CompletePromise { name: name.into(), token_hash, payload, failure })
}

fn make_promise(lease: &LeaseRef, step: StepRef) -> Command {
    lease.report(act::MakePromise {
        step,
        name: "receipt".into(),
        token_hash: "hash".into(),
        secret: Payload::new(&b"secret"[..]),
        timeout_ms: Some(700),
        heartbeat_ms: None,
    })
}

fn set_value(lease: &LeaseRef) -> Command {
    lease.report(act::SetValue { name: "progress".into(), number: 1, value: Payload::new(&b"half"[..]) })
}

fn set_label(lease: &LeaseRef, step: StepRef) -> Command {
    lease.report(act::SetLabel { step, name: "tenant".into(), value: "acme".into() })
}

fn progress(lease: &LeaseRef, step: StepRef) -> Command {
    lease.report(act::Progress { step, progress: Payload::new(&b"half"[..]) })
}

/// Everything but [`Command::Start`].
pub fn commands() -> Vec<(&'static str, Command)> {
    let namespace = namespace();
    let stale = writes(EPOCH - 1).into_iter().map(|(name, command)| (stale_name(name), command));
    let orphan = |epoch, cut_off| {
        let loss = act::Loss { cut_off, losses_max: 3 };
        RunKey::new(namespace.clone(), RUN).duty(act::Orphan { epoch, loss })
    };
    let others = vec![
        (
            "Claim",
            RunKey::new(namespace.clone(), RUN)
                .duty(act::Claim { worker: WORKER, until: NOW.plus_ms(30_000) }),
        ),
        ("Orphan", orphan(EPOCH, false)),
        ("Orphan, cut off", orphan(EPOCH, true)),
        ("Orphan, stale epoch", orphan(EPOCH - 1, false)),
        ("Expire", RunKey::new(namespace.clone(), RUN).duty(act::Expire { losses_max: 3 })),
        ("Cancel", RunKey::new(namespace.clone(), RUN).order(Author::new("tester", "stop"), act::Cancel)),
        (
            "Terminate",
            RunKey::new(namespace.clone(), RUN).order(Author::new("tester", "stop"), act::Terminate),
        ),
        (
            "Resume",
            RunKey::new(namespace.clone(), RUN)
                .order(Author::new("tester", ""), act::Resume { request: None }),
        ),
        (
            "Retry",
            RunKey::new(namespace.clone(), RUN)
                .order(Author::new("tester", ""), act::Retry { from: None, request: None }),
        ),
        (
            "Retry from a step that did not fail",
            RunKey::new(namespace.clone(), RUN)
                .order(Author::new("tester", ""), act::Retry { from: Some("nap".into()), request: None }),
        ),
        ("Signal", signal("approved", "s-1")),
        ("Signal, told before", signal("orders", "tea")),
        ("CompletePromise", complete_promise("payment", None)),
        ("CompletePromise, its token", complete_promise("payment", Some("hash"))),
        ("CompletePromise, a wrong token", complete_promise("payment", Some("other"))),
        ("BeatPromise", order(act::BeatPromise { name: "payment".into(), token_hash: None })),
        ("HearEvent", hear_event(false)),
        ("HearEvent, a wait opens", hear_event(true)),
        ("TellAnswer", tell_answer("refund")),
        ("ChildEnded", child_ended(CHILD, "end:7", false)),
        ("ChildEnded, failed", child_ended(OTHER_CHILD, "end:7", true)),
        (
            "NoteHandler",
            RunKey::new(namespace, RUN)
                .duty(act::NoteHandler { handler: HANDLER, outcome: "COMPLETED".into() }),
        ),
    ];
    writes(EPOCH).into_iter().chain(stale).chain(others).collect()
}

fn stale_name(name: &str) -> &'static str {
    String::leak(format!("{name}, stale epoch"))
}

/// Starts that meet the run under its business id.
pub fn start_commands() -> Vec<(&'static str, Command)> {
    let same = StartRun {
        namespace: namespace(),
        id: RunId(Uuid::from_u128(2)),
        business_id: Some("order-1".into()),
        workflow_type: "order".into(),
        task_queue: "main".into(),
        input: input(),
        deadline_at: None,
        options: RunOptions::default(),
        labels: Labels::default(),
        signals: Vec::new(),
    };
    let start = |change: fn(&mut StartRun)| {
        let mut start = same.clone();
        change(&mut start);
        Command::start(start)
    };
    vec![
        ("Start, same", start(|_| ())),
        ("Start, other type", start(|start| start.workflow_type = "refund".into())),
        ("Start, other queue", start(|start| start.task_queue = "slow".into())),
        ("Start, other input", start(|start| start.input = Payload::new(&b"else"[..]))),
        ("Start, other content type", start(|start| start.input.content_type = "text/plain".into())),
        ("Start, reject", start(|start| start.options.reuse = IdReuse::Reject)),
        ("Start, after failure", start(|start| start.options.reuse = IdReuse::AfterFailure)),
        ("Start, after end", start(|start| start.options.reuse = IdReuse::AfterEnd)),
        (
            "Start, other input, after end",
            start(|start| {
                start.options.reuse = IdReuse::AfterEnd;
                start.input = Payload::new(&b"else"[..]);
            }),
        ),
    ]
}

fn completed(step: &str, position: u32) -> EventKind {
    EventKind::StepCompleted { step: step.into(), position, attempt: 1, elapsed_ms: 0 }
}

fn started(step: &str, position: u32, timeout_at: Option<Timestamp>) -> EventKind {
    let policy = RetryPolicy::default();
    EventKind::StepStarted { step: step.into(), position, attempt: 1, timeout_at, policy }
}

fn failed(step: &str, position: u32, retry_at: Option<Timestamp>) -> EventKind {
    let finality = retry_at.is_none().then_some(Finality::NonRetryable);
    EventKind::StepFailed {
        step: step.into(),
        position,
        attempt: 1,
        failure: failure(),
        retry_at,
        finality,
        elapsed_ms: 0,
    }
}

/// A leased run whose step `it` (position 0) is in every state.
pub fn step_states() -> Vec<(String, Aggregate)> {
    let started = started("it", 0, None);
    let sleep = |until| EventKind::SleepScheduled { step: "it".into(), position: 0, until };
    let over = EventKind::SleepOver { step: "it".into() };
    let (soon, past) = (NOW.plus_ms(1_000), NOW.plus_ms(-1));
    let closed = EventKind::RunParked {
        due_at: Some(soon),
        closes: vec!["it".into()],
        opens: vec![],
        waits: vec![],
        wake: None,
    };
    let channel = || Name::from("approved");
    let waits = |until| EventKind::WaitBegan { step: "it".into(), position: 0, channel: channel(), until };
    let received =
        EventKind::SignalReceived { channel: channel(), id: "s-1".into(), failure: None, published: None };
    let ended = |failure| EventKind::WaitEnded {
        step: "it".into(),
        position: 0,
        channel: channel(),
        id: "s-1".into(),
        received: Some(2),
        failure,
        published: None,
    };
    let (took, refused) = (ended(None), ended(Some(failure())));
    let last_call = EventKind::ChannelClosed { step: "it".into(), position: 0, channel: channel() };
    let histories = [
        ("unknown", vec![]),
        ("running", vec![started]),
        ("completed", vec![completed("it", 0)]),
        ("retry, not due", vec![failed("it", 0, Some(soon))]),
        ("retry, due", vec![failed("it", 0, Some(past))]),
        ("failed", vec![failed("it", 0, None)]),
        ("sleeping", vec![sleep(soon)]),
        ("sleeping, over", vec![sleep(past)]),
        ("slept", vec![sleep(past), over]),
        ("waiting", vec![waits(None)]),
        ("waiting, time over", vec![waits(Some(past))]),
        ("waiting, signalled", vec![waits(None), received.clone()]),
        ("waiting, signalled, time over", vec![waits(Some(past)), received.clone()]),
        ("waiting, closed", vec![waits(Some(soon)), closed.clone()]),
        ("waited", vec![waits(None), received.clone(), took]),
        ("waited, failed", vec![waits(None), received, refused]),
        ("last call", vec![last_call]),
        ("sleeping, closed", vec![sleep(soon), closed.clone()]),
        ("retry, closed", vec![failed("it", 0, Some(past)), closed]),
    ];
    let with = |events: Vec<EventKind>| {
        let mut seen = Aggregate::new(run(leased(NOW.plus_ms(30_000))), 0);
        seen.run.crashes = 0;
        events.iter().for_each(|kind| seen.absorb(NOW.plus_ms(-100), kind));
        seen
    };
    histories.into_iter().map(|(name, events)| (name.to_owned(), with(events))).collect()
}

/// Every command about the step `it`, at its own and at another position, with the current epoch.
pub fn step_commands() -> Vec<(String, Command)> {
    let lease = || LeaseRef { namespace: namespace(), run: RUN, epoch: EPOCH };
    let at = |position| StepRef { path: "it".into(), position };
    let record = |position, attempt| {
        lease().report(act::RecordStep(StepResult {
            step: at(position),
            attempt,
            result: Payload::new(&b"r"[..]),
            elapsed_ms: 0,
        }))
    };
    let fail = |position, attempt, failure: Failure| {
        lease().report(act::FailStep {
            step: at(position),
            attempt,
            failure,
            policy: RetryPolicy::default(),
            elapsed_ms: 0,
            park: false,
        })
    };
    let sleep = |position, park| lease().report(act::Sleep { step: at(position), duration_ms: 500, park });
    [
        ("BeginStep", begin(&lease(), at(0), None)),
        ("BeginStep, other position", begin(&lease(), at(9), None)),
        ("Progress", progress(&lease(), at(0))),
        ("Progress, other position", progress(&lease(), at(9))),
        ("RecordStep, attempt 1", record(0, 1)),
        ("RecordStep, attempt 2", record(0, 2)),
        ("RecordStep, other position", record(9, 1)),
        ("FailStep, attempt 1", fail(0, 1, failure())),
        ("FailStep, attempt 2", fail(0, 2, failure())),
        ("FailStep, attempt 2, final", fail(0, 2, failure().non_retryable())),
        ("FailStep, other position", fail(9, 2, failure())),
        ("Sleep", sleep(0, false)),
        ("Sleep and park", sleep(0, true)),
        ("Sleep, other position", sleep(9, false)),
        ("SleepOver", lease().report(act::SleepOver { step: "it".into() })),
        ("AwaitSignal", await_signal(&lease(), at(0), "approved", None)),
        ("AwaitSignal, with a time", await_signal(&lease(), at(0), "approved", Some(700))),
        ("AwaitSignal, no time", await_signal(&lease(), at(0), "approved", Some(0))),
        ("AwaitSignal, last call", last_call(&lease(), at(0), false)),
        ("AwaitSignal, other channel", await_signal(&lease(), at(0), "denied", None)),
        ("AwaitSignal, other position", await_signal(&lease(), at(9), "approved", None)),
        ("AwaitSignal and park", last_call(&lease(), at(0), true)),
        ("AwaitOrPark", await_or_park(&lease(), at(0), "approved", &["it"])),
        ("SetLabel", set_label(&lease(), at(0))),
        ("MakePromise", make_promise(&lease(), at(0))),
        ("CloseStep", lease().report(act::CloseStep { step: at(0) })),
        ("CloseStep, other position", lease().report(act::CloseStep { step: at(9) })),
        ("Park for it", lease().report(act::Park { waits: vec!["it".into()], wake: Default::default() })),
        (
            "Park for another",
            lease().report(act::Park { waits: vec!["another".into()], wake: Default::default() }),
        ),
        ("SetLabel, other position", set_label(&lease(), at(9))),
    ]
    .map(|(name, command)| (name.to_owned(), command))
    .into()
}
