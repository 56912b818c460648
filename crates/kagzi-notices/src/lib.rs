//! Messages to people: what they say, when they are sent, and what carries them.
//!
//! A *notice* is one message to one person over one channel of theirs. It is written down by the store, in
//! the commit of what it tells of; here is everything that follows. [`message`] makes its text out of facts
//! and templates, [`delivery`] and [`contact`] say when it is tried and when it is given up, and
//! [`rounds`] takes what is due from an [`Outbox`] and hands it to a [`Courier`]. The couriers for e-mail and
//! webhooks are the feature `transports`.

pub mod clean;
pub mod contact;
mod courier;
pub mod delivery;
mod facts;
pub mod message;
pub mod occasion;
pub mod rounds;
pub mod template;

#[cfg(feature = "transports")]
pub mod email;
#[cfg(feature = "test-fixture")]
pub mod fixture;
#[cfg(feature = "transports")]
mod trust;
#[cfg(feature = "transports")]
pub mod webhook;

pub use contact::{Contact, QuietHours};
pub use courier::{Courier, Parcel};
pub use delivery::{Outcome, Settled};
pub use facts::{Audience, Facts, Field, Values};
pub use kagzi_model::intervention::{Channel, NoticeState as State, Severity};
pub use message::{Message, OwnTexts, Texts};
pub use occasion::Occasion;
pub use rounds::{Due, Outbox, OutboxError, Rounds};
