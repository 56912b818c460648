//! A run's events: without a gap, in order, with every payload as it came.

use futures_util::future::join_all;
use kagzi_model::{Done, Event, EventKind, Kind, Name, Payload, Reply, RunId, act};
use kagzi_store::{EventFilter, EventOutline, EventPiece, EventRequest, TimeRange};

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

    let written = replies.iter().filter(|reply| **reply == Ok(Reply::Done(Done { already: false }))).count();
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
    stage.ok(lease.report(act::Complete { steps: Vec::new(), output: output.clone() })).await;

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

/// A run with four results of a thousand bytes and two sleeps after each.
async fn varied(stage: &Stage) -> (RunId, Vec<Event>) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    for round in 0..4 {
        let lease = standing.next().await.lease();
        stage.ok(stage.begin(&lease, &format!("a-{round}"))).await;
        stage.ok(stage.record(&lease, &format!("a-{round}"), &[7; 1_000])).await;
        stage.ok(stage.sleep(&lease, &format!("doze-{round}"), 1_000)).await;
        stage.pass_ms(1_000);
        let lease = standing.next().await.lease();
        stage.ok(stage.sleep(&lease, &format!("nap-{round}"), 1_000)).await;
        // It sleeps on after the last one, so that nothing is added while the test reads.
        if round < 3 {
            stage.pass_ms(1_000);
        }
    }
    (run, stage.events(run).await)
}

fn piece(filter: EventFilter, beyond: Option<u64>, upwards: bool, limit: usize) -> EventRequest {
    EventRequest { filter, beyond, upwards, limit, bytes_max: usize::MAX }
}

pub async fn history_is_filtered_by_kind_step_and_time_and_read_from_either_end(stage: Stage) {
    let (run, all) = varied(&stage).await;
    let middle = all[all.len() / 2].at;
    let kinds = vec![all[0].kind.number(), Kind::StepCompleted as u8];
    let filters = [
        EventFilter::default(),
        EventFilter { kinds: kinds.clone(), ..EventFilter::default() },
        EventFilter { step: Some(Name::from("a-2")), ..EventFilter::default() },
        EventFilter { step: Some(Name::from("nap-1")), kinds, ..EventFilter::default() },
        EventFilter { at: TimeRange { from: Some(middle), to: None }, ..EventFilter::default() },
        EventFilter { at: TimeRange { from: None, to: Some(middle) }, ..EventFilter::default() },
        EventFilter { at: TimeRange { from: Some(middle), to: Some(middle) }, ..EventFilter::default() },
        EventFilter { after: all.len() as u64 / 2, ..EventFilter::default() },
        EventFilter { after: u64::MAX, ..EventFilter::default() },
        EventFilter { step: Some(Name::from("nobody's")), ..EventFilter::default() },
    ];

    for filter in filters {
        for (upwards, limit) in [(true, 1), (true, 3), (false, 1), (false, 3), (true, 100), (false, 100)] {
            let mut read: Vec<Event> = Vec::new();
            loop {
                let beyond = read.last().map(|event| event.seq);
                let request = piece(filter.clone(), beyond, upwards, limit);
                let found = stage.store.history(&stage.namespace, run, &request).await.unwrap();
                assert!(found.events.len() <= limit);
                read.extend(found.events);
                if !found.more {
                    break;
                }
            }
            let mut expected: Vec<Event> = all.iter().filter(|e| filter.matches(e)).cloned().collect();
            if !upwards {
                expected.reverse();
            }
            assert_eq!(read, expected, "{filter:?}, upwards {upwards}, {limit} at a time");
        }
    }
}

pub async fn a_piece_of_history_ends_before_its_payloads_are_too_large(stage: Stage) {
    let (run, all) = varied(&stage).await;
    let results = EventFilter { kinds: vec![Kind::StepCompleted as u8], ..EventFilter::default() };
    let lengths = async |upwards: bool, bytes_max: usize| {
        let (mut lengths, mut beyond) = (Vec::new(), None);
        loop {
            let request = EventRequest { bytes_max, ..piece(results.clone(), beyond, upwards, 100) };
            let found = stage.store.history(&stage.namespace, run, &request).await.unwrap();
            lengths.push(found.events.len());
            beyond = found.events.last().map(|event| event.seq);
            if !found.more {
                return lengths;
            }
        }
    };

    for upwards in [true, false] {
        assert_eq!(lengths(upwards, 4_000).await, [4], "exactly what is allowed");
        assert_eq!(lengths(upwards, 3_999).await, [3, 1]);
        assert_eq!(lengths(upwards, 2_000).await, [2, 2]);
        assert_eq!(lengths(upwards, 0).await, [1, 1, 1, 1], "one is always read");
    }
    let request = EventRequest { bytes_max: 1_500, ..piece(EventFilter::default(), None, true, 100) };
    let found = stage.store.history(&stage.namespace, run, &request).await.unwrap();
    let cut_at = all.iter().filter(|event| event.kind.number() == Kind::StepCompleted as u8).nth(1).unwrap();
    assert_eq!(found.events.last().unwrap().seq, cut_at.seq - 1, "those without payloads cost nothing");
    assert!(found.more);
}

pub async fn an_outline_is_the_history_without_its_payloads(stage: Stage) {
    let (run, all) = varied(&stage).await;

    let outline = stage.store.outline(&stage.namespace, run, 0, 100_000).await.unwrap();
    let piece = stage.store.outline(&stage.namespace, run, 3, 2).await.unwrap();
    let seqs: Vec<u64> = all.iter().map(|event| event.seq).chain([9_999]).collect();
    let mut payloads = stage.store.payloads(&stage.namespace, run, &seqs).await.unwrap();
    payloads.sort_by_key(|(seq, _)| *seq);

    let expected: Vec<_> = all
        .iter()
        .map(|event| EventOutline {
            event: Event { payload: None, ..event.clone() },
            payload_bytes: event.payload.as_ref().map(|payload| payload.data.len() as u64),
        })
        .collect();
    assert_eq!(outline, expected);
    assert_eq!(piece, expected[3..5]);
    let expected: Vec<_> = all.into_iter().filter_map(|event| Some((event.seq, event.payload?))).collect();
    assert_eq!(payloads, expected);
    let elsewhere = Name::from("elsewhere");
    assert!(stage.store.outline(&elsewhere, run, 0, 10).await.unwrap().is_empty());
    assert!(stage.store.payloads(&elsewhere, run, &seqs).await.unwrap().is_empty());
    let request = self::piece(EventFilter::default(), None, true, 10);
    let hidden = stage.store.history(&elsewhere, run, &request).await.unwrap();
    assert_eq!(hidden, EventPiece { events: Vec::new(), more: false });
}
