//! What a message is about.

pub use kagzi_model::intervention::Message as Occasion;

/// Whether the person has nothing to do any more.
pub fn is_over(occasion: Occasion) -> bool {
    match occasion {
        Occasion::NoLongerNeeded | Occasion::ActionCancelled => true,
        Occasion::Asked | Occasion::Reminder | Occasion::Escalated | Occasion::Incident => false,
    }
}

/// The occasion of this name.
pub fn from_name(name: &str) -> Option<Occasion> {
    Occasion::ALL.into_iter().find(|occasion| occasion.name() == name)
}
