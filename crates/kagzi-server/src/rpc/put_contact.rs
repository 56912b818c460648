//! PutContact: how a person is reached, and to which groups the person belongs.

use kagzi_engine::Engine;
use kagzi_model::{
    Name,
    intervention::{Channel, Contact, ContactRule, is_group},
};
use kagzi_notices::{QuietHours, contact::is_zone};
use kagzi_proto::v1;
use tonic::Status;

use crate::{
    check::{self, invalid},
    status::from_engine,
    wire,
};

/// Most groups of one person.
const GROUPS_MAX: usize = 50;

pub async fn handle(
    engine: &Engine,
    request: v1::PutContactRequest,
) -> Result<v1::PutContactResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let asked = request.contact.unwrap_or_default();
    let name = check::name("contact.name", &asked.name)?;
    if is_group(&name) || *name == *kagzi_store::ANYBODY {
        return Err(invalid("contact.name", &*name, "it must be a person, and no group"));
    }
    let contact = read(asked)?;
    let rule = ContactRule::Put { namespace, name: name.clone(), contact: contact.clone() };
    engine.change_noun(rule).await.map_err(from_engine)?;
    Ok(v1::PutContactResponse { contact: Some(wire::contact(&name, contact)) })
}

fn read(asked: v1::Contact) -> Result<Contact, Status> {
    let groups = asked.groups.iter().map(|group| check::name("contact.groups", group));
    let groups: Vec<Name> = groups.collect::<Result<_, _>>()?;
    if groups.len() > GROUPS_MAX {
        return Err(invalid("contact.groups", groups.len(), format!("at most {GROUPS_MAX} are allowed")));
    }
    let channel = |name: &String| {
        Channel::from_name(name)
            .ok_or_else(|| invalid("contact.channels", name, "it must be email, webhook or push"))
    };
    let is_url = asked.webhook.starts_with("https://") || asked.webhook.starts_with("http://");
    if !asked.webhook.is_empty() && !is_url {
        return Err(invalid("contact.webhook", &asked.webhook, "it must begin with http:// or https://"));
    }
    if !asked.email.is_empty() && (!asked.email.contains('@') || asked.email.contains(char::is_whitespace)) {
        return Err(invalid("contact.email", &asked.email, "it must be an address"));
    }
    let long = [&asked.email, &asked.webhook, &asked.time_zone].into_iter().find(|text| text.len() > 1_024);
    if let Some(long) = long {
        return Err(invalid("contact", long, "nothing in it is longer than 1024 bytes"));
    }
    if !(asked.quiet_from.is_empty() && asked.quiet_to.is_empty())
        && let Err(wrong) = QuietHours::new(&asked.quiet_from, &asked.quiet_to)
    {
        let written = format!("{}-{}", asked.quiet_from, asked.quiet_to);
        return Err(invalid("contact.quiet_from", &written, wrong.to_string()));
    }
    if !asked.time_zone.is_empty() && !is_zone(&asked.time_zone) {
        return Err(invalid(
            "contact.time_zone",
            &asked.time_zone,
            "it must be a name such as Europe/Berlin",
        ));
    }
    Ok(Contact {
        email: asked.email,
        webhook: asked.webhook,
        groups,
        channels: asked.channels.iter().map(channel).collect::<Result<_, _>>()?,
        time_zone: asked.time_zone,
        quiet_from: asked.quiet_from,
        quiet_to: asked.quiet_to,
    })
}
