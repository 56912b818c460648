//! What carries a message: the one thing that differs between the channels.

use async_trait::async_trait;
use kagzi_model::Timestamp;

use crate::{Contact, Facts, Message, Occasion, Outcome};

/// A message on its way. Every try carries the same one, but for what the recipient changed meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct Parcel {
    /// The notice's id: what makes two messages one.
    pub id: String,
    pub occasion: Occasion,
    pub contact: Contact,
    pub facts: Facts,
    pub message: Message,
    /// When it was written down, which is its date, however late it arrives.
    pub created_at: Timestamp,
}

impl Parcel {
    /// The id as receivers see it, by which they recognise a second copy: plain letters, digits, `-`, `_` and
    /// `/`, everything else as its bytes. So it fits into a header, whatever people and groups are called.
    pub fn wire_id(&self) -> String {
        let mut id = String::with_capacity(self.id.len());
        for byte in self.id.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'/' => id.push(char::from(byte)),
                other => id.push_str(&format!("%{other:02X}")),
            }
        }
        id
    }
}

/// Carries messages over one channel. It may be asked for the same message again, and it holds no state of
/// a message: what follows is decided by whoever asked.
#[async_trait]
pub trait Courier: Send + Sync + 'static {
    /// Tries once. What goes wrong is part of the answer.
    async fn carry(&self, parcel: &Parcel) -> Outcome;
}
