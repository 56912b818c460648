//! What people are told: a line of the outbox, written in the commit of what it tells of.

use serde::{Deserialize, Serialize};

use super::{Intervention, InterventionKey};
use crate::{Name, Timestamp};

/// What it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    Asked = 1,
    Reminder = 2,
    Escalated = 3,
    NoLongerNeeded = 4,
    Incident = 5,
    ActionCancelled = 6,
}

impl Message {
    /// All of them.
    pub const ALL: [Message; 6] = [
        Message::Asked,
        Message::Reminder,
        Message::Escalated,
        Message::NoLongerNeeded,
        Message::Incident,
        Message::ActionCancelled,
    ];

    /// The one with this number.
    pub fn from_number(number: i64) -> Option<Message> {
        Message::ALL.into_iter().find(|message| *message as i64 == number)
    }

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Message::Asked => "asked",
            Message::Reminder => "reminder",
            Message::Escalated => "escalated",
            Message::NoLongerNeeded => "no_longer_needed",
            Message::Incident => "incident",
            Message::ActionCancelled => "action_cancelled",
        }
    }
}

/// How it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// The line itself is the message.
    InApp = 1,
    Email = 2,
    Webhook = 3,
    Push = 4,
}

impl Channel {
    /// All of them.
    pub const ALL: [Channel; 4] = [Channel::InApp, Channel::Email, Channel::Webhook, Channel::Push];

    /// The one with this number.
    pub fn from_number(number: i64) -> Option<Channel> {
        Channel::ALL.into_iter().find(|channel| *channel as i64 == number)
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Channel> {
        Channel::ALL.into_iter().find(|channel| channel.name() == name)
    }

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Channel::InApp => "in_app",
            Channel::Email => "email",
            Channel::Webhook => "webhook",
            Channel::Push => "push",
        }
    }
}

/// How far it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeState {
    Pending = 1,
    Sent = 2,
    Retrying = 3,
    GivenUp = 4,
    /// Its question was closed before it was sent.
    Suppressed = 5,
}

impl NoticeState {
    /// All of them.
    pub const ALL: [NoticeState; 5] = [
        NoticeState::Pending,
        NoticeState::Sent,
        NoticeState::Retrying,
        NoticeState::GivenUp,
        NoticeState::Suppressed,
    ];

    /// The one with this number.
    pub fn from_number(number: i64) -> Option<NoticeState> {
        NoticeState::ALL.into_iter().find(|state| *state as i64 == number)
    }

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            NoticeState::Pending => "pending",
            NoticeState::Sent => "sent",
            NoticeState::Retrying => "retrying",
            NoticeState::GivenUp => "given_up",
            NoticeState::Suppressed => "suppressed",
        }
    }
}

/// Somebody is to be told something: who that is and how it is sent is looked up when it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub message: Message,
    /// A person or a group.
    pub to: Name,
    /// Which one of its kind.
    pub number: u32,
}

impl Word {
    pub(super) fn new(message: Message, to: &Name, number: u32) -> Word {
        Word { message, to: to.clone(), number }
    }
}

/// One line of the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub question: InterventionKey,
    /// Unique in its namespace, and sent along: question, message, recipient and channel.
    pub id: Name,
    pub channel: Channel,
    pub recipient: Name,
    pub message: Message,
    /// What its text is made of, as JSON: title, type, run, due, priority. Never what is asked about.
    pub fields: String,
    pub state: NoticeState,
    pub attempts: u32,
    /// When it is sent or tried again.
    pub next_at: Option<Timestamp>,
    pub last_error: Option<String>,
    pub created_at: Timestamp,
    pub sent_at: Option<Timestamp>,
}

impl Notice {
    /// What is told to one person on one channel. What is told in the application is told by being there.
    pub fn new(
        now: Timestamp,
        row: &Intervention,
        word: &Word,
        recipient: &Name,
        channel: Channel,
    ) -> Notice {
        let Word { message, number, .. } = word;
        let id = format!("{}/{}/{number}/{recipient}/{}", row.key.id, message.name(), channel.name());
        let fields = serde_json::json!({
            "title": row.ask.title,
            "type": row.ask.kind.name(),
            "question": row.key.id,
            "run": row.run,
            "workflow_type": row.workflow_type,
            "due": row.expires_at.map(crate::rfc3339),
            "priority": row.ask.priority,
            "severity": row.severity,
        });
        let told = channel == Channel::InApp;
        Notice {
            question: row.key.clone(),
            id: Name::from(id),
            channel,
            recipient: recipient.clone(),
            message: *message,
            fields: fields.to_string(),
            state: if told { NoticeState::Sent } else { NoticeState::Pending },
            attempts: 0,
            next_at: (!told).then_some(now),
            last_error: None,
            created_at: now,
            sent_at: told.then_some(now),
        }
    }
}
