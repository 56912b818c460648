//! E-mail and webhooks as the settings say.

use std::sync::Arc;

use kagzi_notices::{
    Channel,
    email::{EmailCourier, EmailSettings, SettingsError},
    webhook::{WebhookCourier, WebhookSettings},
};

use super::{Couriers, NotifySettings};
use crate::config::InvalidSetting;

pub fn check(settings: &NotifySettings) -> Result<(), InvalidSetting> {
    let authority = authority(settings)?;
    if let Some(email) = email(settings, authority.clone()) {
        email.check().map_err(invalid)?;
    }
    if let Some(webhook) = webhook(settings, authority) {
        WebhookCourier::new(&webhook).map_err(invalid)?;
    }
    Ok(())
}

pub fn couriers(settings: &NotifySettings) -> Result<Couriers, InvalidSetting> {
    let mut couriers = Couriers::new();
    let authority = authority(settings)?;
    if let Some(email) = email(settings, authority.clone()) {
        couriers.insert(Channel::Email, Arc::new(EmailCourier::new(&email).map_err(invalid)?));
    }
    if let Some(webhook) = webhook(settings, authority) {
        couriers.insert(Channel::Webhook, Arc::new(WebhookCourier::new(&webhook).map_err(invalid)?));
    }
    Ok(couriers)
}

fn email(settings: &NotifySettings, authority_pem: Option<Vec<u8>>) -> Option<EmailSettings> {
    let (smtp_url, from) = (settings.smtp_url.clone()?, settings.from.clone()?);
    Some(EmailSettings { smtp_url, from, authority_pem })
}

fn webhook(settings: &NotifySettings, authority_pem: Option<Vec<u8>>) -> Option<WebhookSettings> {
    if settings.webhook_url.is_none() && settings.webhook_hosts.is_empty() {
        return None;
    }
    Some(WebhookSettings {
        url: settings.webhook_url.clone(),
        secret: settings.webhook_secret.clone(),
        routing_key: settings.webhook_routing_key.clone(),
        hosts: settings.webhook_hosts.clone(),
        authority_pem,
    })
}

fn authority(settings: &NotifySettings) -> Result<Option<Vec<u8>>, InvalidSetting> {
    let Some(path) = &settings.ca_file else { return Ok(None) };
    let unreadable = |error| InvalidSetting::new("notify.ca_file", format!("could not read {path}: {error}"));
    std::fs::read(path).map(Some).map_err(unreadable)
}

fn invalid(SettingsError { key, rule }: SettingsError) -> InvalidSetting {
    InvalidSetting::new(&format!("notify.{key}"), rule)
}
