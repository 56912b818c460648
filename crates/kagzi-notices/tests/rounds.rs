//! The courier's rounds, against an outbox in memory: what is taken, tried, held back, repeated and given up.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::SeqCst},
    },
    time::Duration,
};

use async_trait::async_trait;
use kagzi_model::{Millis, Timestamp};
use kagzi_notices::{
    Channel, Contact, Courier, Due, Facts, Occasion, Outbox, OutboxError, Outcome, Parcel, QuietHours,
    Rounds, Settled, Severity, State, Texts,
    rounds::{LEASE_MS, NoticeStats, TAKEN_MAX},
};
use tokio::sync::Mutex;

/// A row as a store would keep it.
#[derive(Debug, Clone)]
struct Row {
    channel: Channel,
    due: Due,
    state: State,
    next_at: Option<Timestamp>,
    error: String,
}

#[derive(Default)]
struct MemoryOutbox {
    rows: Mutex<Vec<Row>>,
    broken: std::sync::atomic::AtomicBool,
}

#[async_trait]
impl Outbox for MemoryOutbox {
    async fn take(
        &self,
        channel: Channel,
        now: Timestamp,
        max: usize,
        lease_ms: Millis,
    ) -> Result<Vec<Due>, OutboxError> {
        let mut rows = self.rows.lock().await;
        let due = |row: &&mut Row| row.channel == channel && row.next_at.is_some_and(|at| at <= now);
        let taken = rows.iter_mut().filter(due).take(max).map(|row| {
            row.next_at = Some(now.plus_ms(lease_ms));
            row.due.clone()
        });
        Ok(taken.collect())
    }

    async fn settle(&self, due: &Due, settled: &Settled, _: Timestamp) -> Result<(), OutboxError> {
        if self.broken.load(SeqCst) {
            return Err(OutboxError("it is broken on purpose".into()));
        }
        let mut rows = self.rows.lock().await;
        let row = rows.iter_mut().find(|row| row.due.id == due.id).expect("it was taken from here");
        if row.next_at.is_none() {
            return Ok(());
        }
        row.state = settled.state();
        match settled {
            Settled::Sent => row.next_at = None,
            Settled::Retrying { next_at, error } => {
                (row.next_at, row.error) = (Some(*next_at), error.clone());
                row.due.tries += 1;
            }
            Settled::GivenUp { error } => (row.next_at, row.error) = (None, error.clone()),
            Settled::Held { until } => row.next_at = Some(*until),
        }
        Ok(())
    }
}

/// What a courier does when it is asked.
#[derive(Debug, Clone, PartialEq)]
enum Mood {
    Takes,
    Fails,
    Refuses,
    Hangs,
    PanicsOver(String),
}

struct MoodyCourier {
    mood: std::sync::Mutex<Mood>,
    carried: std::sync::Mutex<Vec<Parcel>>,
}

impl MoodyCourier {
    fn new(mood: Mood) -> Arc<MoodyCourier> {
        Arc::new(MoodyCourier { mood: std::sync::Mutex::new(mood), carried: std::sync::Mutex::default() })
    }

    fn carried(&self) -> Vec<Parcel> {
        self.carried.lock().unwrap().clone()
    }
}

#[async_trait]
impl Courier for MoodyCourier {
    async fn carry(&self, parcel: &Parcel) -> Outcome {
        let mood = self.mood.lock().unwrap().clone();
        self.carried.lock().unwrap().push(parcel.clone());
        match mood {
            Mood::Takes => Outcome::Taken,
            Mood::Fails => Outcome::temporary("451 later"),
            Mood::Refuses => Outcome::Permanent { why: "550 nobody".into() },
            Mood::Hangs => std::future::pending().await,
            Mood::PanicsOver(id) if parcel.id == id => panic!("over {id}, on purpose"),
            Mood::PanicsOver(_) => Outcome::Taken,
        }
    }
}

struct Stage {
    outbox: Arc<MemoryOutbox>,
    courier: Arc<MoodyCourier>,
    now: Arc<AtomicI64>,
    rounds: Rounds,
}

