//! Commands of one call: applied in order, each on its own.

use kagzi_model::{Command, Done, Rejection, Reply, RunId, Status};

use crate::Stage;

pub async fn a_refused_command_does_not_disturb_its_neighbours(stage: Stage) {
    let mut standing = stage.stand_by(2).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let stale = kagzi_model::LeaseRef { epoch: lease.epoch + 7, ..lease.clone() };
    let missing = RunId(uuid::Uuid::now_v7());
    let (good, conflicting) = (stage.new_run("order-2"), stage.new_run("order-1"));
    let conflicting = kagzi_model::StartRun { workflow_type: "refund".into(), ..conflicting };
    let other = good.id;

    let outcomes = stage
        .apply_all(vec![
            stage.record(&lease, "a", b"1"),
            stage.record(&stale, "b", b"2"),
            stage.cancel(missing),
            Command::start(good),
            Command::start(conflicting),
            stage.record(&lease, "c", b"3"),
            stage.resume(run),
            stage.complete(&lease),
        ])
        .await;

    let accepted: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(accepted, [true, false, false, true, false, true, false, true]);
    let expected = ["run_started", "run_claimed", "step_completed", "step_completed", "run_completed"];
    assert_eq!(stage.event_names(run).await, expected);
    assert_eq!(standing.next().await.run.id, other);
}

pub async fn commands_of_one_call_see_each_other_in_order(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();

    let outcomes = stage
        .apply_all(vec![
            stage.record(&lease, "a", b"1"),
            stage.record(&lease, "a", b"1"),
            stage.complete(&lease),
            stage.record(&lease, "b", b"2"),
            stage.cancel(run),
        ])
        .await;

    let ended = Err(Rejection::Ended { run, status: Status::Completed });
    let done = |already| Ok(Reply::Done(Done { already }));
    assert_eq!(outcomes, [done(false), done(true), done(false), ended.clone(), ended]);
}

pub async fn a_run_can_start_and_end_in_one_call(stage: Stage) {
    let start = stage.new_run("order-1");
    let run = start.id;

    let outcomes = stage.apply_all(vec![Command::start(start), stage.cancel(run)]).await;

    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(stage.event_names(run).await, ["run_started", "run_cancelled"]);
    assert_eq!(stage.told.finished(run).await.run, stage.run(run).await);
}

pub async fn an_empty_call_is_answered(stage: Stage) {
    assert!(stage.apply_all(vec![]).await.is_empty());
}
