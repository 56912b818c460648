//! The part of a turn that questions to people have: what runs ask and drop, what people answer, what time
//! does. Row, run and notices are written together.

use kagzi_model::{
    Act, Command, Name, RunId, RunKey, USER_LABEL, act,
    intervention::{
        Ask, Channel, Contact, Intervention, InterventionChange, InterventionCommand, InterventionKey,
        InterventionRejection, InterventionRequest, NewIntervention, Notice, Source, Word, create,
        decide_intervention, open, tick,
    },
    limits::{PENDING_PER_PERSON_MAX, QUESTION_MS},
};
use uuid::Uuid;

use super::Turn;
use crate::{
    Backend, InterventionReply, PeopleSet, SettleNotice, StoreError, Swept, TakeNotices, hash::HashMap,
    table::Table,
};

/// Contacts of one namespace that are looked at.
const CONTACTS_MAX: usize = 10_000;

/// What a command did to the questions of its run.
#[derive(Debug)]
pub enum Asking {
    /// The code asks.
    Asked { run: RunId, step: Name, question: Uuid, ask: Box<Ask> },
    /// Nobody waits for the answer any more.
    Over { question: InterventionKey, why: &'static str },
}

/// Questions and notices of this turn. Other servers change them too, so nothing is kept for longer.
#[derive(Default)]
pub struct People {
    table: Table<Intervention>,
    set: PeopleSet,
    contacts: HashMap<Name, Vec<(Name, Contact)>>,
    /// The earliest time at which a question of this turn has something to do.
    pub due_at: Option<kagzi_model::Timestamp>,
}

impl People {
    /// What changed, to be written now.
    pub fn drain(&mut self) -> PeopleSet {
        PeopleSet { questions: self.table.drain(), ..std::mem::take(&mut self.set) }
    }
}

impl<B: Backend> Turn<'_, B> {
    fn people(&mut self) -> &mut People {
        self.people.get_or_insert_default()
    }