impl Stage {
    fn new(mood: Mood) -> Stage {
        let (outbox, courier) = (Arc::new(MemoryOutbox::default()), MoodyCourier::new(mood));
        let now = Arc::new(AtomicI64::new(1_777_000_000_000_000));
        let clock = now.clone();
        let rounds = Rounds {
            outbox: outbox.clone(),
            couriers: HashMap::from([(Channel::Email, courier.clone() as Arc<dyn Courier>)]),
            console_url: Some("https://kagzi.example.org".into()),
            clock: Arc::new(move || Timestamp(clock.load(SeqCst))),
            stats: Arc::new(NoticeStats::default()),
        };
        Stage { outbox, courier, now, rounds }
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(SeqCst))
    }

    fn pass(&self, time: Duration) {
        self.now.fetch_add(i64::try_from(time.as_micros()).unwrap(), SeqCst);
    }

    async fn add(&self, channel: Channel, contact: Contact, severity: Option<Severity>) -> String {
        let now = self.now();
        let id = format!("notice {}", self.outbox.rows.lock().await.len());
        let facts = Facts { title: "Refund".into(), severity, ..Facts::default() };
        let due = Due {
            id: id.clone(),
            occasion: Occasion::Asked,
            facts,
            contact,
            tries: 0,
            created_at: now,
            texts: Texts::built_in(),
            payloads_allowed: false,
        };
        let row = Row { channel, due, state: State::Pending, next_at: Some(now), error: String::new() };
        self.outbox.rows.lock().await.push(row);
        id
    }

    async fn row(&self, id: &str) -> Row {
        self.outbox.rows.lock().await.iter().find(|row| row.due.id == id).expect("it was added").clone()
    }

    fn counted(&self, outcome: &'static str) -> u64 {
        self.rounds.stats.read().get(&("email", outcome)).copied().unwrap_or(0)
    }
}

fn ada() -> Contact {
    Contact { name: "ada".into(), email: Some("ada@example.org".into()), ..Contact::default() }
}

#[tokio::test]
async fn each_message_is_carried_once_and_then_sent() {
    let stage = Stage::new(Mood::Takes);
    for _ in 0..TAKEN_MAX * 2 + 7 {
        stage.add(Channel::Email, ada(), None).await;
    }

    stage.rounds.drain(Channel::Email).await.unwrap();
    stage.pass(Duration::from_secs(3600));
    let again = stage.rounds.round(Channel::Email).await.unwrap();

    assert_eq!(again.taken, 0);
    let mut ids: Vec<_> = stage.courier.carried().iter().map(|parcel| parcel.id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), stage.courier.carried().len()), (107, 107));
    assert!(stage.outbox.rows.lock().await.iter().all(|row| row.state == State::Sent));
    assert_eq!(stage.counted("sent"), 107);
}

#[tokio::test]
async fn what_fails_is_tried_again_with_the_same_id_until_it_is_taken() {
    let stage = Stage::new(Mood::Fails);
    let id = stage.add(Channel::Email, ada(), None).await;

    stage.rounds.round(Channel::Email).await.unwrap();
    let retrying = stage.row(&id).await;
    stage.rounds.round(Channel::Email).await.unwrap();
    let tries_before_its_time = stage.courier.carried().len();
    *stage.courier.mood.lock().unwrap() = Mood::Takes;
    stage.pass(Duration::from_secs(60));
    stage.rounds.round(Channel::Email).await.unwrap();

    assert_eq!((retrying.state, retrying.error.as_str()), (State::Retrying, "451 later"));
    assert_eq!(tries_before_its_time, 1);
    assert_eq!(stage.row(&id).await.state, State::Sent);
    let carried = stage.courier.carried();
    assert_eq!((carried.len(), &carried[0]), (2, &carried[1]));
}

#[tokio::test]
async fn a_receiver_that_is_down_for_a_day_leaves_a_message_given_up() {
    let stage = Stage::new(Mood::Fails);
    let id = stage.add(Channel::Email, ada(), None).await;
    let begun = stage.now();

    while let Some(next_at) = stage.row(&id).await.next_at {
        let wait = next_at - stage.now();
        stage.pass(wait);
        stage.rounds.round(Channel::Email).await.unwrap();
    }

    assert_eq!(stage.now() - begun, Duration::from_secs(24 * 3600));
    let row = stage.row(&id).await;
    assert_eq!((row.state, row.error.as_str()), (State::GivenUp, "451 later"));
    assert_eq!(stage.counted("given_up"), 1);
    assert!(stage.counted("retrying") >= 14);
}

