//! Asking people, as users write it; time is virtual.

use std::time::Duration;

use kagzi::client::{Reason, RunHandle, RunStatus};
use kagzi::inbox::{Contact, Question, QuestionState};
use kagzi::testing::TestEngine;
use kagzi::{Error, WorkflowContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

async fn refund(ctx: WorkflowContext, cents: u64) -> anyhow::Result<String> {
    let approval = ctx
        .approval("refund")
        .title(format!("Refund {cents}?"))
        .of(&cents)
        .to("group:finance")
        .timeout(DAY * 7)
        .remind(DAY)
        .escalate(DAY * 2, "lead")
        .escalate(DAY * 4, "cfo")
        .await?;
    if approval.approved {
        approval.checked(&cents)?;
    }
    Ok(format!("{} by {:?} ({})", approval.approved, approval.by, approval.source))
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Address {
    city: String,
    number: u32,
}

async fn address(ctx: WorkflowContext, _: ()) -> anyhow::Result<Address> {
    Ok(ctx.input::<Address>("address").to("ada").timeout(HOUR).await?.data)
}

async fn carrier(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    let carrier = ctx.decide("carrier").option("truck", "By truck").default_option("post", "By post");
    let decided = carrier.to("ada").timeout(HOUR).await?;
    Ok(format!("{} ({})", decided.option, decided.source))
}

async fn raced(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    kagzi::select! {
        yes = async { ctx.approval("sure").to("ada").await } => Ok(format!("{}", yes?.approved)),
        late = ctx.sleep(HOUR) => { late?; ctx.sleep(HOUR).await?; Ok("late".to_owned()) }
    }
}

async fn engine() -> TestEngine {
    let engine = TestEngine::start().await;
    engine
        .work("q", |worker| {
            worker.register("refund", refund).register("address", address);
            worker.register("carrier", carrier).register("raced", raced);
        })
        .await;
    let operator = engine.client().inbox("operator");
    operator.put_contact(Contact::new("ada").member_of("finance")).await.unwrap();
    engine
}

async fn started(engine: &TestEngine, workflow: &str, input: impl Serialize) -> RunHandle {
    let run = engine.client().workflow(workflow, "q", input).await.unwrap();
    engine.settle().await;
    run
}

async fn only(engine: &TestEngine, person: &str) -> Question {
    let mine = engine.client().inbox(person).questions().mine().all().await.unwrap();
    assert_eq!(mine.len(), 1, "{mine:?}");
    mine.into_iter().next().unwrap()
}

/// The question as soon as it is as wanted: the sweep moves in its own time.
async fn when(engine: &TestEngine, id: &str, wanted: impl Fn(&Question) -> bool) -> Question {
    for _ in 0..400 {
        let (question, _) = engine.client().inbox("operator").question(id).await.unwrap();
        if wanted(&question) {
            return question;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("it never became so");
}

#[tokio::test]
async fn an_approval_waits_for_days_over_reminders_and_escalations_and_holds_no_worker() {
    let engine = engine().await;
    let run = started(&engine, "refund", 30).await;
    let question = only(&engine, "ada").await;
    let shown = run.describe().await.unwrap();
    assert_eq!((shown.status, shown.reason), (RunStatus::Paused, Some(Reason::Person)));
    assert_eq!((question.title.as_str(), question.arguments.as_deref()), ("Refund 30?", Some("30")));
    let why = run.explain().await.unwrap().sentence;
    let command = format!("kagzi inbox answer {} approve|reject", question.id);
    assert!(why.contains("it asks group:finance: 'Refund 30?'") && why.contains(&command), "{why}");

    engine.advance(DAY * 2 + HOUR);
    when(&engine, &question.id, |question| question.escalations == 1).await;
    engine.advance(DAY * 2);
    let escalated = when(&engine, &question.id, |question| question.escalations == 2).await;
    assert_eq!(escalated.assignees, ["group:finance", "lead", "cfo"]);
    let (_, told) = engine.client().inbox("cfo").question(&question.id).await.unwrap();
    let to_cfo = told.iter().filter(|notice| notice.recipient == "cfo" && notice.message == "escalated");
    assert_eq!(to_cfo.count(), 1);
    assert!(told.iter().any(|notice| notice.recipient == "ada" && notice.message == "reminder"));
    assert_eq!(run.describe().await.unwrap().reason, Some(Reason::Person), "nobody executes it");

    let answered = engine.client().inbox("cfo").approve(&question.id, "once").await.unwrap();
    assert!(answered.decided);
    assert_eq!(run.result::<String>().await.unwrap(), "true by \"cfo\" (escalation)");
    let late = engine.client().inbox("ada").reject(&question.id, "").await.unwrap_err();
    assert!(late.to_string().contains("cfo answered at"), "{late}");
    engine.close().await;
}

#[tokio::test]
async fn nobody_in_time_means_no_the_default_or_a_failure() {
    let engine = engine().await;
    let refund = started(&engine, "refund", 30).await;
    let carrier = started(&engine, "carrier", ()).await;
    let address = started(&engine, "address", ()).await;

    engine.advance(DAY * 8);

    assert_eq!(refund.result::<String>().await.unwrap(), "false by \"\" (timeout_default)");
    assert_eq!(carrier.result::<String>().await.unwrap(), "post (timeout_default)");
    let Err(Error::RunFailed(failed)) = address.result::<Address>().await else { panic!("it was answered") };
    assert_eq!(failed.code, "QUESTION_EXPIRED");
    engine.close().await;
}

#[tokio::test]
async fn data_that_does_not_fit_its_type_is_refused_with_the_place_of_each_mistake() {
    let engine = engine().await;
    let run = started(&engine, "address", ()).await;
    let question = only(&engine, "ada").await;
    let inbox = engine.client().inbox("ada");

    let wrong = serde_json::json!({ "city": 7, "number": "four" });
    let refused = inbox.give(&question.id, &wrong, "").await.unwrap_err().to_string();
    assert!(refused.contains("data/city") && refused.contains("data/number"), "{refused}");
    let right = Address { city: "Delhi".into(), number: 4 };
    inbox.give(&question.id, &right, "").await.unwrap();

    assert_eq!(run.result::<Address>().await.unwrap(), right);
    engine.close().await;
}

#[tokio::test]
async fn a_question_that_lost_a_race_is_closed_and_a_retried_run_asks_anew() {
    let engine = engine().await;
    let run = started(&engine, "raced", ()).await;
    let question = only(&engine, "ada").await;

    engine.advance(HOUR);
    let closed = when(&engine, &question.id, |question| !question.state.is_open()).await;
    assert_eq!(closed.state, QuestionState::Cancelled);
    assert_eq!(closed.cancelled_because.as_deref(), Some("its run does not wait for it any more"));
    engine.settle().await;
    engine.advance(HOUR);
    assert_eq!(run.result::<String>().await.unwrap(), "late");

    let address = started(&engine, "address", ()).await;
    let former = only(&engine, "ada").await;
    engine.advance(HOUR);
    let Err(Error::RunFailed(failed)) = address.result::<Address>().await else { panic!("it was answered") };
    assert_eq!(failed.code, "QUESTION_EXPIRED");
    address.retry().await.unwrap();
    engine.settle().await;
    let anew = only(&engine, "ada").await;
    assert_ne!(anew.id, former.id, "a question that has expired is not asked again, another one is");
    engine.close().await;
}

#[tokio::test]
async fn people_claim_comment_assign_snooze_and_take_back() {
    let engine = engine().await;
    let run = started(&engine, "carrier", ()).await;
    let question = only(&engine, "ada").await;
    let (ada, bob) = (engine.client().inbox("ada"), engine.client().inbox("bob"));

    ada.claim(&question.id).await.unwrap();
    assert!(bob.forced().choose(&question.id, "ship", "").await.is_err(), "there is no such option");
    assert_eq!(ada.comment(&question.id, "asking around").await.unwrap().comments.len(), 1);
    assert_eq!(ada.snooze(&question.id, HOUR).await.unwrap().snoozed_by, ["ada"]);
    assert_eq!(ada.release(&question.id).await.unwrap().claimed_by, None);
    assert!(bob.choose(&question.id, "truck", "").await.is_err(), "bob is not asked");
    ada.assign(&question.id, &["bob"]).await.unwrap();
    assert_eq!(only(&engine, "bob").await.id, question.id);
    bob.cancel(&question.id, "wrong order").await.unwrap();

    let Err(Error::RunFailed(failed)) = run.result::<String>().await else { panic!("it was answered") };
    assert_eq!(failed.code, "QUESTION_CANCELLED");
    engine.close().await;
}
