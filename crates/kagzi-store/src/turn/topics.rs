//! The part of a turn that published events have: who publishes one, who opens a wait and finds one that is
//! kept, and how the others hear of it.
//!
//! An event and a wait for it may come in the same instant, through two servers. Both lock the topic until
//! their commit: a wait that was open before is found when the event is delivered, and one that opens
//! afterwards finds the event. Delivery is a sweep, in bounded batches: a publisher touches no run.

use kagzi_model::{
    Act, Command, Delivery, Name, PublishEvent, PublishRejection, PublishReply, PublishedEvent, RunId,
    RunKey, Topic, TopicKey, Trigger, act, failed_event, failed_topic, is_event_channel,
    limits::{EVENTS_KEPT_BYTES_MAX, EVENTS_KEPT_MAX, TRIGGERS_MAX},
};

use super::Turn;
use crate::{
    AsideRow, Backend, LaneStats, StoreError, Swept,
    hash::{HashMap, HashSet},
    lane::Message,
};

/// Runs that one turn tells of events. Everybody waits for it.
const DELIVER_LEN_MAX: usize = 200;
/// Topics whose events one turn delivers.
const TOPICS_LEN_MAX: usize = 20;
/// Expired events that one turn deletes.
const FORGET_LEN_MAX: usize = 500;

/// What a turn knows of topics.
#[derive(Default)]
pub struct TopicTurn {
    /// Topics that this turn has locked.
    locked: HashSet<TopicKey>,
    /// Waits that found nothing kept when they were opened in this turn, or took what they found.
    looked: HashSet<(RunId, Name)>,
    /// Triggers by namespace, as far as they were asked for.
    triggers: HashMap<Name, Vec<KnownTrigger>>,
    /// Ends that were looked at.
    ends_seen: usize,
    /// Something is to be delivered after the commit.
    pub due: bool,
}

impl TopicTurn {
    /// Nouns have changed, triggers perhaps among them.
    pub fn forget_triggers(&mut self, namespace: &Name) {
        self.triggers.remove(namespace);
    }
}

#[derive(Clone)]
struct KnownTrigger {
    id: Name,
    created_at: kagzi_model::Timestamp,
    trigger: Trigger,
}

