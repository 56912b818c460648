//! Schedules from the SDK through the engine and back, on a clock that tests move.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kagzi::client::{Run, RunStatus};
use kagzi::schedule::{Backfill, Missed, Overlap};
use kagzi::testing::TestEngine;
use kagzi::{Client, WorkflowContext};

const HOUR: Duration = Duration::from_secs(3600);

/// Answers with the second of its nominal time, or nothing.
async fn report(ctx: WorkflowContext, kind: String) -> anyhow::Result<(String, Option<String>, Option<u64>)> {
    let nominal = ctx.scheduled_at().map(second);
    Ok((kind, ctx.schedule_id().map(str::to_owned), nominal))
}

async fn stuck(ctx: WorkflowContext, (): ()) -> anyhow::Result<()> {
    ctx.sleep(HOUR * 24 * 365).await
}

fn second(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).unwrap().as_secs()
}

async fn engine() -> (TestEngine, Client) {
    let engine = TestEngine::start().await;
    engine
        .work("reports", |worker| {
            worker.register("report", report);
            worker.register("stuck", stuck);
        })
        .await;
    let client = engine.client();
    (engine, client)
}

/// Moves the clock to just after the next full hour, and answers with that hour.
fn to_next_hour(engine: &TestEngine) -> u64 {
    let now = second(engine.now());
    let next = (now / 3600 + 1) * 3600;
    engine.advance(Duration::from_secs(next - now));
    next
}

