//! Scopes that are recorded as one: once a scope has its result, nothing that lies in it is heard of.

use kagzi_model::{
    Command, Done, JournalState, LeaseRef, Payload, Rejection, Reply, State, StepResult, act, journal,
};

use crate::{
    Stage,
    generations::journal_of,
    replay_law::{declined, leased, park, sleep},
    signals::{TOLD, signal, wait},
    stage::step,
};

const HOUR_MS: i64 = 3_600_000;

fn recorded(lease: &LeaseRef, paths: &[&str]) -> Command {
    let result = |path: &&str| {
        let result = Payload::new(format!("\"{path}\"").into_bytes());
        StepResult { step: step(path), attempt: 1, result, elapsed_ms: 1 }
    };
    lease.report(act::RecordSteps { steps: paths.iter().map(result).collect() })
}

pub async fn a_recorded_scope_stands_for_everything_that_lies_in_it(stage: Stage) {
    let (run, lease, mut standing) = leased(&stage).await;
    stage.ok(stage.record(&lease, "before", b"1")).await;
    stage.ok(stage.record(&lease, "item/charge", b"2")).await;
    stage.ok(declined(&lease, "item/part/pack")).await;
    stage.ok(recorded(&lease, &["item/part/weigh", "item/part/"])).await;
    // What the code of the scope has dropped, and what only looks alike.
    stage.ok(sleep(&lease, "item/loser", 1_000)).await;
    stage.ok(wait(&lease, "item/word", "word", None)).await;
    stage.ok(sleep(&lease, "items", 5_000)).await;
    stage.ok(stage.record(&lease, "item", b"3")).await;

    let last = recorded(&lease, &["item/ship", "item/"]);
    assert_eq!(stage.ok(last.clone()).await, Reply::Done(Done { already: false }));
    assert_eq!(stage.ok(last).await, Reply::Done(Done { already: true }), "the answer was lost");

    let told = |journal: Vec<kagzi_model::JournalEntry>| {
        journal.iter().map(|entry| entry.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(told(journal(&stage.events(run).await)), ["before", "items", "item", "item/"]);
    assert_eq!(told(journal_of(&stage, run).await.into_entries()), ["before", "items", "item", "item/"]);
    // Nobody would ever hear of it.
    for late in
        [sleep(&lease, "item/late", 1), declined(&lease, "item/loser"), wait(&lease, "item/w", "w", None)]
    {
        let refused = stage.apply(late).await;
        assert!(matches!(refused, Err(Rejection::StepDecided { .. })), "{refused:?}");
    }
    // Nothing in it wakes the run, and nothing is given to it.
    stage.ok(wait(&lease, "answer", "answer", None)).await;
    stage.ok(park(&lease, &[])).await;
    assert_eq!(stage.ok(signal(&stage, run, "word", "a")).await, TOLD);
    stage.pass_ms(2_000);
    assert!(matches!(stage.run(run).await.state, State::Waiting(_)), "the sleep in the scope is over");
    stage.pass_ms(3_000);
    let lease = standing.next().await.lease();
    assert_eq!(
        told(journal_of(&stage, run).await.into_entries()),
        ["before", "items", "item", "item/", "answer"]
    );
    stage.ok(wait(&lease, "word", "word", None)).await;
    let entries = journal_of(&stage, run).await.into_entries();
    let word = entries.iter().find(|entry| &*entry.path == "word").map(|entry| &entry.state);
    assert!(matches!(word, Some(JournalState::Completed { .. })), "the signal lies there: {word:?}");
    stage.ok(stage.complete(&lease)).await;
}

pub async fn the_journal_of_a_thousand_scopes_has_a_thousand_entries(stage: Stage) {
    const SCOPES: usize = 1_000;
    let (run, lease, mut standing) = leased(&stage).await;
    for scope in 0..SCOPES {
        let own = format!("order#{scope}/");
        let mut steps: Vec<String> = (0..10).map(|n| format!("{own}step#{n}")).collect();
        steps.push(own);
        stage.ok(recorded(&lease, &steps.iter().map(String::as_str).collect::<Vec<_>>())).await;
    }
    stage.ok(sleep(&lease, "nap", HOUR_MS)).await;
    stage.ok(park(&lease, &["nap"])).await;
    stage.pass_ms(HOUR_MS as u64);
    let _lease = standing.next().await.lease();

    let journal = journal_of(&stage, run).await;

    let bytes = journal.bytes();
    let entries = journal.into_entries();
    assert_eq!(entries.len(), SCOPES + 1);
    let orders: Vec<u32> = entries.iter().map(|entry| entry.order).collect();
    assert!(orders.is_sorted(), "in the order in which the function was told");
    // An entry is taken for a quarter of a kilobyte, and half of what is kept may be to be cleared away.
    assert!(bytes < 3 * SCOPES * 300, "{bytes} bytes");
}
