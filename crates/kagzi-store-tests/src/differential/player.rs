//! Plays the moves into both stores and compares what comes back.

use std::{collections::BTreeMap, fmt::Write, sync::Arc, time::Duration};

use kagzi_model::{
    Act, Author, Command, NounRejection, NounRow, NounRule, Order, Report, RunId, RunKey, Timestamp, Worker,
    act, intervention::InterventionRequest,
};
use kagzi_store::{
    Assignment, ChangeNoun, Clock, Demand, Direction, Finished, InterventionFilter, LaneStats, LostLease,
    ManualClock, Observer, PageRequest, Store, SweepKind, Swept,
};
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use uuid::Uuid;

use super::{
    compare,
    moves::{Kind, Move},
    world::{LEASE_MS, World},
};
use crate::{
    StoreFactory,
    stage::{in_time, unversioned},
};

/// How a game went: a game in which everything is refused proves nothing.
#[derive(Debug, Default)]
pub struct Tally {
    pub accepted: usize,
    pub refused: usize,
    pub assigned: usize,
    pub finished: usize,
    /// How often each kind of move was made, and each act of a command.
    pub moves: BTreeMap<Kind, usize>,
    pub acts: BTreeMap<&'static str, usize>,
    pub sweeps: BTreeMap<&'static str, usize>,
}

impl Tally {
    /// Adds another game's.
    pub fn add(&mut self, other: &Tally) {
        other.moves.iter().for_each(|(kind, count)| *self.moves.entry(*kind).or_default() += count);
        other.acts.iter().for_each(|(act, count)| *self.acts.entry(act).or_default() += count);
        other.sweeps.iter().for_each(|(kind, count)| *self.sweeps.entry(kind).or_default() += count);
    }

    /// Fails unless every kind of move and every act of a worker or a person was played: what is never drawn
    /// is never compared.
    pub fn covers_everything(&self) {
        let missing: Vec<&Kind> = Kind::ALL.iter().filter(|kind| !self.moves.contains_key(kind)).collect();
        assert!(missing.is_empty(), "no game had these moves: {missing:?}");
        let acts = Report::NAMES.iter().chain(Order::NAMES);
        let missing: Vec<&&str> = acts.filter(|act| !self.acts.contains_key(**act)).collect();
        assert!(missing.is_empty(), "no game had these acts: {missing:?}");
        let unplayed = |kind: &&&str| !self.sweeps.contains_key(**kind);
        let missing: Vec<_> = SweepKind::NAMES.iter().filter(unplayed).collect();
        assert!(missing.is_empty(), "no game had these sweeps: {missing:?}");
    }
}

/// The act that a worker or a person asked for.
fn act_of(command: &Command) -> Option<&'static str> {
    match &command.act {
        Act::Report { report, .. } => Some(report.name()),
        Act::Order { order, .. } => Some(order.name()),
        Act::Start(_) | Act::Duty(_) => None,
    }
}

/// Plays `moves` moves of `seed` into both stores. Panics at the first difference, with the seed.
pub async fn play(seed: u64, moves: usize, left: impl StoreFactory, right: impl StoreFactory) -> Tally {
    // Random ids come from the seed; only the namespace is fresh, so that a shared database may be used.
    let namespace = format!("game-{}", Uuid::new_v4().simple());
    let mut world = World::new(seed, &namespace);
    let mut left = Side::open(left).await;
    let mut right = Side::open(right).await;
    let mut tally = Tally::default();
    for number in 0..moves {
        let a_move = world.draw(left.clock.now());
        *tally.moves.entry(a_move.kind()).or_default() += 1;
        if let Move::Apply(commands) = &a_move {
            commands.iter().filter_map(act_of).for_each(|act| *tally.acts.entry(act).or_default() += 1);
        }
        if let Move::Sweep(kind) = &a_move {
            *tally.sweeps.entry(kind.name()).or_default() += 1;
        }
        let (here, there) = (left.play(&a_move).await, right.play(&a_move).await);
        let shown = || format!("seed {seed}, move {number}: {a_move:?}");

        assert_eq!(here.answer, there.answer, "different answers; {}", shown());
        assert_eq!(here.told, there.told, "different news; {}", shown());
        tally.accepted += here.answer.matches("Ok(").count();
        tally.refused += here.answer.matches("Err(").count();
        tally.finished += here.told.iter().filter(|news| news.starts_with("finished")).count();
        let given = |given: &[Assignment]| given.iter().map(describe).collect::<Vec<_>>();
        assert_eq!(given(&here.given), given(&there.given), "different claims; {}", shown());
        for (here, there) in here.given.iter().zip(&there.given) {
            // A store hands out the input when it has it at hand; what it hands out is the same.
            if let (Some(here), Some(there)) = (&here.input, &there.input) {
                assert_eq!(here, there, "different inputs; {}", shown());
            }
        }
        here.given.iter().for_each(|assignment| world.given(assignment));
        tally.assigned += here.given.len();
        if number % 100 == 99 || number + 1 == moves {
            compare::stores(&left.store, &right.store, &world, &shown()).await;
        }
    }
    left.store.close().await;
    right.store.close().await;
    tally
}

/// One store with its own clock; both clocks always show the same.
struct Side {
    store: Arc<Store>,
    clock: ManualClock,
    told: Arc<Told>,
    demands: BTreeMap<u64, UnboundedReceiver<Assignment>>,
    _factory: Arc<dyn StoreFactory>,
}

/// What a move came to.
struct Played {
    answer: String,
    given: Vec<Assignment>,
    told: Vec<String>,
}

/// News as text, sorted out by the reader.
#[derive(Default)]
struct Told {
    news: Mutex<Vec<String>>,
}

