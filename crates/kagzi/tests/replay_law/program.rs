//! Random workflow programs. Each call of a step hands it a fingerprint of everything that its branch has
//! seen so far, the step returns it, and the program compares: a replay that took another path, or that
//! paired a result with another call, is found at the next step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use kagzi::workflow::{NonRetryableError, Raced};
use kagzi::{RetryPolicy, WorkflowContext};

/// A small generator of random numbers, always the same for a seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// What a program is made of.
#[derive(Debug, Clone)]
pub enum Node {
    /// A step whose code gives way so often before it returns.
    Step {
        name: &'static str,
        pauses: u64,
    },
    /// A step that fails so often before it returns.
    Retried {
        name: &'static str,
        failures: u32,
    },
    /// A plain future, which can be executed once per replay.
    Plain {
        name: &'static str,
    },
    /// A step that fails for good; the program goes on.
    Failed {
        name: &'static str,
    },
    /// A step that says how far it is.
    Progress,
    Sleep {
        ms: u64,
    },
    Label,
    Value,
    Sequence(Vec<Node>),
    Join(Vec<Node>),
    Select(Vec<Node>),
    Race(Box<(Node, Node)>),
    Timeout {
        ms: u64,
        node: Box<Node>,
    },
    /// The items end in any order, and each is followed by the body.
    Unordered {
        items: Vec<Node>,
        body: Box<Node>,
    },
    /// The second runs while the first was spawned.
    Spawn(Box<(Node, Node)>),
    /// Looked at once and dropped.
    Dropped(Box<Node>),
    /// Looked at once, then the second is executed, then the first is waited for.
    Kept(Box<(Node, Node)>),
}

const NAMES: [&str; 3] = ["one", "two", "three"];

/// A program with at least `operations` of them.
pub fn program(seed: u64, operations: usize) -> Node {
    let mut random = Random::new(seed);
    let mut nodes = Vec::new();
    while nodes.iter().map(Node::operations).sum::<usize>() < operations {
        nodes.push(node(&mut random, 3));
    }
    // Whatever was dropped before must not wake this one: a run that is woken for nothing again and again is
    // paused.
    nodes.push(Node::Sleep { ms: 3_600_000 });
    Node::Sequence(nodes)
}

fn node(random: &mut Random, depth: u32) -> Node {
    let name = NAMES[random.below(NAMES.len() as u64) as usize];
    if depth == 0 || random.below(3) == 0 {
        return match random.below(12) {
            0..=3 => Node::Step { name, pauses: random.below(4) },
            4 | 5 => Node::Retried { name, failures: 1 + random.below(2) as u32 },
            6 => Node::Plain { name },
            7 => Node::Failed { name },
            8 => Node::Progress,
            9 => Node::Sleep { ms: [0, 1, 5, 40][random.below(4) as usize] },
            10 => Node::Label,
            _ => Node::Value,
        };
    }
    let several = |random: &mut Random| {
        let count = 2 + random.below(2);
        (0..count).map(|_| node(random, depth - 1)).collect::<Vec<_>>()
    };
    let two = |random: &mut Random| Box::new((node(random, depth - 1), node(random, depth - 1)));
    match random.below(9) {
        0 => Node::Sequence(several(random)),
        1 => Node::Join(several(random)),
        2 => Node::Select(several(random)),
        3 => Node::Race(two(random)),
        4 => {
            let ms = [1, 5, 40][random.below(3) as usize];
            Node::Timeout { ms, node: Box::new(node(random, depth - 1)) }
        }
        5 => Node::Unordered { items: several(random), body: Box::new(node(random, depth - 1)) },
        6 => Node::Spawn(two(random)),
        7 => Node::Dropped(Box::new(node(random, depth - 1))),
        _ => Node::Kept(two(random)),
    }
}

impl Node {
    /// How many operations are written in it.
    pub fn operations(&self) -> usize {
        match self {
            Node::Step { .. } | Node::Retried { .. } | Node::Plain { .. } | Node::Failed { .. } => 1,
            Node::Progress | Node::Sleep { .. } | Node::Label | Node::Value => 1,
            Node::Sequence(nodes) | Node::Join(nodes) | Node::Select(nodes) => {
                nodes.iter().map(Node::operations).sum()
            }
            Node::Race(two) | Node::Spawn(two) | Node::Kept(two) => two.0.operations() + two.1.operations(),
            Node::Timeout { node, .. } => 1 + node.operations(),
            Node::Unordered { items, body } => {
                items.iter().map(Node::operations).sum::<usize>() + items.len() * body.operations()
            }
            Node::Dropped(node) => node.operations(),
        }
    }

    /// Counts every construct.
    pub fn count(&self, counts: &mut BTreeMap<&'static str, u32>) {
        let (name, below): (_, Vec<&Node>) = match self {
            Node::Step { .. } => ("step", vec![]),
            Node::Retried { .. } => ("retried step", vec![]),
            Node::Plain { .. } => ("plain future", vec![]),
            Node::Failed { .. } => ("failed step", vec![]),
            Node::Progress => ("progress", vec![]),
            Node::Sleep { .. } => ("sleep", vec![]),
            Node::Label => ("label", vec![]),
            Node::Value => ("value", vec![]),
            Node::Sequence(nodes) => ("sequence", nodes.iter().collect()),
            Node::Join(nodes) => ("join", nodes.iter().collect()),
            Node::Select(nodes) => ("select", nodes.iter().collect()),
            Node::Race(two) => ("race", vec![&two.0, &two.1]),
            Node::Timeout { node, .. } => ("timeout", vec![node]),
            Node::Unordered { items, body } => ("unordered", items.iter().chain([&**body]).collect()),
            Node::Spawn(two) => ("spawn", vec![&two.0, &two.1]),
            Node::Dropped(node) => ("dropped", vec![node]),
            Node::Kept(two) => ("kept", vec![&two.0, &two.1]),
        };
        *counts.entry(name).or_default() += 1;
        below.into_iter().for_each(|node| node.count(counts));
    }
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
            Node::Spawn(two) => {
                let spawned = ctx.spawn(execute(ctx.scope("spawned"), Arc::new(two.0.clone()), seen));
                let beside = execute(ctx.clone(), Arc::new(two.1.clone()), seen).await?;
                Ok(mixed(beside, spawned.await?))
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