/// Waits until the schedule has this many runs; newest first.
async fn runs(client: &Client, id: &str, count: usize) -> Vec<Run> {
    let found = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            let page = client.schedule_handle(id).runs().page("").await.unwrap();
            if page.rows.len() >= count {
                return page.rows;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    found.await.unwrap_or_else(|_| panic!("schedule {id} never had {count} runs"))
}

#[tokio::test]
async fn a_scheduled_run_knows_its_schedule_and_its_nominal_time() {
    let (engine, client) = engine().await;
    let schedule = client.schedule("hourly", "report", "reports", "sales").cron("@hourly");
    let schedule = schedule.label("tenant", "acme").await.unwrap();

    let hour = to_next_hour(&engine);

    let run = &runs(&client, "hourly", 1).await[0];
    assert_eq!(run.schedule_id.as_deref(), Some("hourly"));
    assert_eq!(run.labels, [("tenant".to_owned(), "acme".to_owned())].into());
    let result: (String, Option<String>, Option<u64>) = client.handle(&run.run_id).result().await.unwrap();
    assert_eq!(result, ("sales".into(), Some("hourly".into()), Some(hour)));
    let described = schedule.describe().await.unwrap();
    assert_eq!((described.started_total, described.last_run_id), (1, Some(run.run_id.clone())));
    let next = schedule.next(2).await.unwrap();
    assert_eq!(next.times.into_iter().map(second).collect::<Vec<_>>(), [hour + 3600, hour + 7200]);
    assert_eq!((next.time_zone.as_str(), next.paused), ("UTC", false));
}

#[tokio::test]
async fn a_run_that_nobody_scheduled_has_no_nominal_time() {
    let (_engine, client) = engine().await;

    let run = client.workflow("report", "reports", "sales").await.unwrap();

    let result: (String, Option<String>, Option<u64>) = run.result().await.unwrap();
    assert_eq!(result, ("sales".into(), None, None));
}

#[tokio::test]
async fn a_schedule_is_held_let_go_triggered_backfilled_changed_and_removed() {
    let (engine, client) = engine().await;
    let hourly = || client.schedule("hourly", "report", "reports", "sales").every(HOUR).max_catchup(3);
    let schedule = hourly().await.unwrap();
    hourly().await.expect("made again with the same plan is made once");
    let other = hourly().overlap(Overlap::Skip).await.err().expect("another plan is refused");
    assert!(other.to_string().contains("update it"), "{other}");

    schedule.pause("the warehouse moves").await.unwrap();
    engine.advance(HOUR * 10);
    engine.settle().await;
    let described = schedule.describe().await.unwrap();
    assert_eq!((described.paused, described.note.as_str()), (true, "the warehouse moves"));
    assert_eq!(described.started_total, 0);

    let run = schedule.trigger().await.unwrap();
    run.result::<(String, Option<String>, Option<u64>)>().await.unwrap();
    schedule.resume(Missed::CatchUp).await.unwrap();
    assert_eq!(runs(&client, "hourly", 4).await.len(), 4, "the newest three, and the triggered one");
    assert_eq!(schedule.describe().await.unwrap().missed_total, 7);

    let now = engine.now();
    let times = schedule.backfill(now - HOUR * 5, now, Backfill::OneByOne).await.unwrap();
    assert_eq!(times, 5);
    let all = runs(&client, "hourly", 6).await;
    assert_eq!(all.len(), 6, "two of the five had no run yet");

    let daily =
        client.schedule("hourly", "report", "reports", "sales").cron("0 3 * * *").time_zone("Europe/Berlin");
    daily.update().await.unwrap();
    assert_eq!(schedule.describe().await.unwrap().words, "at 03:00 (Europe/Berlin)");
    schedule.delete().await.unwrap();
    let gone = schedule.describe().await.unwrap_err();
    assert!(gone.to_string().contains("no schedule 'hourly'"), "{gone}");
    assert_eq!(runs(&client, "hourly", 6).await.len(), 6, "its runs stay");
}

#[tokio::test]
async fn a_run_that_still_goes_is_cancelled_for_the_next_one() {
    let (engine, client) = engine().await;
    let hourly = client.schedule("hourly", "stuck", "reports", ()).every(HOUR);
    hourly.overlap(Overlap::CancelPrevious).await.unwrap();
    to_next_hour(&engine);
    let first = runs(&client, "hourly", 1).await[0].run_id.clone();

    engine.advance(HOUR);
    runs(&client, "hourly", 2).await;

    assert_eq!(client.get(first).await.unwrap().status, RunStatus::Cancelled);
}

#[tokio::test]
async fn a_bad_expression_is_refused_with_its_place() {
    let (_engine, client) = engine().await;

    let refused = client.schedule("bad", "report", "reports", ()).cron("0 0 31 2 *").await.err().unwrap();

    assert!(refused.to_string().contains("never comes: at character 5"), "{refused}");
}

#[tokio::test]
async fn a_schedule_can_be_looked_at_in_words_before_it_is_made() {
    let (_engine, client) = engine().await;
    let weekdays = || {
        client.schedule("work", "report", "reports", "sales").cron("0 9 * * 1-5").time_zone("Europe/Berlin")
    };

    let preview = weekdays().preview(3).await.unwrap();

    assert!(preview.words.contains("09:00") && preview.words.contains("Monday"), "{}", preview.words);
    assert_eq!((preview.times.len(), preview.time_zone.as_str()), (3, "Europe/Berlin"));
    assert!(client.schedules().all().await.unwrap().is_empty(), "nothing was made");
    assert_eq!(weekdays().await.unwrap().next(3).await.unwrap(), preview);
}

#[tokio::test]
async fn schedules_are_listed_filtered_and_in_pages_both_ways() {
    let (engine, client) = engine().await;
    for id in ["a", "b", "c"] {
        let kind = if id == "b" { "stuck" } else { "report" };
        client.schedule(id, kind, "reports", ()).cron("@hourly").await.unwrap();
        engine.advance(Duration::from_millis(1));
    }
    client.schedule_handle("c").pause("holidays").await.unwrap();
    let ids = |schedules: &[kagzi::schedule::Schedule]| {
        schedules.iter().map(|one| one.schedule_id.clone()).collect::<Vec<_>>()
    };

    let by_two = client.schedules().page_size(2);
    let first = by_two.page("").await.unwrap();
    let second = by_two.page(first.next.clone().unwrap()).await.unwrap();
    let back = by_two.page(second.previous.clone().unwrap()).await.unwrap();

    assert_eq!((ids(&first.rows), ids(&second.rows)), (vec!["c".into(), "b".into()], vec!["a".to_owned()]));
    assert_eq!((ids(&back.rows), second.next), (ids(&first.rows), None));
    assert_eq!(ids(&by_two.all().await.unwrap()), ["c", "b", "a"]);
    assert_eq!(ids(&client.schedules().paused(true).all().await.unwrap()), ["c"]);
    assert_eq!(ids(&client.schedules().workflow_type("stuck").all().await.unwrap()), ["b"]);
}
