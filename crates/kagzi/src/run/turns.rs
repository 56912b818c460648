//! Whose turn it is: the function is told of one thing at a time, live as in a replay, and the order in which
//! it is told is the order of the record.
//!
//! A step whose code has ended takes a place in the queue and returns in its turn. A failure, the end of a
//! sleep and a label ask the server first, and nothing else is told while the answer is out. So the record is
//! always a beginning of what the function was told, and a function that is told the same again does the same
//! again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use kagzi_proto::v1::{self, report};

use crate::run::next::{Answered, Next, OnItsWay};
use crate::run::scope::OpenScopes;
use crate::run::slot::{List, Phase, Slot};

pub(crate) use crate::run::open::{Open, permitted, settled};

/// The turns of one run.
pub(crate) struct Turns {
    /// Recorded ends that were called and wait for their turn, by their place in the record, each with what
    /// it weighs.
    recorded: HashMap<u32, (Arc<Slot>, Heard)>,
    /// The next one to tell, and the last.
    next: u32,
    last: u32,
    /// The record was told to its end, and everything in it was called.
    live: bool,
    queue: VecDeque<Place>,
    /// Whose ask is on its way.
    asked: Option<Arc<Slot>>,
    /// Whose ask was answered by something that the function is told of next, and the bytes of its value.
    answered: Option<(Arc<Slot>, u64)>,
    /// How much the function was told of, and how much of it is durable.
    told: u64,
    durable: u64,
    /// How much it has heard of, and what that weighs: the same in every replay, at the same line of its
    /// code.
    heard: Heard,
    /// The same for the scopes that are recorded as one and not over, by their numbers.
    pub(crate) scopes: OpenScopes,
    /// Results that the function was told of and that were not sent.
    held: Vec<v1::StepRecorded>,
    held_bytes: usize,
    /// Operations between their first poll and their end, in the order of those polls.
    open: BTreeMap<u64, Arc<Slot>>,
    opened: u64,
    /// Wait until they may go on at all.
    unsettled: Vec<Arc<Slot>>,
    /// Wait for a permit, first come first served.
    queued: VecDeque<Arc<Slot>>,
    /// Have a permit, and were looked at since they were woken.
    holders: Vec<Arc<Slot>>,
    permits_max: usize,
}

/// What a function has heard of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) ends: u64,
    pub(crate) bytes: u64,
}

impl Heard {
    /// One end with a value of so many bytes.
    pub(crate) fn one(bytes: u64) -> Heard {
        Heard { ends: 1, bytes }
    }

    pub(crate) fn hear(&mut self, more: Heard) {
        self.ends += more.ends;
        self.bytes += more.bytes;
    }
}

/// Something to tell the function.
struct Place {
    slot: Arc<Slot>,
    what: Told,
}

enum Told {
    /// A result of this worker's own, and what was heard inside it, if it is that of a scope.
    Ended(v1::StepRecorded, Heard),
    /// The server must say whether it is one.
    Asks(report::Body),
}

impl Turns {
    pub(crate) fn new(recorded_len: u32, permits_max: usize) -> Turns {
        Turns {
            recorded: HashMap::new(),
            next: 1,
            last: recorded_len,
            live: false,
            queue: VecDeque::new(),
            asked: None,
            answered: None,
            told: 0,
            durable: 0,
            heard: Heard::default(),
            scopes: OpenScopes::default(),
            held: Vec::new(),
            held_bytes: 0,
            open: BTreeMap::new(),
            opened: 0,
            unsettled: Vec::new(),
            queued: VecDeque::new(),
            holders: Vec::new(),
            permits_max: permits_max.max(1),
        }
    }

    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    /// What code inside these scopes has heard of, and what was told outside of all that are recorded as one.
    pub(crate) fn heard(&self, scopes: &[usize]) -> Heard {
        let mut heard = self.heard;
        scopes.iter().for_each(|scope| heard.hear(self.scopes.heard(*scope)));
        heard
    }

    /// The function hears of it. What is told inside a scope that is recorded as one counts there: a later
    /// replay is told of the scope's end only.
    fn hear(&mut self, slot: &Slot, more: Heard) {
        self.hear_in(slot.scope, more);
    }

    pub(crate) fn hear_in(&mut self, scope: usize, more: Heard) {
        match scope {
            0 => self.heard.hear(more),
            scope => self.scopes.hear(scope, more),
        }
    }

    /// A call whose end is recorded at this place, and what it weighs.
    pub(crate) fn call_recorded(&mut self, place: u32, slot: &Arc<Slot>, weight: Heard) {
        self.recorded.insert(place, (slot.clone(), weight));
    }

    pub(crate) fn open(&mut self, slot: &Arc<Slot>) -> u64 {
        self.opened += 1;
        self.open.insert(self.opened, slot.clone());
        self.opened
    }

