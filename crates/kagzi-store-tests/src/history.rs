//! A run's events: without a gap, in order, with every payload as it came.

use futures_util::future::join_all;
use kagzi_model::{Command, EventKind, Payload, Reply};

use crate::Stage;

pub async fn events_are_numbered_without_a_gap_and_in_order(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    for round in 0..5 {
        let lease = standing.next().await.lease();
        stage.ok(stage.begin(&lease, &format!("a-{round}"))).await;
        stage.ok(stage.record(&lease, &format!("a-{round}"), b"1")).await;
        stage.ok(stage.sleep(&lease, &format!("nap-{round}"), 1_000)).await;
        stage.pass_ms(1_000);
    }
    let lease = standing.next().await.lease();
    stage.ok(stage.complete(&lease)).await;

    let events = stage.events(run).await;

    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    assert!(events.is_sorted_by_key(|event| event.at));
    assert_eq!(events.len(), 1 + 5 * 5 + 2);
}

pub async fn a_step_has_one_result_however_often_it_is_sent(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();

    let sends = (0..50).map(|_| stage.apply(stage.record(&lease, "charge", b"paid")));
    let replies = join_all(sends).await;

    let written = replies.iter().filter(|reply| **reply == Ok(Reply::Done { already: false })).count();
    assert_eq!(written, 1);
    assert!(replies.iter().all(Result::is_ok));
    let names = stage.event_names(run).await;
    assert_eq!(names, ["run_started", "run_claimed", "step_completed"]);
}

pub async fn the_first_result_of_a_step_stays(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(stage.record(&lease, "charge", b"first")).await;

    stage.ok(stage.record(&lease, "charge", b"second")).await;
    stage.ok(stage.release(&lease)).await;
    let next = standing.next().await.lease();
    stage.ok(stage.record(&next, "charge", b"third")).await;

    let events = stage.events(run).await;
    let results: Vec<_> = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::StepCompleted { .. }))
        .map(|event| event.payload.as_ref().unwrap().data.clone())
        .collect();
    assert_eq!(results, ["first"]);
}

pub async fn payloads_come_back_byte_for_byte(stage: Stage) {
    let every_byte: Vec<u8> = (0..=255).collect();
    let payload = |data: &[u8]| Payload { data: data.to_vec().into(), content_type: "text/x".into() };
    let mut start = stage.new_run("order-1");
    start.input = payload(&every_byte);
    let mut standing = stage.stand_by(1).await;
    let run = stage.start_with(start).await;
    let lease = standing.next().await.lease();

    let results = [b"\xff\xfe\x00".to_vec(), Vec::new(), vec![0; 100_000]];
    for (number, result) in results.iter().enumerate() {
        stage.ok(stage.record(&lease, &format!("step-{number}"), result)).await;
    }
    let output = payload(b"\xc3\x28 is not UTF-8");
    stage.ok(Command::Complete { lease, steps: Vec::new(), output: output.clone() }).await;

    let view = stage.store.run(&stage.namespace, run).await.unwrap().unwrap();
    assert_eq!(view.input, Some(payload(&every_byte)));
    assert_eq!(view.output, Some(output));
    let recorded: Vec<_> = stage
        .events(run)
        .await
        .into_iter()
        .filter(|event| matches!(event.kind, EventKind::StepCompleted { .. }))
        .map(|event| event.payload.expect("a result, even an empty one, is there").data.to_vec())
        .collect();
    assert_eq!(recorded, results);
}

pub async fn events_are_read_from_any_point_in_pieces(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    for number in 0..20 {
        stage.ok(stage.record(&lease, &format!("step-{number}"), b"1")).await;
    }
    let all = stage.events(run).await;

    let mut pieces = Vec::new();
    loop {
        let after = pieces.len() as u64;
        let piece = stage.store.events(&stage.namespace, run, after, 6).await.unwrap();
        if piece.is_empty() {
            break;
        }
        assert!(piece.len() <= 6);
        pieces.extend(piece);
    }

    assert_eq!(pieces, all);
}
