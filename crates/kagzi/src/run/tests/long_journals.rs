//! A replay takes time in proportion to what is recorded. Debug builds need about two seconds for each of
//! these; one that looks at everything recorded for each step would need an hour.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use kagzi_proto::v1;

use super::scripted_server::{ScriptedServer, assign, completed, run_output};

const PATIENCE: Duration = Duration::from_secs(60);

fn journal(steps: u32) -> Vec<v1::JournalEntry> {
    let path = |n: u32| if n == 0 { "step".to_owned() } else { format!("step#{}", n + 1) };
    let entry = |n: u32| v1::JournalEntry { order: n + 1, ..completed(&path(n), n, "1") };
    (0..steps).map(entry).collect()
}

#[tokio::test]
async fn a_hundred_thousand_steps_one_after_the_other_are_replayed_in_seconds() {
    let began = Instant::now();
    let server = ScriptedServer::execute(assign("0", journal(100_000)), |ctx, _| async move {
        let mut sum = 0;
        for _ in 0..100_000 {
            sum += ctx.run("step", async { Ok(0_u64) }).await?;
        }
        Ok(sum)
    });

    assert_eq!(run_output(server.commit_end().await), 100_000);
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
}

#[tokio::test]
async fn ten_thousand_steps_side_by_side_are_replayed_in_seconds() {
    let began = Instant::now();
    let server = ScriptedServer::execute(assign("0", journal(10_000)), |ctx, _| async move {
        let steps = (0..10_000).map(|_| ctx.run("step", async { Ok(0_u64) }));
        Ok(try_join_all(steps).await?.into_iter().sum())
    });

    assert_eq!(run_output(server.commit_end().await), 10_000);
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
}