#[tokio::test]
async fn a_message_that_is_refused_for_good_is_given_up_at_once() {
    let stage = Stage::new(Mood::Refuses);
    let id = stage.add(Channel::Email, ada(), None).await;

    stage.rounds.round(Channel::Email).await.unwrap();

    let row = stage.row(&id).await;
    assert_eq!((row.state, row.next_at, row.error.as_str()), (State::GivenUp, None, "550 nobody"));
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_hangs_is_left_within_half_a_lease_and_all_are_written_down() {
    let stage = Stage::new(Mood::Hangs);
    for _ in 0..TAKEN_MAX {
        stage.add(Channel::Email, ada(), None).await;
    }
    let begun = tokio::time::Instant::now();

    stage.rounds.round(Channel::Email).await.unwrap();

    let half_a_lease = Duration::from_millis(u64::try_from(LEASE_MS).unwrap() / 2);
    assert!(begun.elapsed() <= half_a_lease + Duration::from_secs(1), "{:?}", begun.elapsed());
    let rows = stage.outbox.rows.lock().await;
    assert!(rows.iter().all(|row| row.state == State::Retrying && row.error == "no answer within 30 s"));
}

#[tokio::test]
async fn a_courier_that_panics_over_one_message_carries_the_others() {
    let stage = Stage::new(Mood::Takes);
    let bad = stage.add(Channel::Email, ada(), None).await;
    let good = stage.add(Channel::Email, ada(), None).await;
    *stage.courier.mood.lock().unwrap() = Mood::PanicsOver(bad.clone());

    let round = stage.rounds.round(Channel::Email).await.unwrap();
    let left = stage.row(&bad).await;
    *stage.courier.mood.lock().unwrap() = Mood::Takes;
    stage.pass(Duration::from_secs(61));
    stage.rounds.round(Channel::Email).await.unwrap();

    assert_eq!((round.taken, round.sent), (2, 1));
    assert_eq!(stage.row(&good).await.state, State::Sent);
    assert_eq!(left.state, State::Pending);
    assert_eq!(stage.row(&bad).await.state, State::Sent);
}

#[tokio::test]
async fn a_server_that_dies_after_sending_leaves_a_message_that_is_sent_again_by_its_id() {
    let stage = Stage::new(Mood::Takes);
    let id = stage.add(Channel::Email, ada(), None).await;
    stage.outbox.broken.store(true, SeqCst);

    let broken = stage.rounds.round(Channel::Email).await;
    stage.outbox.broken.store(false, SeqCst);
    let within_the_lease = stage.rounds.round(Channel::Email).await.unwrap();
    stage.pass(Duration::from_millis(u64::try_from(LEASE_MS).unwrap()));
    stage.rounds.round(Channel::Email).await.unwrap();

    assert!(broken.is_err());
    assert_eq!(within_the_lease.taken, 0);
    let carried = stage.courier.carried();
    assert_eq!(carried.iter().map(|parcel| parcel.id.clone()).collect::<Vec<_>>(), [id.clone(), id.clone()]);
    assert_eq!(stage.row(&id).await.state, State::Sent);
}

#[tokio::test]
async fn quiet_hours_hold_a_message_and_its_retries_back_but_no_critical_incident() {
    let stage = Stage::new(Mood::Fails);
    // 03:06:40 UTC.
    let quiet = Contact { quiet: Some(QuietHours::new("03:00", "05:00").unwrap()), ..ada() };
    let held = stage.add(Channel::Email, quiet.clone(), None).await;
    let critical = stage.add(Channel::Email, quiet.clone(), Some(Severity::Critical)).await;

    stage.rounds.round(Channel::Email).await.unwrap();

    let carried: Vec<_> = stage.courier.carried().iter().map(|parcel| parcel.id.clone()).collect();
    assert_eq!(carried, [critical]);
    let row = stage.row(&held).await;
    assert_eq!((row.state, row.due.tries), (State::Pending, 0));
    let five = Timestamp(1_777_006_800_000_000);
    assert_eq!(row.next_at, Some(five));
    assert_eq!(stage.counted("held"), 1);

    // Its day begins when it may be tried, and a retry waits for the next morning too: it is the last one.
    stage.pass(five - stage.now());
    stage.rounds.round(Channel::Email).await.unwrap();
    assert_eq!(stage.row(&held).await.state, State::Retrying);
    stage.pass(Duration::from_secs(22 * 3600 + 60));
    stage.rounds.round(Channel::Email).await.unwrap();
    assert_eq!(stage.row(&held).await.next_at, Some(five.plus_ms(24 * 3_600_000)));
    stage.pass(Duration::from_secs(2 * 3600));
    stage.rounds.round(Channel::Email).await.unwrap();
    assert_eq!(stage.row(&held).await.state, State::GivenUp);
}

#[tokio::test]
async fn a_server_leaves_channels_without_a_courier_to_others() {
    let stage = Stage::new(Mood::Takes);
    let id = stage.add(Channel::Webhook, ada(), None).await;

    stage.rounds.drain(Channel::Webhook).await.unwrap();

    let row = stage.row(&id).await;
    assert_eq!((row.state, row.next_at), (State::Pending, Some(stage.now())));
    assert_eq!(stage.courier.carried().len(), 0);
}
