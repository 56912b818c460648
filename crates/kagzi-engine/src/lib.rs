//! The moving parts of a server, without transport and without SQL.
//!
//! [`Engine`] is what a transport calls. Behind it: the [`Hub`] passes committed facts to whoever waits for
//! them, the sweeps do the housekeeping, [`explain`] says why a run does not move.

mod ask;
mod assigned;
mod controls;
mod cut_off;
mod engine;
mod error;
mod events;
mod explain;
mod hub;
mod interventions;
mod journals;
mod nouns;
mod outline;
mod poll;
mod running;
mod schedules;
mod session;
mod settings;
mod sweeps;
mod told;
mod wait;
mod workers;

pub use ask::Answered;
pub use assigned::Assigned;
pub use engine::{Delivery, Engine};
pub use error::EngineError;
pub use explain::Explanation;
pub use hub::Hub;
pub use outline::Outline;
pub use running::RunningStep;
pub use session::{Next, Session, SessionEvent};
pub use settings::{SchedulerSettings, SettingError, SettingField, Settings};
pub use sweeps::{SweepCount, SweepStats};
pub use told::Told;
