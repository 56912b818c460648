//! Operations that the code drops at the moment of their end.

use kagzi_model::{Done, Failure, JournalState, Reply, RetryPolicy, act, journal};

use crate::{
    Stage,
    replay_law::{declined, leased, park, sleep},
    stage::step,
};

pub async fn what_ended_while_the_code_dropped_it_is_taken_out_of_the_order(stage: Stage) {
    let (run, lease, mut standing) = leased(&stage).await;
    let close = |path: &str| lease.report(act::CloseStep { step: step(path) });
    stage.ok(stage.record(&lease, "first", b"1")).await;
    let ended = [
        ("quote", vec![declined(&lease, "quote")]),
        ("nap", vec![sleep(&lease, "nap", 0), lease.report(act::SleepOver { step: "nap".into() })]),
        (
            "label",
            vec![lease.report(act::SetLabel {
                step: step("label"),
                name: "stage".into(),
                value: "sold".into(),
            })],
        ),
    ];
    for (path, reports) in ended {
        for report in reports {
            stage.ok(report).await;
        }
        assert_eq!(stage.ok(close(path)).await, Reply::Done(Done { already: false }), "{path}");
        assert_eq!(stage.ok(close(path)).await, Reply::Done(Done { already: true }), "{path}");
    }
    // A result stays, and so does whatever was followed by something.
    assert_eq!(stage.ok(close("first")).await, Reply::Done(Done { already: true }));
    stage.ok(declined(&lease, "heard")).await;
    stage.ok(stage.record(&lease, "fallback", b"2")).await;
    assert_eq!(stage.ok(close("heard")).await, Reply::Done(Done { already: true }));

    let orders = |journal: &[kagzi_model::JournalEntry]| -> Vec<(String, u32)> {
        journal.iter().map(|entry| (entry.path.to_string(), entry.order)).collect()
    };
    let known = journal(&stage.events(run).await);
    let named = |path: &str, order| (path.to_owned(), order);
    let expected =
        [named("first", 1), named("quote", 0), named("nap", 0), named("heard", 2), named("fallback", 3)];
    assert_eq!(orders(&known), expected);
    assert!(matches!(known[1].state, JournalState::Retry { .. }), "{:?}", known[1]);
    assert!(matches!(known[2].state, JournalState::Sleeping { .. }), "{:?}", known[2]);

    // A close is advice: a replay that waits for them after all opens them again, at the end of the order.
    stage.ok(park(&lease, &["quote", "nap"])).await;
    let lease = standing.next().await.lease();
    let woken = journal(&stage.events(run).await);
    assert_eq!(woken.iter().find(|entry| *entry.path == *"nap").unwrap().order, 4);
    let again = act::FailStep {
        step: step("quote"),
        attempt: 2,
        failure: Failure::new("DECLINED", "no money").non_retryable(),
        policy: RetryPolicy::default(),
        elapsed_ms: 0,
        park: false,
    };
    stage.ok(lease.report(again)).await;
    let told = journal(&stage.events(run).await);
    assert_eq!(told.iter().find(|entry| *entry.path == *"quote").unwrap().order, 5);
    stage.ok(stage.complete(&lease)).await;
}
