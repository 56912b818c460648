//! How people are told: what carries messages, as the settings say.

mod carrying;
mod outbox;
#[cfg(feature = "notify")]
mod transports;
#[cfg(not(feature = "notify"))]
#[path = "notify/no_transports.rs"]
mod transports;

use std::{collections::HashMap, fmt, sync::Arc};

use kagzi_notices::{Channel, Courier, message::TextsFile};

use crate::config::InvalidSetting;

pub use carrying::Carrying;

/// What carries messages, by channel.
pub type Couriers = HashMap<Channel, Arc<dyn Courier>>;

/// Which receivers there are. What is not set does not exist.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct NotifySettings {
    pub smtp_url: Option<String>,
    pub from: Option<String>,
    pub webhook_url: Option<String>,
    pub webhook_secret: Option<String>,
    pub webhook_routing_key: Option<String>,
    pub webhook_hosts: Vec<String>,
    pub console_url: Option<String>,
    pub ca_file: Option<String>,
    pub texts_file: Option<String>,
}

/// Most of it is secret.
impl fmt::Debug for NotifySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotifySettings")
            .field("smtp", &self.smtp_url.is_some())
            .field("webhook", &self.webhook_url.is_some())
            .field("console_url", &self.console_url)
            .finish_non_exhaustive()
    }
}

impl NotifySettings {
    /// Refuses settings under which nobody would ever be told anything.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        let set = |key: &str, rule: &str| Err(InvalidSetting::new(key, rule));
        if self.smtp_url.is_some() && self.from.is_none() {
            return set("notify.from", "it must be set, because notify.smtp_url is");
        }
        if self.smtp_url.is_none() && self.from.is_some() {
            return set("notify.smtp_url", "it must be set, because notify.from is");
        }
        let webhooks = self.webhook_url.is_some() || !self.webhook_hosts.is_empty();
        if !webhooks && (self.webhook_secret.is_some() || self.webhook_routing_key.is_some()) {
            return set("notify.webhook_url", "it or notify.webhook_hosts must be set, or nothing is posted");
        }
        if let Some(console) = &self.console_url {
            let known = ["https://", "http://"].iter().any(|scheme| console.starts_with(scheme));
            let plain = console.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'<>@?#".contains(&byte));
            if !known || !plain {
                return set("notify.console_url", "it must be an address such as https://kagzi.example.org");
            }
        }
        self.texts()?;
        transports::check(self)
    }

    /// The texts of namespaces that have their own.
    pub fn texts(&self) -> Result<TextsFile, InvalidSetting> {
        let Some(path) = &self.texts_file else { return Ok(TextsFile::default()) };
        let wrong = |rule: String| InvalidSetting::new("notify.texts_file", rule);
        let json = std::fs::read_to_string(path)
            .map_err(|error| wrong(format!("could not read {path}: {error}")))?;
        TextsFile::read(&json).map_err(wrong)
    }

    /// What carries messages. Call it within a runtime.
    pub fn couriers(&self) -> Result<Couriers, InvalidSetting> {
        transports::couriers(self)
    }

    /// Whether anything is set that a build without transports could not do.
    #[cfg_attr(feature = "notify", allow(dead_code, reason = "this build can do all of it"))]
    fn first_key(&self) -> Option<&'static str> {
        let keys = [
            ("notify.smtp_url", self.smtp_url.is_some()),
            ("notify.webhook_url", self.webhook_url.is_some()),
            ("notify.webhook_hosts", !self.webhook_hosts.is_empty()),
        ];
        keys.into_iter().find(|(_, set)| *set).map(|(key, _)| key)
    }
}
