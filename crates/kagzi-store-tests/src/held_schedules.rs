//! Schedules of a namespace that takes no runs: nothing is lost, and nothing is ended for them.

use kagzi_model::{
    NamespaceCommand, Rejection, Status,
    schedule::{Backfill, Overlap, ScheduleCommand, ScheduleRejection},
};

use crate::{
    Stage,
    schedules::{
        MINUTE_MS, ask, create, last_minute, minutely, minutes_after, nominal_times, ok, row, runs, sweep,
    },
};

fn disable() -> NamespaceCommand {
    NamespaceCommand::Disable { by: "ada".into(), note: "unpaid".into() }
}

pub async fn a_disabled_namespace_holds_its_schedules_and_makes_up_for_the_times_when_it_is_enabled(
    stage: Stage,
) {
    let begin = last_minute(&stage);
    ok(&stage, "tick", create(minutely(Overlap::Allow))).await;
    stage.pass_ms(MINUTE_MS as u64);
    sweep(&stage).await;

    stage.change(disable()).await.unwrap();
    for _ in 0..3 {
        stage.pass_ms(MINUTE_MS as u64);
        sweep(&stage).await;
    }
    assert_eq!(nominal_times(&stage, "tick").await, minutes_after(begin, 1..=1));
    let held = row(&stage, "tick").await.state;
    assert!(held.next_at.is_some_and(|at| at > stage.now()), "it is not looked at again and again");
    stage.change(NamespaceCommand::Enable).await.unwrap();
    stage.pass_ms(MINUTE_MS as u64);
    sweep(&stage).await;

    assert_eq!(nominal_times(&stage, "tick").await, minutes_after(begin, 1..=5));
    let state = row(&stage, "tick").await.state;
    assert_eq!((state.started_total, state.missed_total), (5, 0));
}

pub async fn a_disabled_namespace_keeps_the_run_that_the_next_one_would_have_replaced(stage: Stage) {
    for (id, overlap) in [("cancels", Overlap::CancelPrevious), ("terminates", Overlap::TerminatePrevious)] {
        ok(&stage, id, create(minutely(overlap))).await;
    }
    stage.pass_ms(MINUTE_MS as u64);
    sweep(&stage).await;

    stage.change(disable()).await.unwrap();
    stage.pass_ms(MINUTE_MS as u64);
    sweep(&stage).await;

    for id in ["cancels", "terminates"] {
        let found = runs(&stage, id).await;
        assert_eq!(found.len(), 1, "{id}");
        assert_eq!(stage.run(found[0].1).await.state.status(), Status::Pending, "{id}");
    }
}

pub async fn what_would_make_runs_is_refused_with_the_reason_and_the_rest_is_not(stage: Stage) {
    ok(&stage, "tick", create(minutely(Overlap::Allow))).await;
    stage.change(disable()).await.unwrap();
    let trigger = || ScheduleCommand::Trigger { run: stage.new_run("any").id, trigger: "now".into() };
    let (after, to) = (stage.now().plus_ms(-5 * MINUTE_MS), stage.now());
    let backfill = ScheduleCommand::Backfill(Backfill { after, to, at_once: true });

    for (id, command) in [("tick", trigger()), ("tick", backfill), ("new", create(minutely(Overlap::Allow)))]
    {
        let refused = ask(&stage, id, command).await.unwrap_err();
        let disabled =
            matches!(&refused, ScheduleRejection::NotAdmitted(Rejection::NamespaceDisabled { .. }));
        assert!(disabled && refused.to_string().contains("unpaid"), "{refused}");
    }

    assert!(!ok(&stage, "tick", create(minutely(Overlap::Allow))).await.changed, "a repeat is answered");
    ok(&stage, "tick", ScheduleCommand::Pause { note: "while it is disabled".into() }).await;
    ok(&stage, "tick", ScheduleCommand::Resume { catch_up: false }).await;
    ok(&stage, "tick", ScheduleCommand::Delete).await;
    stage.change(NamespaceCommand::Enable).await.unwrap();
    ok(&stage, "tick", create(minutely(Overlap::Allow))).await;
    assert!(ok(&stage, "tick", trigger()).await.run.is_some());
}
