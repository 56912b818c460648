//! Workers that do not read, that say too much, or that speak of runs they do not hold.

use kagzi_faults::{HandStream, Pace, Script, Stage, eventually, hello, stage, start_request};
use kagzi_proto::v1::{self, server_message::Message as Down, worker_message::Message as Up};
use tonic::Code;

const TYPE: &str = "by-hand";

fn started(lease: &v1::LeaseRef) -> Up {
    let step = v1::StepRef { path: "charge".into(), ..Default::default() };
    let (lease, step) = (Some(lease.clone()), Some(step));
    Up::StepStarted(Box::new(v1::StepStarted { lease, step, attempt: 1, ..Default::default() }))
}

async fn running_steps(stage: &Stage, run: &str) -> usize {
    let request = v1::ListStepAttemptsRequest { run_id: run.to_owned(), ..Default::default() };
    stage.workflows().list_step_attempts(request).await.unwrap().into_inner().step_attempts.len()
}

#[tokio::test]
async fn a_worker_that_does_not_read_is_leased_little_and_costs_little_memory() {
    const RUNS: usize = 150;
    let stage = stage!(Pace::Steady);
    let before_kib = stage.server_memory_kib("VmRSS");
    let deaf = HandStream::open(stage.registry(), hello(TYPE, 1_000)).await.unwrap();
    let mut request = start_request(TYPE, &Script::default());
    let input = vec![b'7'; 1_500_000];
    request.input = Some(v1::Payload { data: input.into(), ..Default::default() });
    for _ in 0..RUNS {
        stage.start_with(request.clone()).await.unwrap();
    }
    let grown_mib = stage.server_memory_kib("VmRSS").saturating_sub(before_kib) / 1024;
    let get = v1::GetWorkerRequest { worker_id: deaf.welcome.worker_id.clone(), ..Default::default() };
    let leased = stage.registry().get_worker(get).await.unwrap().into_inner().worker.unwrap().active_count;
    println!(
        "a worker that does not read holds {leased} of {RUNS} runs, the server has grown by {grown_mib} MiB"
    );

    let mut reader = HandStream::open(stage.registry(), hello(TYPE, 1_000)).await.unwrap();
    let mut read = 0;
    while read < RUNS - usize::try_from(leased).unwrap() {
        reader.assigned().await.expect("the others go to a worker that reads");
        read += 1;
    }

    assert!(leased < 40, "{leased} runs are with a worker that does not read");
    assert!(grown_mib < 150, "{grown_mib} MiB");
    drop(deaf);
    stage.close().await;
}

#[tokio::test]
async fn a_step_is_believed_to_run_only_by_the_stream_that_holds_its_lease() {
    let stage = stage!(Pace::Steady);
    let mut owner = HandStream::open(stage.registry(), hello(TYPE, 1)).await.unwrap();
    let run = stage.start_with(start_request(TYPE, &Script::default())).await.unwrap().run_id;
    let lease = owner.assigned().await.unwrap().lease.unwrap();
    let mut stranger = HandStream::open(stage.registry(), hello(TYPE, 1)).await.unwrap();

    stranger.say(started(&lease)).await;
    // The answer to what it says next shows that the first was heard.
    stranger.say(Up::Report(v1::Report { seq: 1, lease: Some(lease.clone()), body: None })).await;
    assert!(matches!(stranger.next().await, Ok(Down::Ack(_))));
    let by_a_stranger = running_steps(&stage, &run).await;
    owner.say(started(&lease)).await;
    eventually("the owner is believed", async || (running_steps(&stage, &run).await == 1).then_some(()))
        .await;

    assert_eq!(by_a_stranger, 0);
    stage.close().await;
}

#[tokio::test]
async fn a_stream_lists_no_more_runs_than_a_worker_may_hold() {
    let stage = stage!(Pace::Steady);
    let lease = v1::LeaseRef { run_id: uuid_text(), epoch: 1 };
    let many = vec![lease; 10_001];

    let mut greeting = hello(TYPE, 1);
    greeting.holding = many.clone();
    let refused = HandStream::open(stage.registry(), greeting).await.err().expect("a refusal");
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    assert!(refused.message().contains("holding"), "{refused}");

    let mut stream = HandStream::open(stage.registry(), hello(TYPE, 1)).await.unwrap();
    stream.say(Up::Heartbeat(v1::Heartbeat { runs: many })).await;
    let refused = stream.next().await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    stage.close().await;
}

fn uuid_text() -> String {
    "0197aaaa-0000-7000-8000-000000000001".to_owned()
}

#[tokio::test]
async fn what_a_stream_did_not_deliver_goes_to_another_worker_at_once() {
    let stage = stage!(Pace::Calm);
    let deaf = HandStream::open(stage.registry(), hello(TYPE, 1_000)).await.unwrap();
    let mut request = start_request(TYPE, &Script::default());
    request.input = Some(v1::Payload { data: vec![b'7'; 1_000_000].into(), ..Default::default() });
    for _ in 0..20 {
        stage.start_with(request.clone()).await.unwrap();
    }
    let mut reader = HandStream::open(stage.registry(), hello(TYPE, 1_000)).await.unwrap();

    // Two seconds are the grace of what it had read; what was still in the queue does not wait for them.
    drop(deaf);
    for _ in 0..20 {
        let assigned = reader.assigned().await.expect("all runs go on");
        assert!(assigned.lease.unwrap().epoch <= 2);
    }
    stage.close().await;
}
