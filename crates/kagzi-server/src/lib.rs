//! The transport: it reads requests, asks the engine, writes answers. It never decides and never sees SQL.

mod caller;
mod check;
pub mod config;
mod conversation;
mod database_settings;
mod edge;
mod embedded;
mod find;
mod handler_input;
mod health;
mod http;
mod journal_page;
mod message_limit;
mod metrics;
mod notify;
mod page_token;
mod readiness;
mod response_budget;
mod rpc;
mod server;
mod services;
mod status;
mod store_url;
mod trace;
mod watch;
mod wire;
mod work_stream;

pub use database_settings::DatabaseSettings;
pub use edge::EdgeSettings;
pub use embedded::Embedded;
pub use kagzi_engine::Settings;
pub use kagzi_model::Timestamp;
pub use kagzi_store::{Clock, ManualClock, SystemClock};
pub use notify::NotifySettings;
pub use server::{Options, Server};
pub use store_url::StoreUrl;
pub use trace::TraceSettings;
#[cfg(feature = "otel")]
pub use trace::provider as otlp_provider;

/// A SQLite database as a file: copied, put back, checked.
pub mod sqlite {
    pub use kagzi_store_sqlite::{Complaint, Replace, Verified, backup, restore, verify};
}
