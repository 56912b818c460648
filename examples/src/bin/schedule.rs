//! A schedule: a report every second, held for a while, triggered by hand and removed.

use std::time::Duration;

use kagzi::schedule::{Missed, Overlap, ScheduleHandle};
use kagzi::{Client, Worker, WorkflowContext};

/// Says for which time it was started, whenever it really runs.
async fn report(ctx: WorkflowContext, kind: String) -> anyhow::Result<String> {
    let nominal = ctx.scheduled_at().expect("a schedule started it");
    let on_the_second = nominal.duration_since(std::time::UNIX_EPOCH)?.subsec_nanos() == 0;
    Ok(format!("{kind} of {}, for a full second: {on_the_second}", ctx.schedule_id().unwrap_or_default()))
}

/// The results of its first runs, once there are `count`.
async fn results(client: &Client, schedule: &ScheduleHandle, count: usize) -> anyhow::Result<Vec<String>> {
    loop {
        let mut runs = schedule.runs().page("").await?.rows;
        if runs.len() >= count {
            runs.reverse();
            let ids = runs.into_iter().take(count).map(|run| run.run_id);
            let mut results = Vec::new();
            for id in ids {
                results.push(client.handle(id).result::<String>().await?);
            }
            return Ok(results);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::var("KAGZI_ADDRESS").unwrap_or("127.0.0.1:50051".into());
    let mut worker = Worker::builder(&address, "reports").build().await?;
    worker.register("report", report);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());

    let client = Client::connect(&address).await?;
    let plan = || client.schedule("sales-report", "report", "reports", "sales").overlap(Overlap::BufferOne);
    let schedule = plan().cron("* * * * * *").await?;
    println!("{}", results(&client, &schedule, 2).await?.join("\n"));

    schedule.pause("the warehouse moves").await?;
    let held = schedule.describe().await?;
    println!("{}, paused: {} ({})", held.words, held.paused, held.note);
    schedule.trigger().await?.result::<String>().await?;
    schedule.resume(Missed::Skip).await?;

    let refused = plan().cron("0 25 * * *").update().await.err().expect("there is no hour 25");
    println!("{refused}");
    schedule.delete().await?;
    stop.cancel();
    Ok(working.await??)
}
