//! The ways on which a person can be told something.

use serde::{Deserialize, Serialize};

/// One way to a person. The numbers are stored, and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Channel {
    /// The inbox itself: its row is the message.
    InApp = 1,
    Email = 2,
    Webhook = 3,
}

impl Channel {
    /// Every channel.
    pub const ALL: [Channel; 3] = [Channel::InApp, Channel::Email, Channel::Webhook];

    /// What has to be carried by somebody.
    pub const CARRIED: [Channel; 2] = [Channel::Email, Channel::Webhook];

    /// The name that users and metrics read.
    pub fn name(self) -> &'static str {
        match self {
            Channel::InApp => "in_app",
            Channel::Email => "email",
            Channel::Webhook => "webhook",
        }
    }

    /// The channel of this name.
    pub fn from_name(name: &str) -> Option<Channel> {
        Channel::ALL.into_iter().find(|channel| channel.name() == name)
    }

    /// The one with this number, if there is one.
    pub fn from_number(number: u8) -> Option<Channel> {
        Channel::ALL.into_iter().find(|channel| *channel as u8 == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_channel_is_found_by_its_name_and_by_its_number() {
        for channel in Channel::ALL {
            assert_eq!(Channel::from_name(channel.name()), Some(channel));
            assert_eq!(Channel::from_number(channel as u8), Some(channel));
        }
        assert_eq!(Channel::from_name("pigeon"), None);
        assert_eq!(Channel::from_number(0), None);
    }
}