    /// Opens and closes the questions of runs that were changed.
    pub(super) async fn settle_asking(&mut self) -> Result<(), StoreError> {
        for asking in std::mem::take(&mut self.fold.asking) {
            match asking {
                Asking::Asked { run, step, question, ask } => {
                    let Some(entry) = self.fold.entry(run) else { continue };
                    let run = &entry.aggregate.run;
                    let new = NewIntervention {
                        key: InterventionKey { namespace: run.namespace.clone(), id: question },
                        run: run.id,
                        step,
                        workflow_type: run.workflow_type.clone(),
                        ask: *ask,
                        user: run.labels.get(USER_LABEL).cloned(),
                    };
                    let named = if new.ask.assignees.is_empty() {
                        new.user.iter().cloned().collect()
                    } else {
                        new.ask.assignees.clone()
                    };
                    let full = self.are_full(&new.key.namespace, &named).await?;
                    let change = create(self.now, new, QUESTION_MS, full);
                    self.take_over(change).await?;
                }
                Asking::Over { question, why } => {
                    // Answered in this very turn, as a rule: then there is nothing to do.
                    let Some(row) = self.load_intervention(&question).await? else { continue };
                    let dropped = InterventionCommand::Drop { why };
                    if let Ok(change) = decide_intervention(self.now, &row, &[], &dropped)
                        && change.row.version > row.version
                    {
                        self.take_over(change).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Decides what somebody asks of a question.
    pub(super) async fn change_intervention(
        &mut self,
        request: &InterventionRequest,
    ) -> Result<Result<InterventionReply, InterventionRejection>, StoreError> {
        let InterventionRequest { key, run, command } = request;
        let run = RunKey::new(key.namespace.clone(), *run);
        // The run first, then its question: the order of locks.
        self.load_found(std::slice::from_ref(&run)).await?;
        let Some(row) = self.load_intervention(key).await? else {
            return Ok(Err(InterventionRejection::NotFound(key.clone())));
        };
        let groups = match command {
            InterventionCommand::Answer(answering) => self.groups_of(&key.namespace, &answering.by).await?,
            InterventionCommand::Claim { .. }
            | InterventionCommand::Release { .. }
            | InterventionCommand::Assign { .. }
            | InterventionCommand::Snooze { .. }
            | InterventionCommand::Comment { .. }
            | InterventionCommand::Cancel { .. }
            | InterventionCommand::Drop { .. } => Vec::new(),
        };
        let change = match decide_intervention(self.now, &row, &groups, command) {
            Ok(change) => change,
            Err(refused) => return Ok(Err(refused)),
        };
        let reply = InterventionReply { row: change.row.clone(), recorded: change.recorded };
        if change.tell.is_some() && !self.may_be_told(row.run) {
            return Ok(Err(InterventionRejection::Unreadable(key.id)));
        }
        if change.row.version > row.version {
            self.take_over(change).await?;
        }
        Ok(Ok(reply))
    }

    /// What time does: reminders, escalations, ends. A few questions per turn.
    pub(super) async fn sweep_questions(&mut self, questions_max: usize) -> Result<Swept, StoreError> {
        self.flush_before_search().await?;
        let due = self.backend.due_interventions(self.now, questions_max).await?;
        let full = due.len() == questions_max;
        let runs: Vec<RunKey> = due.iter().map(|(_, run)| run.clone()).collect();
        self.load_found(&runs).await?;
        let mut count = 0;
        for (key, run) in due {
            let Some(row) = self.load_intervention(&key).await? else { continue };
            let Some(change) = tick(self.now, &row) else { continue };
            // A run that cannot be read here is left alone, and so is its question.
            if change.tell.is_some() && !self.may_be_told(run.id) {
                continue;
            }
            self.take_over(change).await?;
            count += 1;
        }
        self.flush_before_search().await?;
        let next_at = self.backend.next_intervention().await?;
        Ok(Swept { count, more: full && count > 0, next_at })
    }

    pub(super) async fn take_notices(&mut self, take: TakeNotices) -> Result<Vec<Notice>, StoreError> {
        self.flush_before_search().await?;
        let taken = self.backend.take_notices(self.now, take).await?;
        self.wrote |= !taken.is_empty();
        Ok(taken)
    }

    pub(super) fn settle_notice(&mut self, SettleNotice(notice): &SettleNotice) {
        self.people().set.settled.push(notice.clone());
    }

    /// The run is here, can be read, and has not ended: what is told to it is not refused.
    fn may_be_told(&self, run: RunId) -> bool {
        self.fold.entry(run).is_some_and(|entry| !entry.aggregate.run.state.finished())
    }

    /// Takes a change over: the row, what its run is told, what people are told, and who has room now.
    async fn take_over(&mut self, change: InterventionChange) -> Result<(), StoreError> {
        let InterventionChange { row, tell, words, closed, recorded: _ } = change;
        let people = self.people();
        people.table.put(row.clone());
        if let Some(at) = row.next_at() {
            people.due_at = Some(people.due_at.map_or(at, |known| known.min(at)));
        }
        if closed {
            people.set.silenced.push(row.key.clone());
        }
        self.write_down(&row, &words).await?;
        if let Some(tell) = tell {
            let answered = row.answered.as_ref();
            let told = act::TellAnswer {
                step: row.step.clone(),
                question: row.key.id,
                by: answered.map(|answered| answered.by.clone()).filter(|by| !by.is_empty()),
                source: Name::from(answered.map_or(Source::Operator, |answered| answered.source).name()),
                answer: match (&tell.failure, answered.and_then(|answered| answered.answer.as_ref())) {
                    (Some(failure), _) => failure.code.clone(),
                    (None, Some(answer)) => Name::from(answer.in_words()),
                    (None, None) => Name::from("nothing"),
                },
                tell,
            };
            let command = RunKey::new(row.key.namespace.clone(), row.run).duty(told);
            self.tell(&command).await?;
        }
        if closed {
            self.open_queued(&row).await?;
        }
        Ok(())
    }

    /// The run was looked at before, so this is not refused.
    async fn tell(&mut self, command: &Command) -> Result<(), StoreError> {
        debug_assert!(matches!(command.act, Act::Duty(_)));
        if let Err(rejection) = self.decide(command).await? {
            tracing::error!(run = %command.run.id, %rejection, "an answer could not be told");
        }
        Ok(())
    }

    /// The question as this batch has left it.
    async fn load_intervention(&mut self, key: &InterventionKey) -> Result<Option<Intervention>, StoreError> {
        let settled = self.people.as_ref().is_some_and(|people| people.table.is_settled(key));
        if !settled && let Some(row) = self.backend.load_intervention(key).await? {
            self.people().table.know(row, ());
        }
        Ok(self.people.as_ref().and_then(|people| people.table.get(key)).cloned())
    }

    /// Everybody who is named has as many open questions as one may have. Groups are never full.
    async fn are_full(&mut self, namespace: &Name, named: &[Name]) -> Result<bool, StoreError> {
        if named.is_empty() || named.iter().any(|name| kagzi_model::intervention::is_group(name)) {
            return Ok(false);
        }
        self.flush_before_search().await?;
        for person in named {
            let pending = self.backend.pending_of(namespace, person, PENDING_PER_PERSON_MAX).await?;
            if pending < PENDING_PER_PERSON_MAX {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A question is closed: the oldest one that waits for the same people opens, one for each of them.
    async fn open_queued(&mut self, closed: &Intervention) -> Result<(), StoreError> {
        if closed.opened_at.is_none() {
            return Ok(());
        }
        for person in closed.people() {
            self.flush_before_search().await?;
            let namespace = &closed.key.namespace;
            let pending = self.backend.pending_of(namespace, person, PENDING_PER_PERSON_MAX).await?;
            if pending >= PENDING_PER_PERSON_MAX {
                continue;
            }
            let Some(key) = self.backend.queued_of(namespace, person).await? else { continue };
            let Some(row) = self.load_intervention(&key).await? else { continue };
            let InterventionChange { row, words, .. } = open(self.now, row);
            let people = self.people();
            people.table.put(row.clone());
            if let Some(at) = row.next_at() {
                people.due_at = Some(people.due_at.map_or(at, |known| known.min(at)));
            }
            self.write_down(&row, &words).await?;
        }
        Ok(())
    }

    async fn contacts(&mut self, namespace: &Name) -> Result<Vec<(Name, Contact)>, StoreError> {
        if let Some(known) = self.people().contacts.get(namespace) {
            return Ok(known.clone());
        }
        let rows = self.backend.all_nouns(namespace, "contact", CONTACTS_MAX).await?;
        // One that cannot be read is reached by nobody, and hides no other.
        let read = |row: kagzi_model::NounRow| Some((row.key.id.clone(), row.read::<Contact>().ok()?));
        let contacts: Vec<_> = rows.into_iter().filter_map(read).collect();
        self.people().contacts.insert(namespace.clone(), contacts.clone());
        Ok(contacts)
    }

    /// The groups of a person, as they are named where people are asked.
    async fn groups_of(&mut self, namespace: &Name, person: &Name) -> Result<Vec<Name>, StoreError> {
        let contacts = self.contacts(namespace).await?;
        let own = contacts.into_iter().find(|(name, _)| name == person);
        let groups = own.map(|(_, contact)| contact.groups).unwrap_or_default();
        Ok(groups.iter().map(|group| Name::from(format!("group:{group}"))).collect())
    }

    /// Writes down who is told what, on which way.
    async fn write_down(&mut self, row: &Intervention, words: &[Word]) -> Result<(), StoreError> {
        if words.is_empty() {
            return Ok(());
        }
        let contacts = self.contacts(&row.key.namespace).await?;
        let now = self.now;
        let mut notices: Vec<Notice> = Vec::new();
        for word in words {
            let mut reached = contacts.iter().filter(|(own, contact)| contact.answers_to(own, &word.to));
            let mut told: Vec<(Name, Channel)> = Vec::new();
            for (own, contact) in reached.by_ref() {
                told.extend(contact.told_on(row.severity).into_iter().map(|channel| (own.clone(), channel)));
            }
            if told.is_empty() {
                // Nobody has said how: it is in the inbox.
                told.push((word.to.clone(), Channel::InApp));
            }
            for (recipient, channel) in told {
                let notice = Notice::new(now, row, word, &recipient, channel);
                if !notices.iter().any(|other| other.id == notice.id) {
                    notices.push(notice);
                }
            }
        }
        self.people().set.notices.extend(notices);
        Ok(())
    }
}
