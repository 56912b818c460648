use std::time::Duration;

use kagzi_proto::v1::{self, StepStatus, report};

use super::scripted_server::{ScriptedServer, assign, entry, failed_step, recorded, retry_in, run_output};
use crate::payload;
use crate::run::uplink::Outgoing;

fn progressed(body: report::Body) -> (String, u64) {
    let report::Body::StepProgressed(progressed) = body else { panic!("no progress: {body:?}") };
    let progress = payload::decode(progressed.progress.as_ref()).unwrap();
    (progressed.step.unwrap().path, progress)
}

#[tokio::test(start_paused = true)]
async fn progress_is_sent_at_most_every_half_second_and_the_latest_wins() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let count = |step: crate::StepContext| async move {
            for n in 0..100_u64 {
                step.heartbeat(&n);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok(1)
        };
        ctx.step("import").run(count).await
    });

    // 0 at once, then what was last said when a half second was over.
    assert_eq!(progressed(server.commit().await), ("import".into(), 0));
    let (_, second) = progressed(server.commit().await);
    assert!((49..=51).contains(&second), "{second}");
    assert_eq!(recorded(server.commit().await).0, "import");
    assert_eq!(run_output(server.commit_end().await), 1);
}

#[tokio::test(start_paused = true)]
async fn the_last_word_is_sent_before_the_failure_and_read_by_the_next_attempt() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let import = |step: crate::StepContext| async move {
            let Some(row) = step.last_progress::<u64>() else {
                step.heartbeat(&1_u64);
                tokio::task::yield_now().await;
                step.heartbeat(&42_u64);
                anyhow::bail!("connection lost")
            };
            Ok(row)
        };
        ctx.step("import").run(import).await
    });

    assert_eq!(progressed(server.commit().await).1, 1);
    assert_eq!(progressed(server.commit().await).1, 42);
    failed_step(server.answer(retry_in(0)).await);
    assert_eq!(recorded(server.commit().await).3, "42");
    assert_eq!(run_output(server.commit_end().await), 42);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_began_elsewhere_runs_again_and_reads_how_far_it_was() {
    let progress = Some(payload::encode(&7_u64).unwrap());
    let begun = v1::JournalEntry { attempts: 0, progress, ..entry("import", 0, StepStatus::Running) };
    let mut server = ScriptedServer::execute(assign("0", vec![begun]), |ctx, _| async move {
        let import = |step: crate::StepContext| async move {
            assert_eq!(step.last_progress::<String>(), None, "progress of another type is ignored");
            Ok(step.last_progress::<u64>().unwrap_or(0) + u64::from(step.attempt()))
        };
        ctx.step("import").run(import).await
    });

    assert_eq!(recorded(server.commit().await), ("import".into(), 0, 1, "8".into()));
    server.commit_end().await;
}

#[tokio::test(start_paused = true)]
async fn a_step_that_started_names_its_limit_and_its_own_policy() {
    let mut assigned = assign("0", vec![]);
    assigned.start_to_close_timeout_ms = 600_000;
    let mut server = ScriptedServer::execute(assigned, |ctx, _| async move {
        ctx.run::<u64, _>("plain", async { Ok(1) }).await?;
        ctx.step("own").timeout(Duration::from_secs(30)).retries(3).run(|_| async { Ok(1) }).await
    });

    let Outgoing::Started(plain) = server.next_message().await else { panic!("nothing started") };
    server.commit().await;
    let Outgoing::Started(own) = server.next_message().await else { panic!("nothing started") };
    server.commit().await;

    assert_eq!((plain.timeout_ms, plain.retry_policy), (600_000, None));
    assert_eq!((own.timeout_ms, own.retry_policy.unwrap().maximum_attempts), (30_000, Some(3)));
    server.commit_end().await;
}
