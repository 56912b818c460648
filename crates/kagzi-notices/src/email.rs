//! E-mail by SMTP: one message to one address, always with the same id and date, however often it is tried.

mod letter;
mod server;

use std::{
    error::Error,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use kagzi_model::Timestamp;
use lettre::{
    AsyncSmtpTransport, AsyncTransport, Tokio1Executor,
    message::Mailbox,
    transport::smtp::{self, PoolConfig},
};

use crate::{Courier, Outcome, Parcel};

/// Longest step of a conversation with a mail server: connecting, or the answer to one command.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Longest conversation.
const CONVERSATION_MAX: Duration = Duration::from_secs(25);
/// Connections that are kept, so that a burst of messages does not begin TLS for each.
const CONNECTIONS_MAX: u32 = 10;

/// Which server takes e-mail, and in whose name.
#[derive(Clone)]
pub struct EmailSettings {
    /// `smtps://USER:PASSWORD@HOST`, `smtp://USER:PASSWORD@HOST:587` (with STARTTLS), or
    /// `smtp://HOST?tls=none`.
    pub smtp_url: String,
    /// `Kagzi <kagzi@example.org>`
    pub from: String,
    /// An authority beside those of the machine, in PEM.
    pub authority_pem: Option<Vec<u8>>,
}

impl EmailSettings {
    /// Finds what is wrong without connecting to anybody.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.mailbox()?;
        server::builder(&self.smtp_url, self.authority_pem.as_deref()).map(|_| ())
    }

    fn mailbox(&self) -> Result<Mailbox, SettingsError> {
        self.from.parse().map_err(|error| {
            SettingsError::new("from", format!("it is no address ({error}); write kagzi@example.org"))
        })
    }
}

/// A setting under which nothing can be sent, by its key below `notify`. It never repeats a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("notify.{key}: {rule}")]
pub struct SettingsError {
    pub key: &'static str,
    pub rule: String,
}

impl SettingsError {
    pub(crate) fn new(key: &'static str, rule: impl Into<String>) -> SettingsError {
        SettingsError { key, rule: rule.into() }
    }
}

/// Carries messages by e-mail.
pub struct EmailCourier {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl EmailCourier {
    /// Checks the settings. It connects only when there is something to send. Call it within a runtime: its
    /// pool of connections has a task.
    pub fn new(settings: &EmailSettings) -> Result<EmailCourier, SettingsError> {
        let from = settings.mailbox()?;
        let transport = server::builder(&settings.smtp_url, settings.authority_pem.as_deref())?
            .timeout(Some(ANSWER_MAX))
            .pool_config(PoolConfig::new().max_size(CONNECTIONS_MAX))
            .build();
        Ok(EmailCourier { transport, from })
    }
}

#[async_trait]
impl Courier for EmailCourier {
    async fn carry(&self, parcel: &Parcel) -> Outcome {
        let letter = match letter::write(parcel, &self.from) {
            Ok(letter) => letter,
            Err(why) => return Outcome::Permanent { why },
        };
        match tokio::time::timeout(CONVERSATION_MAX, self.transport.send(letter)).await {
            Ok(Ok(_)) => Outcome::Taken,
            Ok(Err(error)) => judged(&error),
            Err(_) => Outcome::temporary(format!(
                "the mail server did not finish within {} s",
                CONVERSATION_MAX.as_secs()
            )),
        }
    }
}

/// A refusal for good concerns this message. What concerns the login can be mended by an operator, for this
/// message too, so it is tried again.
fn judged(error: &smtp::Error) -> Outcome {
    let why = told(error);
    let code = error.status().map(u16::from);
    match code {
        Some(530 | 534 | 535 | 538) => Outcome::temporary(why),
        Some(500..=599) => Outcome::Permanent { why },
        Some(_) | None => Outcome::temporary(why),
    }
}

/// The error with its causes: lettre's own sentence says only which kind it is.
fn told(error: &smtp::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let inner = error.to_string();
        if !text.contains(&inner) {
            text.push_str(": ");
            text.push_str(&inner);
        }
        cause = error.source();
    }
    text
}

/// As letters say it, in whole seconds.
fn date(at: Timestamp) -> SystemTime {
    let micros = u64::try_from(at.0).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::from_secs(micros / 1_000_000)
}
