//! Webhooks: one signed POST to an address that an operator set.
//!
//! A message is never sent to an address that the server's settings do not know: a contact may choose among
//! the hosts that they name, and no redirect leads away from them.

mod body;
mod post;
mod signature;
mod target;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use rustls::ClientConfig;

use crate::{Courier, Outcome, Parcel, email::SettingsError, trust};

pub use body::body;
pub use signature::sign;
pub use target::{Target, TargetError};

/// Longest try: finding the host, connecting, sending, and the head of the answer.
pub const POST_MAX: Duration = Duration::from_secs(10);

/// Where messages are posted, and how they prove that they are ours.
#[derive(Clone, Default)]
pub struct WebhookSettings {
    /// The address for contacts that have none of their own.
    pub url: Option<String>,
    /// The secret that receivers know too. None: messages are not signed.
    pub secret: Option<String>,
    /// The key that on-call services such as PagerDuty want in the body.
    pub routing_key: Option<String>,
    /// Hosts that a contact's own address may name, beside that of `url`.
    pub hosts: Vec<String>,
    /// An authority beside those of the machine, in PEM.
    pub authority_pem: Option<Vec<u8>>,
}

/// Carries messages as POST requests.
pub struct WebhookCourier {
    standard: Option<Target>,
    secret: Option<String>,
    routing_key: Option<String>,
    hosts: Vec<String>,
    tls: Arc<ClientConfig>,
}

impl WebhookCourier {
    /// Checks the settings.
    pub fn new(settings: &WebhookSettings) -> Result<WebhookCourier, SettingsError> {
        let read = |url: &String| {
            Target::read(url).map_err(|error| SettingsError::new("webhook_url", error.to_string()))
        };
        let standard = settings.url.as_ref().map(read).transpose()?;
        if settings.secret.as_ref().is_some_and(|secret| secret.len() < SECRET_BYTES_MIN) {
            return Err(SettingsError::new(
                "webhook_secret",
                format!("it must have at least {SECRET_BYTES_MIN} characters, or anybody could guess it"),
            ));
        }
        let mut hosts: Vec<_> = settings.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        hosts.extend(standard.iter().map(|target| target.host().to_owned()));
        let tls = trust::client_config(settings.authority_pem.as_deref())?;
        let (secret, routing_key) = (settings.secret.clone(), settings.routing_key.clone());
        Ok(WebhookCourier { standard, secret, routing_key, hosts, tls })
    }

    /// Where a message goes, or why nowhere.
    fn target(&self, own: Option<&str>) -> Result<Target, Outcome> {
        let permanent = |why: String| Outcome::Permanent { why };
        let Some(own) = own else {
            let missing = "the contact has no webhook and notify.webhook_url is not set";
            return self.standard.clone().ok_or_else(|| permanent(missing.into()));
        };
        let target =
            Target::read(own).map_err(|error| permanent(format!("the contact's webhook: {error}")))?;
        match self.hosts.iter().any(|host| host == target.host()) {
            true => Ok(target),
            false => Err(permanent(format!(
                "the contact's webhook names {}, which is not in notify.webhook_hosts",
                target.host()
            ))),
        }
    }
}

/// A shorter secret is guessed.
const SECRET_BYTES_MIN: usize = 16;

#[async_trait]
impl Courier for WebhookCourier {
    async fn carry(&self, parcel: &Parcel) -> Outcome {
        let target = match self.target(parcel.contact.webhook.as_deref()) {
            Ok(target) => target,
            Err(nowhere) => return nowhere,
        };
        let body = body(parcel, self.routing_key.as_deref()).to_string();
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("user-agent", concat!("kagzi/", env!("CARGO_PKG_VERSION")).to_owned()),
            ("kagzi-notice-id", parcel.wire_id()),
        ];
        if let Some(secret) = &self.secret {
            // The time is that of the try: a receiver refuses what is old, and a retry is not.
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            headers.push(("kagzi-signature", sign(secret, now.as_secs(), body.as_bytes())));
        }
        let posting = post::post(&target, &self.tls, headers, body);
        match tokio::time::timeout(POST_MAX, posting).await {
            Ok(Ok(answer)) => judged(&answer),
            Ok(Err(error)) => Outcome::temporary(format!("{}: {error}", target.host())),
            Err(_) => {
                Outcome::temporary(format!("{}: no answer within {} s", target.host(), POST_MAX.as_secs()))
            }
        }
    }
}

/// What refuses this message for good is final. What an operator can mend for all messages, such as an
/// address that has moved or a key that is missing, is tried again.
fn judged(answer: &post::Answer) -> Outcome {
    let status = answer.status;
    let why = match answer.beginning.as_str() {
        "" => format!("status {status}"),
        said => format!("status {status}: {said}"),
    };
    match status {
        200..=299 => Outcome::Taken,
        300..=399 => Outcome::temporary(format!("{why} (redirects are not followed)")),
        401 | 403 | 404 | 407 | 408 | 425 => Outcome::temporary(why),
        429 | 503 => Outcome::Temporary { why, after_ms: answer.retry_after_ms },
        400..=499 => Outcome::Permanent { why },
        _ => Outcome::temporary(why),
    }
}