impl<B: Backend> Turn<'_, B> {
    /// Locks the topics that a batch speaks of, in one go and in their order: two servers that need the same
    /// ones wait for each other, and never crosswise.
    pub(super) async fn lock_named_topics(&mut self, batch: &[Message]) -> Result<(), StoreError> {
        let mut keys = Vec::new();
        for message in batch {
            if let Message::Publish(ask) = message {
                keys.push(ask.request.key.clone());
            }
            keys.extend(message.commands().iter().filter_map(awaited_topic));
        }
        self.lock_topics(keys).await
    }

    async fn lock_topics(&mut self, mut keys: Vec<TopicKey>) -> Result<(), StoreError> {
        if !self.shared {
            return Ok(());
        }
        keys.retain(|key| !self.topics.locked.contains(key));
        if keys.is_empty() {
            return Ok(());
        }
        keys.sort_unstable();
        keys.dedup();
        self.backend.lock_topics(&keys).await?;
        self.topics.locked.extend(keys);
        Ok(())
    }

    /// Publishes an event. Nobody hears of it in this turn, except who opens a wait for it.
    pub(super) async fn publish(
        &mut self,
        ask: &PublishEvent,
    ) -> Result<Result<PublishReply, PublishRejection>, StoreError> {
        self.lock_topics(vec![ask.key.clone()]).await?;
        // The repeat of what was done before is answered all the same.
        if let Some(at) = self.backend.published_at(&ask.key, &ask.id).await? {
            LaneStats::add(&self.stats.events_repeated, 1);
            return Ok(Ok(PublishReply { already: true, at }));
        }
        if let Err(refused) = self.admit_to(&ask.key.namespace).await? {
            LaneStats::add(&self.stats.events_refused, 1);
            return Ok(Err(PublishRejection::NotAdmitted(refused)));
        }
        if let Err(full) = self.has_room(ask).await? {
            LaneStats::add(&self.stats.events_refused, 1);
            return Ok(Err(full));
        }
        let at = self.keep(ask).await?;
        Ok(Ok(PublishReply { already: false, at }))
    }

    async fn keep(&mut self, ask: &PublishEvent) -> Result<kagzi_model::Timestamp, StoreError> {
        let newest = self.backend.newest_event(&ask.key).await?;
        let event = ask.row(self.now, newest);
        self.backend.keep_event(&event).await?;
        self.wrote = true;
        self.topics.due = true;
        LaneStats::add(&self.stats.events_published, 1);
        Ok(event.at)
    }

    /// Whether the namespace may keep one more. It is counted only now and then: what was left at the last
    /// count is used up first.
    async fn has_room(&mut self, ask: &PublishEvent) -> Result<Result<(), PublishRejection>, StoreError> {
        let (namespace, bytes) = (&ask.key.namespace, ask.payload.data.len() as u64);
        if self.controls.topics.take_room(namespace, bytes) {
            return Ok(Ok(()));
        }
        let kept = self.backend.count_events(namespace).await?;
        self.controls.topics.counted(namespace, kept, self.shared);
        if self.controls.topics.take_room(namespace, bytes) {
            return Ok(Ok(()));
        }
        let (max, bytes_max) = (EVENTS_KEPT_MAX, EVENTS_KEPT_BYTES_MAX);
        let (namespace, count, bytes) = (namespace.clone(), kept.events, kept.bytes);
        Ok(Err(PublishRejection::TooManyEvents { namespace, count, bytes, max, bytes_max }))
    }

    /// A worker asks for an event of a topic that its run did not wait for until now: what is kept there
    /// reaches the run before the question is decided, so that it is answered with it.
    pub(super) async fn hear_before(&mut self, command: &Command) -> Result<(), StoreError> {
        let Act::Report { epoch, report } = &command.act else { return Ok(()) };
        let Some(wait) = report.awaits() else { return Ok(()) };
        let Some(key) = awaited_topic(command) else { return Ok(()) };
        let Some(entry) = self.fold.entry(command.run.id) else { return Ok(()) };
        let seen = &entry.aggregate;
        let is_held = seen.run.epoch == *epoch && seen.run.lease().is_some();
        let is_there = seen.mail.as_deref().is_some_and(|mail| mail.next(&wait.channel).is_some());
        let is_over = seen.steps.get(&wait.step.path).is_some_and(|step| !step.unfinished());
        if !is_held || is_there || is_over || seen.waits_on(&wait.channel).is_some() {
            return Ok(());
        }
        self.hear_kept(&key, &command.run, true).await
    }

    /// Waits that were opened by anything else, a person's retry for one, find what is kept too.
    pub(super) async fn hear_kept_by_opened(&mut self) -> Result<(), StoreError> {
        let mut opened = self.fold.opened_waits();
        opened.retain(|row| !self.topics.looked.contains(&(row.run, row.key.topic.channel())));
        if opened.is_empty() {
            return Ok(());
        }
        self.lock_topics(opened.iter().map(|row| row.key.clone()).collect()).await?;
        for row in opened {
            let run = RunKey { id: row.run, namespace: row.key.namespace.clone() };
            self.hear_kept(&row.key, &run, false).await?;
        }
        Ok(())
    }

    async fn hear_kept(&mut self, key: &TopicKey, run: &RunKey, opening: bool) -> Result<(), StoreError> {
        if key.topic.is_engines() {
            self.controls.topics.somebody_listens();
        }
        self.lock_topics(vec![key.clone()]).await?;
        let channel = key.topic.channel();
        if let Some(entry) = self.fold.entry(run.id) {
            let behind = entry.aggregate.heard_until(&channel);
            if let Some(event) = self.backend.kept_event(key, behind, self.now).await? {
                self.hear(run.clone(), &event, opening).await?;
            }
        }
        self.topics.looked.insert((run.id, channel));
        Ok(())
    }

    /// Tells a run of an event. One that cannot be told, or need not be, is left as it is.
    async fn hear(&mut self, run: RunKey, event: &PublishedEvent, opening: bool) -> Result<(), StoreError> {
        let told = act::HearEvent {
            topic: event.key.topic.clone(),
            id: event.id.clone(),
            published: event.at,
            payload: event.payload.clone(),
            opening,
        };
        let outcome = self.decide(&run.duty(told)).await?;
        if let Ok(kagzi_model::Reply::Done(done)) = &outcome
            && *done == kagzi_model::Done::NOW
        {
            LaneStats::add(&self.stats.events_delivered, 1);
        }
        self.follow_up().await
    }

    /// Tells those who waited for published events when they were published, a few at a time: topic after
    /// topic, and within each in the order of its events.
    pub(super) async fn deliver_events(&mut self) -> Result<Swept, StoreError> {
        // Waits of this batch must be found.
        self.flush_before_search().await?;
        let topics_max = if self.careful { 1 } else { TOPICS_LEN_MAX };
        let topics = self.backend.undelivered(topics_max).await?;
        let (mut left, mut count, mut more) = (DELIVER_LEN_MAX, 0, topics.len() == topics_max);
        let mut served = HashSet::default();
        for key in topics {
            if left == 0 || self.is_late() {
                more = true;
                break;
            }
            if !served.insert(key.clone()) {
                // Its next event follows when this one has reached everybody.
                more = true;
                continue;
            }
            let Some(event) = self.backend.first_undelivered(&key).await? else { continue };
            let (delivered, is_all) = self.deliver(&event, left).await?;
            left -= delivered;
            count += delivered + 1;
            more |= !is_all;
        }
        let forgotten = self.backend.forget_events(self.now, FORGET_LEN_MAX).await?;
        self.wrote |= count + forgotten > 0;
        LaneStats::add(&self.stats.events_expired, forgotten as u64);
        Ok(Swept { count: count + forgotten, more: more || forgotten == FORGET_LEN_MAX, next_at: None })
    }

    /// Delivers an event to so many runs, and says to how many, and whether these were all.
    async fn deliver(&mut self, event: &PublishedEvent, limit: usize) -> Result<(usize, bool), StoreError> {
        let Delivery::Due { behind, .. } = event.delivery else { return Ok((0, true)) };
        if behind.is_none() {
            self.start_triggered(event).await?;
        }
        let limit = if self.careful { 1 } else { limit };
        let runs = self.backend.subscribers(&event.key, behind, limit).await?;
        let namespace = &event.key.namespace;
        let keys: Vec<RunKey> = runs.iter().map(|id| RunKey::new(namespace.clone(), *id)).collect();
        if self.careful {
            self.suspect = keys.first().cloned().map(AsideRow::Run);
        }
        self.load_found(&keys).await?;
        for run in keys {
            self.hear(run, event, false).await?;
        }
        let is_all = runs.len() < limit;
        let delivery = match runs.last() {
            Some(last) if !is_all => Delivery::Due { at: self.now, behind: Some(*last) },
            Some(_) | None => Delivery::Done,
        };
        self.backend.delivered(&event.key, &event.id, delivery).await?;
        Ok((runs.len(), is_all))
    }

    /// Starts the runs of the triggers that want this event and were there when it was published.
    async fn start_triggered(&mut self, event: &PublishedEvent) -> Result<(), StoreError> {
        let triggers = self.triggers(&event.key.namespace).await?;
        let wanted = triggers.into_iter().filter(|known| known.trigger.wants(&event.key.topic));
        for KnownTrigger { id, trigger, .. } in wanted.filter(|known| known.created_at <= event.at) {
            self.fold.follow.push(trigger.start(&id, event));
            LaneStats::add(&self.stats.trigger_starts, 1);
        }
        self.follow_up().await
    }

    async fn triggers(&mut self, namespace: &Name) -> Result<Vec<KnownTrigger>, StoreError> {
        if let Some(known) = self.topics.triggers.get(namespace) {
            return Ok(known.clone());
        }
        if self.nouns.has_pending() {
            self.flush_before_search().await?;
        }
        let rows = self.backend.nouns_of(namespace, "trigger", TRIGGERS_MAX).await?;
        let known: Vec<KnownTrigger> = rows
            .into_iter()
            .filter_map(|row| match row.read::<Trigger>() {
                Ok(trigger) => Some(KnownTrigger { id: row.key.id, created_at: row.created_at, trigger }),
                Err(unreadable) => {
                    tracing::error!(%namespace, %unreadable, "a trigger is left alone");
                    None
                }
            })
            .collect();
        self.topics.triggers.insert(namespace.clone(), known.clone());
        Ok(known)
    }

    /// Runs have ended badly since this was looked at last.
    pub(super) fn has_failures(&self) -> bool {
        let ended = &self.fold.touched.finished[self.topics.ends_seen..];
        ended.iter().any(|ended| ended.run.failure().is_some())
    }

    /// Publishes the bad ends of runs, where anybody wants to hear of them.
    pub(super) async fn publish_failures(&mut self) -> Result<(), StoreError> {
        let ended = &self.fold.touched.finished[self.topics.ends_seen..];
        let failed: Vec<kagzi_model::Run> =
            ended.iter().map(|ended| &ended.run).filter(|run| run.failure().is_some()).cloned().collect();
        self.topics.ends_seen = self.fold.touched.finished.len();
        // Once per topic, however many runs have failed.
        let mut heard: HashMap<TopicKey, bool> = HashMap::default();
        for run in failed {
            let key = failed_topic(&run);
            let is_heard = match heard.get(&key) {
                Some(known) => *known,
                None => self.is_heard(&key).await?,
            };
            heard.insert(key, is_heard);
            if !is_heard {
                continue;
            }
            let last_seq = self.fold.entry(run.id).map_or(0, |entry| entry.aggregate.last_seq);
            let Some(event) = failed_event(&run, last_seq) else { continue };
            if self.backend.published_at(&event.key, &event.id).await?.is_some() {
                continue;
            }
            if let Err(full) = self.has_room(&event).await? {
                LaneStats::add(&self.stats.events_refused, 1);
                tracing::warn!(run = %run.id, %full, "the failure of a run was not published");
                continue;
            }
            self.keep(&event).await?;
        }
        Ok(())
    }

    /// Whether a run waits for events of this topic, or a trigger wants them. Alone on a database that is
    /// remembered until it changes.
    async fn is_heard(&mut self, key: &TopicKey) -> Result<bool, StoreError> {
        if !self.shared && self.controls.topics.is_unheard(key) {
            return Ok(false);
        }
        self.lock_topics(vec![key.clone()]).await?;
        if self.fold.has_opened_waits() {
            self.flush_before_search().await?;
        }
        let is_wanted = |known: &KnownTrigger| known.trigger.wants(&key.topic);
        let is_heard = !self.backend.subscribers(key, None, 1).await?.is_empty()
            || self.triggers(&key.namespace).await?.iter().any(is_wanted);
        if !is_heard && !self.shared {
            self.controls.topics.know_unheard(key.clone());
        }
        Ok(is_heard)
    }
}

/// The topic that a worker waits for, if it is one that it waits for.
fn awaited_topic(command: &Command) -> Option<TopicKey> {
    let Act::Report { report, .. } = &command.act else { return None };
    let wait = report.awaits()?;
    if !is_event_channel(&wait.channel) {
        return None;
    }
    let topic = Topic::of_channel(&wait.channel)?;
    Some(TopicKey { namespace: command.run.namespace.clone(), topic })
}
