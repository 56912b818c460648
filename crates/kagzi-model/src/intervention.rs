//! A question to a person: a row of its own, beside the run that waits for the answer.
//!
//! A question opens with the wait of its run and is closed in the commit that answers, expires or drops it.
//! What people and time do to it is decided here, by pure functions; the turn writes row, run and notices
//! together.

mod answer;
mod ask;
mod contact;
mod decide;
mod notice;
mod tick;

use serde::{Deserialize, Serialize};
use uuid::{Builder, Uuid};

use crate::{Entity, Name, RunId, Timestamp, backoff::seed};

pub use answer::{Answer, Answered, Resolution, Source, Tell, Vote};
pub use ask::{Ask, AskError, Browser, Choice, Escalation, InterventionType, OnTimeout, Quorum, Severity};
pub use contact::{Contact, ContactRule};
pub use decide::{
    Answering, InterventionChange, InterventionCommand, InterventionRejection, InterventionRequest,
    NewIntervention, Recorded, create, decide as decide_intervention, open,
};
pub use notice::{Channel, Message, Notice, NoticeState, Word};
pub use tick::{next_at, tick};

/// How the channels begin on which runs are told of answers; the step's path follows.
pub const PERSON_CHANNEL: &str = "~person/";

/// The channel on which the answer to a step's question is told. A step has one, however often it asks.
pub fn person_channel(step: &str) -> Name {
    Name::from(format!("{PERSON_CHANNEL}{step}"))
}

/// An answer of a person is told on this channel.
pub fn is_person_channel(channel: &str) -> bool {
    channel.starts_with(PERSON_CHANNEL)
}

/// Names a question.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InterventionKey {
    pub namespace: Name,
    pub id: Uuid,
}

/// The id of the question that a run asks with this line of its history: the same whenever it is decided
/// again.
pub fn question_id(run: RunId, at: Timestamp, seq: u64) -> Uuid {
    let half = |salt: &[u8]| seed(&[run.0.as_bytes(), &seq.to_be_bytes(), salt]).to_be_bytes();
    let mut random = [0; 10];
    random[..8].copy_from_slice(&half(b"question a"));
    random[8..].copy_from_slice(&half(b"question b")[..2]);
    let millis = u64::try_from(at.0 / 1000).unwrap_or(0);
    Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

/// Where a question stands. The last three are for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterventionState {
    /// Everybody who is named has as many open questions as one may have: it waits, and its clock does not
    /// run.
    Queued = 1,
    /// Somebody may answer.
    Pending = 2,
    /// Somebody has answered.
    Responded = 3,
    /// Its time is over; what that means was told to the run.
    Expired = 4,
    /// Nobody wants to know any more.
    Cancelled = 5,
}

impl InterventionState {
    /// All of them.
    pub const ALL: [InterventionState; 5] = [
        InterventionState::Queued,
        InterventionState::Pending,
        InterventionState::Responded,
        InterventionState::Expired,
        InterventionState::Cancelled,
    ];

    /// The one with this number.
    pub fn from_number(number: i64) -> Option<InterventionState> {
        InterventionState::ALL.into_iter().find(|state| *state as i64 == number)
    }

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            InterventionState::Queued => "queued",
            InterventionState::Pending => "pending",
            InterventionState::Responded => "responded",
            InterventionState::Expired => "expired",
            InterventionState::Cancelled => "cancelled",
        }
    }

    /// Somebody may still answer.
    pub fn is_open(self) -> bool {
        match self {
            InterventionState::Queued | InterventionState::Pending => true,
            InterventionState::Responded | InterventionState::Expired | InterventionState::Cancelled => false,
        }
    }
}

/// Somebody works on it: others are told so before they answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub by: Name,
    pub until: Timestamp,
}

/// What somebody said about it, for the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    pub by: Name,
    pub at: Timestamp,
    pub text: String,
}

/// One question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intervention {
    pub key: InterventionKey,
    /// Rises with every change.
    pub version: u64,
    /// The run that waits for the answer, and its step.
    pub run: RunId,
    pub step: Name,
    pub workflow_type: Name,
    pub ask: Ask,
    /// Who is asked now: those whom the code named, those whom somebody named since, and those to whom it
    /// was escalated. Nobody: everybody in the namespace.
    pub assignees: Vec<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Who started the run, for four eyes. Empty: nobody said.
    #[serde(default)]
    pub asker: Name,
    pub state: InterventionState,
    #[serde(default)]
    pub votes: Vec<Vote>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// Who does not want to see it before then.
    #[serde(default)]
    pub snoozed: Vec<Claim>,
    #[serde(default)]
    pub comments: Vec<Comment>,
    /// Escalations that were done.
    pub level: u32,
    /// Reminders whose time has come.
    pub reminded: u32,
    /// How it ended, unless it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Answered>,
    /// Why it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<String>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
    /// When its time is over; none while it is queued, and where it has no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl Intervention {
    /// When time has something to do with it.
    pub fn next_at(&self) -> Option<Timestamp> {
        tick::next_at(self)
    }

    /// Its place in every list: the most urgent first, what has no time last.
    pub fn due_at(&self) -> Timestamp {
        self.expires_at.unwrap_or(Timestamp::MAX)
    }

    /// The people who are named, without groups.
    pub fn people(&self) -> impl Iterator<Item = &Name> {
        self.assignees.iter().filter(|name| !is_group(name))
    }

    /// The claim that counts now.
    pub fn claimed(&self, now: Timestamp) -> Option<&Claim> {
        self.claim.as_ref().filter(|claim| claim.until > now)
    }
}

/// Names a group of people.
pub fn is_group(assignee: &str) -> bool {
    assignee.starts_with(GROUP)
}

/// How the names of groups begin where people are named.
pub const GROUP: &str = "group:";

impl Entity for Intervention {
    type Key = InterventionKey;

    fn key(&self) -> InterventionKey {
        self.key.clone()
    }

    fn version(&self) -> u64 {
        self.version
    }
}
