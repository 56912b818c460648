//! A message as a letter: headers that no title can add to, a text and a page.

use lettre::{
    Address, Message,
    message::{
        Mailbox, MultiPart,
        header::{HeaderName, HeaderValue},
    },
};

use super::date;
use crate::{Parcel, clean};

/// Writes the letter of a message, or says why it can never be sent.
pub(super) fn write(parcel: &Parcel, from: &Mailbox) -> Result<Message, String> {
    let address = parcel.contact.email.as_deref().unwrap_or_default();
    let address: Address = address.trim().parse().map_err(|error| {
        format!(
            "contact '{}' has no address that mail can be sent to: {error}",
            clean::line(&parcel.contact.name, 50)
        )
    })?;
    let name = Some(clean::line(&parcel.contact.name, 100)).filter(|name| !name.is_empty());
    let header =
        |name: &'static str, value: String| HeaderValue::new(HeaderName::new_from_ascii_str(name), value);
    Message::builder()
        .from(from.clone())
        .to(Mailbox::new(name, address))
        .subject(clean::line(&parcel.message.subject, 200))
        .date(date(parcel.created_at))
        .message_id(Some(format!("<{}@{}>", parcel.wire_id(), from.email.domain())))
        // Programs that answer by themselves, such as "I am on holiday", leave such letters alone.
        .raw_header(header("Auto-Submitted", "auto-generated".into()))
        .raw_header(header("Kagzi-Notice-Id", parcel.wire_id()))
        .multipart(MultiPart::alternative_plain_html(
            parcel.message.text.clone(),
            parcel.message.html.clone(),
        ))
        .map_err(|error| format!("the letter cannot be written: {error}"))
}