impl Observer for Told {
    fn finished(&self, finished: Finished) {
        let output = finished.output.map(|output| output.data);
        let run = unversioned(finished.run);
        self.news.lock().push(format!("finished {run:?} {output:?}"));
    }

    fn lease_lost(&self, lost: LostLease) {
        self.news.lock().push(format!("lost {lost:?}"));
    }
}

impl Side {
    async fn open(factory: impl StoreFactory) -> Self {
        let factory: Arc<dyn StoreFactory> = Arc::new(factory);
        let clock = ManualClock::new(Timestamp::from_millis(1_900_000_000_000));
        let told = Arc::new(Told::default());
        let store = factory.open(Arc::new(clock.clone()), told.clone()).await;
        Side { store, clock, told, demands: BTreeMap::new(), _factory: factory }
    }

    async fn play(&mut self, a_move: &Move) -> Played {
        let answer = in_time("an answer", self.carry_out(a_move)).await;
        self.settle().await;
        let mut given = Vec::new();
        for deliveries in self.demands.values_mut() {
            while let Ok(assignment) = deliveries.try_recv() {
                given.push(assignment);
            }
        }
        Played { answer, given, told: std::mem::take(&mut *self.told.news.lock()) }
    }

    async fn carry_out(&mut self, a_move: &Move) -> String {
        let mut answer = String::new();
        let wrote = match a_move.clone() {
            Move::Apply(commands) => write!(answer, "{:?}", self.store.apply(commands).await.unwrap()),
            Move::Register(register) => {
                write!(answer, "{:?}", self.store.ask(register).await.unwrap().map(unnumbered))
            }
            Move::Beat(beat) => write!(answer, "{:?}", self.store.ask(beat).await.unwrap()),
            Move::Drain(drain) => {
                write!(answer, "{:?}", self.store.ask(drain).await.unwrap().map(unnumbered))
            }
            Move::CutOff(cut_off) => write!(answer, "{:?}", self.store.ask(cut_off).await.unwrap()),
            Move::Deregister(leave) => write!(answer, "{:?}", self.store.ask(leave).await.unwrap()),
            Move::Offline(offline) => write!(answer, "{:?}", self.store.ask(offline).await.unwrap()),
            Move::Schedule(request) => {
                write!(answer, "{:?}", self.store.schedule(request).await.unwrap())
            }
            Move::Namespace(change) => write!(answer, "{:?}", self.store.ask(*change).await.unwrap()),
            Move::Gate(change) => write!(answer, "{:?}", self.store.ask(change).await.unwrap()),
            Move::Publish(event) => write!(answer, "{:?}", self.store.ask(event).await.unwrap()),
            Move::CreateTrigger(create) => write!(answer, "{:?}", self.change(create).await),
            Move::DeleteTrigger(delete) => write!(answer, "{:?}", self.change(delete).await),
            Move::StandBy { demand: id, worker, types, once } => {
                let (deliver, deliveries) = unbounded_channel();
                let demand = Demand { id, worker, types, once, lease_ms: LEASE_MS, deliver };
                self.demands.insert(id, deliveries);
                write!(answer, "{:?}", self.store.stand_by(demand).await.unwrap())
            }
            Move::Withdraw { demand } => {
                write!(answer, "{:?}", self.store.withdraw(demand).await)
            }
            Move::HangUp { demand } => {
                self.demands.remove(&demand);
                Ok(())
            }
            Move::Question { namespace, place, command } => {
                let page = PageRequest { from: None, direction: Direction::Next, limit: 50 };
                let all = InterventionFilter::default();
                let found = self.store.interventions(&namespace, &all, &page).await.unwrap().rows;
                match found.get(place % found.len().max(1)) {
                    None => Ok(()),
                    Some(row) => {
                        let (key, run) = (row.key.clone(), row.run);
                        let request = InterventionRequest { key, run, command: *command };
                        write!(answer, "{:?}", self.store.ask(request).await.unwrap())
                    }
                }
            }
            Move::Sweep(kind) => {
                // A slow machine sweeps in more rounds: what they come to is the same.
                let mut all = self.store.sweep(kind).await.unwrap();
                for _ in 0..100 {
                    if !all.more {
                        break;
                    }
                    let more = self.store.sweep(kind).await.unwrap();
                    all = Swept { count: all.count + more.count, ..more };
                }
                write!(answer, "{all:?}")
            }
            Move::Pass { micros } => {
                self.clock.advance(Duration::from_micros(micros));
                Ok(())
            }
        };
        wrote.expect("a string takes any text");
        answer
    }

    async fn change(&self, rule: impl NounRule + 'static) -> Result<NounRow, NounRejection> {
        self.store.ask(ChangeNoun(Arc::new(rule))).await.unwrap()
    }

    /// Lets the store do what it would do by itself now. A run that was given to a worker who hung up comes
    /// back in the next turn, and may go to the next who hung up: it is quiet when two turns lease nothing.
    async fn settle(&self) {
        let stats = self.store.stats();
        loop {
            let leases = LaneStats::get(&stats.leases);
            for _ in 0..2 {
                let nothing = RunKey::new("", RunId(Uuid::nil()))
                    .order(Author::new("tester", ""), act::Resume { request: None });
                in_time("a turn", self.store.apply(vec![nothing])).await.expect("the store works");
            }
            if LaneStats::get(&stats.leases) == leases {
                return;
            }
        }
    }
}

/// How often a worker's row was written is a store's own affair.
fn unnumbered(worker: Worker) -> Worker {
    Worker { row_version: 0, ..worker }
}

fn describe(assignment: &Assignment) -> String {
    let Assignment { run, input: _, fresh } = assignment;
    format!("{:?} {fresh}", unversioned(run.clone()))
}
