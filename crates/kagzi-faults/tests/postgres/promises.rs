//! One promise, two servers, and very many who complete it: it is completed once, and whoever did it is told.

use futures_util::future::join_all;
use kagzi_faults::{Move, Pace, Script, Stage, eventually, stage};
use kagzi_proto::v1::{self, run_ref::Ref};
use kagzi_store_postgres::fixture;

use crate::turn;

const WORDS: usize = 1_000;

/// Completes the promise with this number. True when it was this call that did.
async fn complete(stage: &Stage, run: &str, number: usize) -> bool {
    let value = serde_json::to_vec(&number.to_string()).unwrap();
    let request = v1::CompletePromiseRequest {
        run: Some(v1::RunRef { r#ref: Some(Ref::RunId(run.to_owned())) }),
        name: "payment".into(),
        payload: Some(v1::Payload { data: value.into(), ..Default::default() }),
        ..Default::default()
    };
    let answer = stage.workflows().complete_promise(request).await.expect("a promise can be completed");
    !answer.into_inner().already_completed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promise_that_a_thousand_complete_at_two_servers_is_completed_once() {
    let _turn = turn().await;
    let url = fixture::database().await;
    let one = stage!(Pace::Calm, url.clone());
    let two = one.sibling().await;
    let _worker = two.worker(&[]).await;
    let promise = Move::Promise { name: "payment".into(), timeout_ms: None };
    let run = one.start(&Script::default().then(promise).step("ship")).await;
    eventually("the promise is there", async || {
        one.kinds(&run).await.contains(&"promise_made".to_owned()).then_some(())
    })
    .await;

    let words = (0..WORDS).map(|number| complete([&one, &two][number % 2], &run, number));
    let counted = join_all(words).await;

    let winners: Vec<usize> = (0..WORDS).filter(|number| counted[*number]).collect();
    assert_eq!(winners.len(), 1, "{winners:?}");
    assert_eq!(one.heard(&run).await, [winners[0].to_string()], "what it heard is what the winner said");
    two.kill_server().await;
    let found = one.close().await;
    assert_eq!((found.runs, found.completed), (1, 1));
}
