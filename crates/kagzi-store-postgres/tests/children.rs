//! Children that end at two servers at once: their parent hears of each, and goes on once.

mod stage;

use std::time::Duration;

use futures_util::future::join_all;
use kagzi_model::{ClosePolicy, Command, EventKind, LeaseRef, StartRun, StepRef, Wake, act};
use kagzi_store_postgres::{PostgresOptions, fixture};
use stage::{Server, complete, namespace, next, start};

const MANY: usize = 1_000;
const SOON: Duration = Duration::from_secs(60);
/// Reports that share a call, as the reports of one stream do.
const AT_ONCE: usize = 25;

fn child(lease: &LeaseRef, path: &str) -> Command {
    let kagzi_model::Act::Start(start) = start("item").act else { unreachable!("a start") };
    lease.report(act::StartChild {
        step: StepRef { path: path.into(), position: 0 },
        start: Box::new(StartRun { task_queue: "orders".into(), ..*start }),
        close: ClosePolicy::Cancel,
        awaited: true,
        told: true,
        timeout_ms: None,
        park: false,
    })
}

async fn applied(server: &Server, commands: Vec<Command>) {
    for call in commands.chunks(AT_ONCE) {
        for outcome in server.store.apply(call.to_vec()).await.unwrap() {
            outcome.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_children_that_end_at_two_servers_wake_their_parent_once() {
    let url = fixture::database().await;
    let one = Server::open(&url, PostgresOptions::default()).await;
    let two = Server::open(&url, PostgresOptions::default()).await;
    let parents = one.register("order", 1).await;
    let mut of_parent = one.stand_by(parents, "order").await;
    let parent = one.start("order").await;
    let lease = next(&mut of_parent, SOON).await.lease();
    let paths: Vec<String> = (0..MANY).map(|n| format!("item#{n}")).collect();
    applied(&one, paths.iter().map(|path| child(&lease, path)).collect()).await;
    let waits = paths.iter().map(|path| path.as_str().into()).collect();
    one.apply(lease.report(act::Park { waits, wake: Wake::Last })).await.unwrap();

    // Half of them end here and half of them there, at the same time.
    let ends = [&one, &two].map(async |server| {
        let worker = server.register("item", MANY as u32 / 2).await;
        let mut assignments = server.stand_by(worker, "item").await;
        let mut ends = Vec::new();
        for _ in 0..MANY / 2 {
            ends.push(complete(next(&mut assignments, SOON).await.lease()));
        }
        applied(server, ends).await;
    });
    join_all(ends).await;

    let woken = next(&mut of_parent, SOON).await;
    assert_eq!((woken.run.id, woken.run.epoch), (parent, lease.epoch + 1));
    one.apply(complete(woken.lease())).await.unwrap();
    let history = two.store.events(&namespace(), parent, 0, 10 * MANY).await.unwrap();
    let count = |is: fn(&EventKind) -> bool| history.iter().filter(|event| is(&event.kind)).count();
    assert_eq!(count(|kind| matches!(kind, EventKind::WaitEnded { .. })), MANY, "each is told of once");
    assert_eq!(count(|kind| matches!(kind, EventKind::RunClaimed { .. })), 2, "woken once");
    assert_eq!(count(|kind| matches!(kind, EventKind::RunCompleted)), 1);
}
