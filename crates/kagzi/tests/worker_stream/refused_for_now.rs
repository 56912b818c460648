//! A server that refuses reports for now: what is recorded is still a beginning of what the function was
//! told, because one report of a run at a time is on its way.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use kagzi::WorkflowContext;
use kagzi_proto::v1::{self, answer, report};
use kagzi_proto::{Reason, refusal};

use crate::scripted_server::ScriptedServer;

const STEPS: u64 = 30;

/// The order in which the function was told.
type Seen = Arc<std::sync::Mutex<Vec<String>>>;

/// Steps side by side that end one after the other, some of them after failures.
async fn parts(ctx: WorkflowContext, seen: Seen) -> anyhow::Result<()> {
    let part = |n: u64| {
        let ctx = ctx.scope(&n.to_string());
        async move {
            let code = move |step: kagzi::StepContext| async move {
                tokio::time::sleep(Duration::from_millis(n * 20)).await;
                anyhow::ensure!(n % 7 != 3 || step.attempt() > 1, "once");
                Ok(n)
            };
            ctx.step("part").run(code).await.map(|n| format!("{n}/part"))
        }
    };
    let mut parts: FuturesUnordered<_> = (0..STEPS).map(part).collect();
    while let Some(path) = parts.next().await {
        seen.lock().unwrap().push(path?);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn results_are_recorded_in_the_order_in_which_the_function_was_told() {
    for every in [2, 3, 5] {
        let seen = Seen::default();
        let mut server = ScriptedServer::start();
        let mut worker = server.worker().await;
        let told = seen.clone();
        worker.register("parts", move |ctx, ()| parts(ctx, told.clone()));
        let worker = tokio::spawn(worker.run());
        let (mut stream, _) = server.welcome().await;
        stream.assign("r1", "parts").await;

        let mut recorded = Vec::new();
        for number in 1.. {
            let (_, seq, body) = stream.next_report().await;
            if number % every == 0 {
                let busy = refusal::to_rpc(&Reason::StoreUnavailable.status("later"));
                stream.answer(seq, answer::Body::Refused(busy)).await;
                continue;
            }
            let steps = match body {
                report::Body::StepRecorded(step) => vec![step],
                report::Body::StepsRecorded(several) => several.steps,
                report::Body::RunCompleted(last) => {
                    recorded.extend(paths(last.steps));
                    stream.commit(seq).await;
                    break;
                }
                report::Body::StepFailed(_) => {
                    let retry = v1::StepRetry { delay_ms: 0, attempt: 1 };
                    stream.answer(seq, answer::Body::StepRetry(retry)).await;
                    continue;
                }
                other => panic!("nobody asked for {other:?}"),
            };
            recorded.extend(paths(steps));
            stream.commit(seq).await;
        }

        assert_eq!(recorded.len() as u64, STEPS);
        assert_eq!(recorded, *seen.lock().unwrap(), "every {every}th report was refused");
        worker.abort();
    }
}

fn paths(steps: Vec<v1::StepRecorded>) -> impl Iterator<Item = String> {
    steps.into_iter().map(|step| step.step.unwrap().path)
}
