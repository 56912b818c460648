//! Without the feature `notify`: people are told in their inbox only.

use super::{Couriers, NotifySettings};
use crate::config::InvalidSetting;

/// Refuses receivers: messages that are silently not sent would be missed too late.
pub fn check(settings: &NotifySettings) -> Result<(), InvalidSetting> {
    match settings.first_key() {
        None => Ok(()),
        Some(key) => Err(InvalidSetting::new(
            key,
            "this build sends neither e-mail nor webhooks; build it with the cargo feature `notify`",
        )),
    }
}

pub fn couriers(settings: &NotifySettings) -> Result<Couriers, InvalidSetting> {
    check(settings).map(|()| Couriers::new())
}
