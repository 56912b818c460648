//! `kagzi event …`: publish events, and see which are kept.

use std::time::Duration;

use kagzi::admin::KeptEvent;
use serde::Serialize;

use crate::output::{self, Format};
use crate::paging::{Foot, Paging};
use crate::session::Session;
use crate::{input, table, time_text};

#[derive(clap::Subcommand)]
pub enum Verb {
    /// Publish an event: every run that waits for it goes on, and triggers start runs.
    Publish {
        /// What kind of event it is, order.paid for one.
        topic: String,
        /// Its value: JSON, @FILE, or - for stdin; nothing = null.
        #[arg(default_value = "null", hide_default_value = true)]
        value: String,
        /// Which one it is about: it reaches waits with the same key.
        #[arg(long, default_value = "", hide_default_value = true)]
        key: String,
        /// Your own name for this event: published twice, it counts once.
        #[arg(long = "event-id", visible_alias = "id")]
        event_id: Option<String>,
        /// How long it is kept for runs that wait for it later, 90s, 5m, 2h or 7d. A day unless it is said.
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        keep: Option<Duration>,
    },
    /// List events that are kept, by topic, key and time.
    List {
        /// Only events of this topic.
        #[arg(long, default_value = "", hide_default_value = true)]
        topic: String,
        #[command(flatten)]
        paging: Paging,
    },
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration; write 90s, 5m, 2h or 7d");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let number: u32 = number.parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(u64::from(number) * seconds))
}

#[derive(Serialize)]
struct Sent<'a> {
    topic: &'a str,
    key: &'a str,
    event_id: &'a str,
    already_published: bool,
}

#[derive(Serialize)]
struct View {
    topic: String,
    key: Option<String>,
    event_id: String,
    published_at: Option<jiff::Timestamp>,
    expires_at: Option<jiff::Timestamp>,
    delivered: bool,
    payload_bytes: u64,
}

impl From<KeptEvent> for View {
    fn from(event: KeptEvent) -> View {
        View {
            topic: event.topic,
            key: event.key,
            event_id: event.id,
            published_at: time_text::of(Some(event.published_at)),
            expires_at: time_text::of(Some(event.expires_at)),
            delivered: event.delivered,
            payload_bytes: event.payload_bytes,
        }
    }
}

#[derive(Serialize)]
struct Page {
    events: Vec<View>,
    #[serde(flatten)]
    foot: Foot,
}

pub async fn perform(verb: Verb, session: &Session) -> anyhow::Result<()> {
    match verb {
        Verb::Publish { topic, value, key, event_id, keep } => {
            let value: serde_json::Value = serde_json::from_slice(&input::read(&value)?)?;
            let mut publish = session.client().await?.publish(&topic, &value).key(&key);
            if let Some(id) = event_id {
                publish = publish.id(id);
            }
            if let Some(keep) = keep {
                publish = publish.keep(keep);
            }
            let sent = publish.await?;
            let (event_id, already_published) = (sent.id.as_str(), sent.already);
            match session.format {
                Format::Json => {
                    output::print_json(&Sent { topic: &topic, key: &key, event_id, already_published })
                }
                Format::Table => {
                    output::note(&match already_published {
                        true => {
                            format!("event {event_id} on '{topic}' was published before; nothing was done")
                        }
                        false => format!("published event {event_id} on '{topic}'"),
                    });
                    Ok(())
                }
            }
        }
        Verb::List { topic, paging } => {
            let list = session.admin().await?.events().topic(topic).page_size(paging.limit);
            let list = if paging.total { list.with_total() } else { list };
            let (events, foot) = Foot::split(list.page(paging.token()).await?, &paging);
            let page = Page { events, foot };
            match session.format {
                Format::Json => output::print_json(&page),
                Format::Table => {
                    output::print(&as_table(&page.events, time_text::now()))?;
                    page.foot.note();
                    Ok(())
                }
            }
        }
    }
}

fn as_table(events: &[View], now: jiff::Timestamp) -> String {
    let mut table =
        table::with_columns(&["TOPIC", "KEY", "EVENT", "PUBLISHED", "EXPIRES", "DELIVERED", "BYTES"]);
    let time = |at: Option<jiff::Timestamp>| at.map_or("-".into(), |at| time_text::relative(at, now));
    for event in events {
        table.add_row([
            event.topic.clone(),
            event.key.clone().unwrap_or_else(|| "-".into()),
            event.event_id.clone(),
            time(event.published_at),
            time(event.expires_at),
            if event.delivered { "yes" } else { "on its way" }.to_owned(),
            event.payload_bytes.to_string(),
        ]);
    }
    table::text(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_an_event_is_kept_is_said_in_one_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(604_800)));
        for wrong in ["", "d", "7", "7w", "-1d", "é"] {
            assert!(duration(wrong).unwrap_err().contains("90s, 5m, 2h or 7d"), "{wrong}");
        }
    }

    #[test]
    fn events_as_a_table() {
        let now = jiff::Timestamp::from_second(1_000).unwrap();
        let event = View {
            topic: "order.paid".into(),
            key: None,
            event_id: "e-9".into(),
            published_at: jiff::Timestamp::from_second(940).ok(),
            expires_at: jiff::Timestamp::from_second(4_600).ok(),
            delivered: false,
            payload_bytes: 3,
        };

        let table = as_table(&[event], now);

        let last = table.lines().last().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(last.starts_with("order.paid - e-9 "), "{last}");
        assert!(last.ends_with(" on its way 3"), "{last}");
    }
}