    /// The operation ended or was dropped. What it has not told is forgotten.
    pub(crate) fn close(&mut self, number: u64, slot: &Arc<Slot>) {
        self.open.remove(&number);
        let had = slot.phase();
        slot.set_phase(Phase::Dropped);
        if had == Phase::Executes {
            self.give_back(slot);
        }
        if !self.queue.is_empty() {
            self.queue.retain(|place| !Arc::ptr_eq(&place.slot, slot));
        }
        // What the code calls from here on builds on having dropped this, whatever the answer will be.
        let mut asked = self.asked.iter().chain(self.answered.iter().map(|(answered, _)| answered));
        if asked.any(|asked| Arc::ptr_eq(asked, slot)) {
            self.told += 1;
        }
    }

    pub(crate) fn ended(&mut self, slot: &Arc<Slot>, recorded: v1::StepRecorded, inside: Heard) {
        self.queue.push_back(Place { slot: slot.clone(), what: Told::Ended(recorded, inside) });
    }

    pub(crate) fn ask(&mut self, slot: &Arc<Slot>, body: report::Body) {
        self.queue.push_back(Place { slot: slot.clone(), what: Told::Asks(body) });
    }

    /// The replay is over and what the operation builds on is durable. If not, it is woken then.
    pub(crate) fn is_settled(&mut self, slot: &Arc<Slot>) -> bool {
        let settled = self.live && self.durable >= slot.ticket;
        if !settled && slot.list(List::Unsettled) {
            self.unsettled.push(slot.clone());
        }
        settled
    }

    /// Takes a permit if one is free and nobody came before.
    pub(crate) fn try_begin(&mut self, slot: &Arc<Slot>) -> bool {
        if slot.phase() == Phase::Executes {
            return true;
        }
        if !self.has_permit() || !self.queued.is_empty() {
            if slot.list(List::Queued) {
                self.queued.push_back(slot.clone());
            }
            return false;
        }
        self.grant(slot.clone());
        true
    }

    fn has_permit(&self) -> bool {
        self.holders.len() < self.permits_max
    }

    fn grant(&mut self, slot: Arc<Slot>) {
        slot.set_phase(Phase::Executes);
        self.holders.push(slot);
    }

    fn give_back(&mut self, slot: &Arc<Slot>) {
        if let Some(at) = self.holders.iter().position(|holder| Arc::ptr_eq(holder, slot)) {
            self.holders.swap_remove(at);
        }
    }

    /// The code has ended.
    pub(crate) fn end_code(&mut self, slot: &Arc<Slot>) {
        slot.set_phase(Phase::Waits);
        self.give_back(slot);
    }

    /// An operation whose permit was lent is looked at again: it goes on, even if that is one too many.
    pub(crate) fn take_again(&mut self, slot: Arc<Slot>) {
        self.holders.push(slot);
    }

    /// Nobody looks at some that have a permit: others get it. The first ones in the queue that may begin, to
    /// be woken.
    pub(crate) fn share_permits(&mut self) -> Vec<Arc<Slot>> {
        let mut begin = Vec::new();
        if self.queued.is_empty() {
            return begin;
        }
        let dormant: Vec<_> = self.holders.iter().filter(|slot| slot.is_dormant()).cloned().collect();
        for slot in dormant {
            self.give_back(&slot);
            slot.set_phase(Phase::Lent);
        }
        while self.has_permit()
            && let Some(slot) = self.queued.pop_front()
        {
            slot.unlist();
            if slot.phase() == Phase::Waits {
                self.grant(slot.clone());
                begin.push(slot);
            }
        }
        begin
    }

    /// What comes next, with this on its way to the server. `called`: everything recorded was called.
    pub(crate) fn next(&mut self, on_its_way: OnItsWay, called: bool) -> Next {
        let clear = on_its_way == OnItsWay::Nothing;
        if !self.live {
            if self.next <= self.last {
                let Some((slot, weight)) = self.recorded.remove(&self.next) else {
                    return Next::Stalled(self.next);
                };
                self.next += 1;
                self.told += 1;
                self.hear(&slot, weight);
                return Next::Release(slot);
            }
            if !called {
                return Next::Stalled(0);
            }
            self.live = true;
            self.durable = self.told;
            return Next::Live(self.take_settled());
        }
        if let Some((slot, bytes)) = self.answered.take() {
            if slot.phase() == Phase::Dropped {
                return Next::Close(slot);
            }
            self.hear(&slot, Heard::one(bytes));
            return Next::Release(slot);
        }
        // Until the answer is there nobody knows whether that comes first.
        if on_its_way == OnItsWay::Ask {
            return Next::Nothing;
        }
        match self.queue.front() {
            Some(Place { what: Told::Ended(..), .. }) => {
                let Some(Place { slot, what: Told::Ended(recorded, inside) }) = self.queue.pop_front() else {
                    return Next::Nothing;
                };
                self.told += 1;
                let bytes = recorded.result.as_ref().map_or(0, |result| result.data.len() as u64);
                self.hear(&slot, Heard::one(bytes));
                self.hear(&slot, inside);
                self.held_bytes += prost::Message::encoded_len(&recorded);
                self.held.push(recorded);
                Next::Release(slot)
            }
            Some(Place { what: Told::Asks(_), .. }) if clear && self.held.is_empty() => {
                match self.queue.pop_front() {
                    Some(Place { slot, what: Told::Asks(body) }) => {
                        self.asked = Some(slot.clone());
                        Next::Ask(slot, body)
                    }
                    Some(_) | None => Next::Nothing,
                }
            }
            Some(_) | None if clear && !self.held.is_empty() => Next::Send(self.take_held()),
            Some(_) | None => Next::Nothing,
        }
    }

