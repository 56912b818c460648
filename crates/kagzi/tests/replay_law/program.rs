//! What random workflow programs are made of.

use std::collections::BTreeMap;

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
    /// Waits for somebody's word, for so long.
    Signal {
        ms: u64,
    },
    /// Starts another run.
    Child(Family),
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
    /// The same, and the first ones that end are each replaced by another item before the body begins.
    Growing {
        items: Vec<Node>,
        body: Box<Node>,
    },
    /// So many at once, until this many have ended.
    Gather {
        at_once: usize,
        enough: usize,
        nodes: Vec<Node>,
    },
    /// The second runs while the first was spawned.
    Spawn(Box<(Node, Node)>),
    /// Recorded as one.
    Scope(Box<Node>),
    /// Looked at once and dropped.
    Dropped(Box<Node>),
    /// Looked at once, then the second is executed, then the first is waited for.
    Kept(Box<(Node, Node)>),
}

/// What becomes of a run that a program starts.
#[derive(Debug, Clone)]
pub enum Family {
    Awaited,
    Timed {
        ms: u64,
    },
    /// Awaited after a step.
    Started,
    Detached,
    /// Several at once.
    Many {
        count: u64,
    },
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

/// A program of unordered streams whose items do several things at once, while their loop's body awaits
/// something else.
pub fn streams(seed: u64, operations: usize) -> Node {
    let mut random = Random::new(seed);
    let mut nodes = Vec::new();
    while nodes.iter().map(Node::operations).sum::<usize>() < operations {
        let items = (0..2 + random.below(3)).map(|_| at_once(&mut random)).collect();
        let body = Box::new(node(&mut random, 0));
        nodes.push(match random.below(2) {
            0 => Node::Unordered { items, body },
            _ => Node::Growing { items, body },
        });
    }
    Node::Sequence(nodes)
}

fn at_once(random: &mut Random) -> Node {
    let nodes: Vec<_> = (0..2 + random.below(2)).map(|_| node(random, 0)).collect();
    match random.below(6) {
        0 => Node::Join(nodes),
        1 => Node::Select(nodes),
        4 => Node::Scope(Box::new(Node::Join(nodes))),
        2 => Node::Timeout { ms: [1, 5, 40][random.below(3) as usize], node: Box::new(Node::Join(nodes)) },
        3 => {
            let spawned = Node::Spawn(Box::new((node(random, 0), node(random, 0))));
            Node::Timeout { ms: 40, node: Box::new(spawned) }
        }
        _ => Node::Join(vec![Node::Sequence(nodes), node(random, 0)]),
    }
}

fn node(random: &mut Random, depth: u32) -> Node {
    let name = NAMES[random.below(NAMES.len() as u64) as usize];
    if depth == 0 || random.below(3) == 0 {
        return match random.below(16) {
            0..=3 => Node::Step { name, pauses: random.below(4) },
            4 | 5 => Node::Retried { name, failures: 1 + random.below(2) as u32 },
            6 => Node::Plain { name },
            7 => Node::Failed { name },
            8 => Node::Progress,
            9 => Node::Sleep { ms: [0, 1, 5, 40][random.below(4) as usize] },
            10 => Node::Label,
            11 => Node::Value,
            14 | 15 => Node::Child(match random.below(6) {
                0 | 1 => Family::Awaited,
                2 => Family::Timed { ms: [0, 5, 3_600_000][random.below(3) as usize] },
                3 => Family::Started,
                4 => Family::Detached,
                _ => Family::Many { count: 2 + random.below(3) },
            }),
            _ => Node::Signal { ms: [0, 1, 40][random.below(3) as usize] },
        };
    }
    let several = |random: &mut Random| {
        let count = 2 + random.below(2);
        (0..count).map(|_| node(random, depth - 1)).collect::<Vec<_>>()
    };
    let two = |random: &mut Random| Box::new((node(random, depth - 1), node(random, depth - 1)));
    match random.below(13) {
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
        10 | 11 => Node::Scope(Box::new(node(random, depth - 1))),
        7 => Node::Dropped(Box::new(node(random, depth - 1))),
        9 => {
            let nodes = several(random);
            let number = |random: &mut Random| 1 + random.below(nodes.len() as u64) as usize;
            Node::Gather { at_once: number(random), enough: number(random), nodes }
        }
        8 => {
            let small = |random: &mut Random| node(random, depth.saturating_sub(2));
            Node::Growing { items: vec![small(random), small(random)], body: Box::new(small(random)) }
        }
        _ => Node::Kept(two(random)),
    }
}

impl Node {
    /// How many operations are written in it.
    pub fn operations(&self) -> usize {
        match self {
            Node::Step { .. } | Node::Retried { .. } | Node::Plain { .. } | Node::Failed { .. } => 1,
            Node::Progress | Node::Sleep { .. } | Node::Label | Node::Value | Node::Signal { .. } => 1,
            Node::Child(Family::Awaited | Family::Timed { .. } | Family::Detached) => 1,
            Node::Child(Family::Started) => 3,
            Node::Child(Family::Many { count }) => *count as usize,
            Node::Sequence(nodes) | Node::Join(nodes) | Node::Select(nodes) => {
                nodes.iter().map(Node::operations).sum()
            }
            Node::Race(two) | Node::Spawn(two) | Node::Kept(two) => two.0.operations() + two.1.operations(),
            Node::Timeout { node, .. } => 1 + node.operations(),
            Node::Unordered { items, body } => {
                items.iter().map(Node::operations).sum::<usize>() + items.len() * body.operations()
            }
            Node::Growing { items, body } => {
                2 * (items.iter().map(Node::operations).sum::<usize>() + items.len() * body.operations())
            }
            Node::Gather { enough, nodes, .. } => {
                let mut operations: Vec<_> = nodes.iter().map(Node::operations).collect();
                operations.sort_unstable();
                operations.into_iter().take(*enough).sum()
            }
            Node::Scope(node) | Node::Dropped(node) => node.operations(),
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
            Node::Signal { .. } => ("signal", vec![]),
            Node::Child(_) => ("child", vec![]),
            Node::Sequence(nodes) => ("sequence", nodes.iter().collect()),
            Node::Join(nodes) => ("join", nodes.iter().collect()),
            Node::Select(nodes) => ("select", nodes.iter().collect()),
            Node::Race(two) => ("race", vec![&two.0, &two.1]),
            Node::Timeout { node, .. } => ("timeout", vec![node]),
            Node::Unordered { items, body } => ("unordered", items.iter().chain([&**body]).collect()),
            Node::Growing { items, body } => ("growing", items.iter().chain([&**body]).collect()),
            Node::Gather { nodes, .. } => ("gather", nodes.iter().collect()),
            Node::Spawn(two) => ("spawn", vec![&two.0, &two.1]),
            Node::Scope(node) => ("scope", vec![node]),
            Node::Dropped(node) => ("dropped", vec![node]),
            Node::Kept(two) => ("kept", vec![&two.0, &two.1]),
        };
        *counts.entry(name).or_default() += 1;
        below.into_iter().for_each(|node| node.count(counts));
    }
}
