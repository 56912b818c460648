//! Executes random workflow programs. Each call of a step hands it a fingerprint of everything that its
//! branch has seen so far, the step returns it, and the program compares: a replay that took another path, or
//! that paired a result with another call, is found at the next step.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use kagzi::workflow::{NonRetryableError, Raced};
use kagzi::{RetryPolicy, WorkflowContext};

use crate::program::{Family, Node};

/// A workflow that returns what it is given.
const ECHO: &str = "echo";

pub async fn echo(_: WorkflowContext, seen: u64) -> anyhow::Result<u64> {
    Ok(seen)
}

fn mixed(seen: u64, what: u64) -> u64 {
    (seen ^ what).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}

/// The run fails with this panic when a result is not the one of its call.
#[track_caller]
fn paired(seen: u64, returned: u64) -> u64 {
    assert!(returned == seen, "MISPAIRED: a step that was given {seen:x} returned {returned:x}");
    mixed(seen, 1)
}

fn policy() -> RetryPolicy {
    let quick = Duration::from_millis(2);
    RetryPolicy { initial_interval: Some(quick), maximum_interval: Some(quick), ..RetryPolicy::default() }
        .maximum_attempts(100)
        // A worker that dies costs seconds of the engine's clock, and a program has many retries.
        .run_retries_max(10_000)
        .run_retry_budget(Duration::from_secs(365 * 24 * 3600))
        .retry_timeout(Duration::from_secs(365 * 24 * 3600))
}