    /// What the function was told of and what is to be sent now.
    pub(crate) fn take_held(&mut self) -> Vec<v1::StepRecorded> {
        self.held_bytes = 0;
        std::mem::take(&mut self.held)
    }

    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// The results that go with the end of the run, unless they are too large to go in one message.
    pub(crate) fn take_held_if_small(&mut self, bytes_max: usize) -> Option<Vec<v1::StepRecorded>> {
        (self.held_bytes <= bytes_max).then(|| self.take_held())
    }

    /// So many results are durable. Answers with those that waited for it.
    pub(crate) fn recorded(&mut self, count: usize) -> Vec<Arc<Slot>> {
        self.durable += count as u64;
        self.take_settled()
    }

    /// The ask was answered. `ended`: by something that the function is told of, and that is durable, with a
    /// value of so many bytes.
    pub(crate) fn answered(&mut self, ended: bool, bytes: u64) -> Answered {
        let asked = self.asked.take();
        let dropped = asked.as_ref().is_some_and(|slot| slot.phase() == Phase::Dropped);
        match (dropped, ended) {
            (true, true) => Answered::Unheard,
            (true, false) => Answered::Settled(self.closed()),
            (false, true) => {
                self.answered = asked.map(|asked| (asked, bytes));
                self.told += 1;
                Answered::Settled(self.closed())
            }
            (false, false) => Answered::Settled(Vec::new()),
        }
    }

    /// An answer that the function will not hear any more.
    pub(crate) fn take_unheard(&mut self) -> Option<Arc<Slot>> {
        self.answered.take().map(|(slot, _)| slot)
    }

    /// The record knows of everything that the function was told of or has dropped.
    pub(crate) fn closed(&mut self) -> Vec<Arc<Slot>> {
        self.durable = self.told;
        self.take_settled()
    }

    fn take_settled(&mut self) -> Vec<Arc<Slot>> {
        let durable = self.durable;
        let settled: Vec<_> = self.unsettled.extract_if(.., |slot| slot.ticket <= durable).collect();
        settled.iter().for_each(|slot| slot.unlist());
        settled
    }

    /// What the run waits for, if it waits for times and for others only. Operations that nobody looks at do
    /// not count, and one whose ask is about to be sent counts as if nothing had come for it.
    ///
    /// Where all of them are one gathering, the last of them wakes the run.
    pub(crate) fn waits(&self) -> Option<(Vec<String>, v1::Wake)> {
        if !self.live || !self.queue.is_empty() || !self.held.is_empty() || self.answered.is_some() {
            return None;
        }
        // The newest first: of many that begin together the oldest are answered first, and whether any goes
        // on is asked after every answer.
        if self.open.values().rev().any(|slot| self.goes_on(slot)) {
            return None;
        }
        let mut waits = Vec::new();
        let (mut first, mut mixed) = (None, false);
        for slot in self.open.values() {
            if !slot.is_dormant() && slot.phase() != Phase::Dropped {
                let gathering = slot.gathering();
                mixed |= *first.get_or_insert(gathering) != gathering;
                waits.push(slot.step.path.clone());
            }
        }
        let gathering = first.flatten().filter(|_| !mixed);
        let wake = gathering.map_or(v1::Wake::Unspecified, |gathering| gathering.wake);
        (!waits.is_empty()).then_some((waits, wake))
    }

    /// Something may come of the operation without anybody else.
    fn goes_on(&self, slot: &Arc<Slot>) -> bool {
        let asks = || self.asked.as_ref().is_some_and(|asked| Arc::ptr_eq(asked, slot));
        match slot.phase() {
            Phase::Waits => !slot.is_dormant() && !asks(),
            Phase::Executes | Phase::Lent => !slot.is_dormant(),
            Phase::Blocked | Phase::Dropped => false,
        }
    }

    /// The run is over: whoever is left holds the run no longer. To be dropped outside the lock.
    pub(crate) fn clear(&mut self) -> Turns {
        std::mem::replace(self, Turns::new(0, 1))
    }
}
