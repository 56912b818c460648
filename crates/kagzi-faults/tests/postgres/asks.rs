//! Whoever asks a run asks any server: the answer comes although another one has the worker, and although
//! that one dies.

use futures_util::future::join_all;
use kagzi_faults::{Move, Pace, Script, Stage, eventually, stage};
use kagzi_proto::v1::{self, run_ref::Ref};
use kagzi_store_postgres::fixture;

use crate::{addresses, turn};

const ASKERS: usize = 20;

/// Asks until there is an answer, under one id, and answers with it.
async fn ask(stage: &Stage, run: &str, number: usize) -> String {
    let words = serde_json::to_vec(&format!("word {number}")).unwrap();
    let request = v1::AskWorkflowRunRequest {
        run: Some(v1::RunRef { r#ref: Some(Ref::RunId(run.to_owned())) }),
        channel: "echo".into(),
        ask_id: format!("ask-{number}"),
        payload: Some(v1::Payload { data: words.into(), ..Default::default() }),
        timeout_ms: 5_000,
        ..Default::default()
    };
    eventually("the run answers", async || {
        let answer = stage.workflows().ask_workflow_run(request.clone()).await.ok()?.into_inner();
        let reply = answer.reply.filter(|_| answer.answered)?;
        Some(serde_json::from_slice(&reply.data).expect("an answer of the script"))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_asked_at_the_server_without_its_worker_answers_also_when_the_other_one_dies() {
    let _turn = turn().await;
    let url = fixture::database().await;
    let one = stage!(Pace::Brisk, url.clone());
    let two = one.sibling().await;
    let _worker = one.worker_at(addresses(&two, &one), &[]).await;
    let answers = Move::Answers { channel: "echo".into(), count: 2 * ASKERS };
    let run = one.start(&Script::default().then(answers).step("end")).await;

    let first = join_all((0..ASKERS).map(|number| ask(&one, &run, number)));
    let first = first.await;
    // The worker's server dies while the others ask.
    let (second, ()) = tokio::join!(
        join_all((ASKERS..2 * ASKERS).map(|number| ask(&one, &run, number))),
        two.kill_server(),
    );

    for (number, answer) in first.iter().chain(&second).enumerate() {
        assert_eq!(*answer, format!("word {number}"), "each hears what was said to it");
    }
    assert_eq!(ask(&one, &run, 3).await, "word 3", "a repeat is told the same");
    one.completed(&run).await;
    let replies = one.whole_history(&run).await;
    let is_reply = |event: &&v1::RunEvent| event.step.starts_with("~reply/");
    assert_eq!(replies.iter().filter(is_reply).count(), 2 * ASKERS, "each is answered once");
    let found = one.close().await;
    assert_eq!((found.runs, found.completed), (1, 1));
}
