//! What a message is about.

use serde::{Deserialize, Serialize};

/// Why somebody is told something. The numbers are stored, and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Occasion {
    /// A question was asked.
    Asked = 1,
    /// It still waits for an answer.
    Reminder = 2,
    /// Nobody answered in time, so somebody else is asked too.
    Escalated = 3,
    /// It was answered by somebody else, or its run ended.
    NoLongerNeeded = 4,
    /// Something went wrong that no workflow asked about.
    Incident = 5,
    /// What somebody had approved or answered will not be done.
    ActionCancelled = 6,
}

impl Occasion {
    /// Every occasion.
    pub const ALL: [Occasion; 6] = [
        Occasion::Asked,
        Occasion::Reminder,
        Occasion::Escalated,
        Occasion::NoLongerNeeded,
        Occasion::Incident,
        Occasion::ActionCancelled,
    ];

    /// The name that templates, receivers and deduplication keys have.
    pub fn name(self) -> &'static str {
        match self {
            Occasion::Asked => "asked",
            Occasion::Reminder => "reminder",
            Occasion::Escalated => "escalated",
            Occasion::NoLongerNeeded => "no_longer_needed",
            Occasion::Incident => "incident",
            Occasion::ActionCancelled => "action_cancelled",
        }
    }

    /// The occasion of this name.
    pub fn from_name(name: &str) -> Option<Occasion> {
        Occasion::ALL.into_iter().find(|occasion| occasion.name() == name)
    }

    /// The one with this number, if there is one.
    pub fn from_number(number: u8) -> Option<Occasion> {
        Occasion::ALL.into_iter().find(|occasion| *occasion as u8 == number)
    }

    /// Whether the person has nothing to do any more.
    pub fn is_over(self) -> bool {
        match self {
            Occasion::NoLongerNeeded | Occasion::ActionCancelled => true,
            Occasion::Asked | Occasion::Reminder | Occasion::Escalated | Occasion::Incident => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_occasion_is_found_by_its_name_and_by_its_number() {
        for occasion in Occasion::ALL {
            assert_eq!(Occasion::from_name(occasion.name()), Some(occasion));
            assert_eq!(Occasion::from_number(occasion as u8), Some(occasion));
        }
        assert_eq!(Occasion::from_name("birthday"), None);
        assert_eq!(Occasion::from_number(7), None);
    }
}