/// Executes the program; `seen` is what the branch knows.
pub fn execute(ctx: WorkflowContext, node: Arc<Node>, seen: u64) -> BoxFuture<'static, anyhow::Result<u64>> {
    async move {
        match &*node {
            Node::Step { name, pauses } => {
                let pauses = *pauses;
                let code = move |_| async move {
                    for _ in 0..pauses {
                        tokio::task::yield_now().await;
                    }
                    Ok(seen)
                };
                Ok(paired(seen, ctx.step(name).retry_policy(policy()).run(code).await?))
            }
            Node::Retried { name, failures } => {
                let failures = *failures;
                let step = ctx.step(name).retry_policy(policy());
                let code = move |step: kagzi::StepContext| async move {
                    tokio::task::yield_now().await;
                    anyhow::ensure!(step.attempt() > failures, "not yet");
                    Ok(seen)
                };
                Ok(paired(seen, step.run(code).await?))
            }
            Node::Plain { name } => {
                let code = async move {
                    tokio::task::yield_now().await;
                    Ok(seen)
                };
                Ok(paired(seen, ctx.run(name, code).await?))
            }
            Node::Failed { name } => {
                let code = async move { Err::<u64, _>(NonRetryableError::new(format!("{seen:x}")).into()) };
                let error = ctx.run(name, code).await.expect_err("the step fails for good");
                let failed = error.downcast_ref::<kagzi::workflow::StepError>().expect("a failed step");
                let said = failed.message.rsplit(' ').next().unwrap_or_default();
                assert!(said == format!("{seen:x}"), "MISPAIRED: {said} is not {seen:x}");
                Ok(mixed(seen, 2))
            }
            Node::Progress => {
                let code = move |step: kagzi::StepContext| async move {
                    step.heartbeat(&1);
                    tokio::task::yield_now().await;
                    Ok(seen)
                };
                Ok(paired(seen, ctx.step("progress").retry_policy(policy()).run(code).await?))
            }
            Node::Sleep { ms } => {
                ctx.sleep(Duration::from_millis(*ms)).await?;
                Ok(mixed(seen, 3))
            }
            Node::Label => {
                ctx.set_label("seen", &format!("{seen:x}")).await?;
                Ok(mixed(seen, 4))
            }
            Node::Value => Ok(mixed(seen, ctx.random().await?)),
            Node::Signal { ms } => {
                let word = ctx.signal::<u64>("word").timeout(Duration::from_millis(*ms));
                Ok(mixed(seen, word.await?.map_or(2, |word| word + 3)))
            }
            Node::Child(Family::Awaited) => Ok(paired(seen, ctx.child(ECHO, &seen).await?)),
            Node::Child(Family::Timed { ms }) => {
                match ctx.child(ECHO, &seen).timeout(Duration::from_millis(*ms)).await? {
                    Some(returned) => Ok(paired(seen, returned)),
                    None => Ok(mixed(seen, 8)),
                }
            }
            Node::Child(Family::Started) => {
                let child = ctx.child::<u64>(ECHO, &seen).start().await?;
                let between: u64 = ctx.run("between", async move { Ok(seen) }).await?;
                Ok(paired(paired(seen, between), mixed(child.result().await?, 1)))
            }
            Node::Child(Family::Detached) => {
                ctx.child::<u64>(ECHO, &seen).detach().await?;
                Ok(mixed(seen, 9))
            }
            Node::Child(Family::Many { count }) => {
                let ends = ctx.children::<u64>(ECHO, (0..*count).map(|number| mixed(seen, number))).await;
                for (number, end) in (0..).zip(ends) {
                    paired(mixed(seen, number), end?);
                }
                Ok(mixed(seen, 10))
            }
            Node::Sequence(nodes) => {
                let mut seen = seen;
                for node in nodes {
                    seen = execute(ctx.clone(), Arc::new(node.clone()), seen).await?;
                }
                Ok(seen)
            }
            Node::Join(nodes) => {
                let ended = join_all(branches(&ctx, nodes, seen)).await;
                ended.into_iter().try_fold(seen, |seen, ended| Ok(mixed(seen, ended?)))
            }
            Node::Select(nodes) => {
                let mut branches: Vec<_> = branches(&ctx, nodes, seen).collect();
                let third = branches.pop().expect("two or three branches");
                let second = branches.pop().expect("two or three branches");
                let first = branches.pop();
                let first = async {
                    match first {
                        Some(first) => first.await,
                        None => std::future::pending().await,
                    }
                };
                let (which, ended) = kagzi::select! {
                    ended = first => (1, ended?),
                    ended = second => (2, ended?),
                    ended = third => (3, ended?),
                };
                Ok(mixed(mixed(seen, which), ended))
            }
            Node::Race(two) => {
                let mut branches = branches(&ctx, [&two.0, &two.1], seen);
                let (first, second) = (branches.next().expect("two"), branches.next().expect("two"));
                match ctx.race(first, second).await {
                    Raced::First(ended) => Ok(mixed(mixed(seen, 1), ended?)),
                    Raced::Second(ended) => Ok(mixed(mixed(seen, 2), ended?)),
                }
            }
            Node::Timeout { ms, node } => {
                let inner = execute(ctx.clone(), Arc::new((**node).clone()), seen);
                match ctx.timeout(Duration::from_millis(*ms), inner).await? {
                    Some(ended) => Ok(mixed(seen, ended)),
                    None => Ok(mixed(seen, 5)),
                }
            }
            Node::Unordered { items, body } => {
                let items = (0_u64..).zip(branches(&ctx, items, seen));
                let mut items: FuturesUnordered<_> =
                    items.map(|(at, item)| item.map(move |ended| (at, ended))).collect();
                let mut seen = seen;
                while let Some((at, ended)) = items.next().await {
                    seen = mixed(mixed(seen, at), ended?);
                    seen = execute(ctx.clone(), Arc::new((**body).clone()), seen).await?;
                }
                Ok(seen)
            }
            Node::Growing { items: nodes, body } => {
                let item = |at: usize, seen: u64| {
                    let node = Arc::new(nodes[at % nodes.len()].clone());
                    execute(ctx.clone(), node, mixed(seen, at as u64)).map(move |ended| (at, ended))
                };
                let mut items: FuturesUnordered<_> = (0..nodes.len()).map(|at| item(at, seen)).collect();
                let (mut seen, mut next) = (seen, nodes.len());
                while let Some((at, ended)) = items.next().await {
                    seen = mixed(mixed(seen, at as u64), ended?);
                    if next < 2 * nodes.len() {
                        items.push(item(next, seen));
                        next += 1;
                    }
                    seen = execute(ctx.clone(), Arc::new((**body).clone()), seen).await?;
                }
                Ok(seen)
            }
            Node::Gather { at_once, enough, nodes } => {
                let branches = branches(&ctx, nodes, seen);
                let gathered = ctx.gather(branches).at_once(*at_once).enough(*enough).await;
                let ended = (0_u64..).zip(gathered.results).filter_map(|(at, ended)| Some((at, ended?)));
                ended.into_iter().try_fold(seen, |seen, (at, ended)| Ok(mixed(mixed(seen, at), ended?)))
            }
            Node::Spawn(two) => {
                let spawned = ctx.spawn(execute(ctx.scope("spawned"), Arc::new(two.0.clone()), seen));
                let beside = execute(ctx.clone(), Arc::new(two.1.clone()), seen).await?;
                Ok(mixed(beside, spawned.await?))
            }
            Node::Scope(node) => {
                let node = Arc::new((**node).clone());
                let scope = ctx.run_scope("whole", move |ctx| async move {
                    let ended = execute(ctx, node, seen).await?;
                    Ok((seen, ended))
                });
                let (given, ended) = scope.await?;
                Ok(mixed(paired(seen, given), ended))
            }
            Node::Dropped(node) => {
                let looked = execute(ctx.clone(), Arc::new((**node).clone()), seen).now_or_never();
                Ok(mixed(seen, u64::from(looked.is_some())))
            }
            Node::Kept(two) => {
                let mut kept = execute(ctx.clone(), Arc::new(two.0.clone()), seen);
                let looked = (&mut kept).now_or_never();
                let other = execute(ctx.clone(), Arc::new(two.1.clone()), mixed(seen, 6)).await?;
                let kept = match looked {
                    Some(kept) => kept?,
                    None => kept.await?,
                };
                Ok(mixed(other, kept))
            }
        }
    }
    .boxed()
}

fn branches<'a>(
    ctx: &'a WorkflowContext,
    nodes: impl IntoIterator<Item = &'a Node> + 'a,
    seen: u64,
) -> impl Iterator<Item = BoxFuture<'static, anyhow::Result<u64>>> + 'a {
    let nodes = (100_u64..).zip(nodes);
    nodes.map(move |(at, node)| execute(ctx.clone(), Arc::new(node.clone()), mixed(seen, at)))
}

/// The workflow of one program.
pub fn workflow(
    program: Arc<Node>,
) -> impl Fn(WorkflowContext, ()) -> BoxFuture<'static, anyhow::Result<String>> + Clone {
    move |ctx, ()| {
        let program = program.clone();
        async move {
            // Every fourth program begins anew once, and does it all again.
            let begins_anew = program.operations().is_multiple_of(4) && ctx.generation() == 1;
            let end = execute(ctx.clone(), program, 7).await?;
            if begins_anew { ctx.continue_as_new(&()) } else { Ok(format!("{end:x}")) }
        }
        .boxed()
    }
}
