//! `kagzi once …`: shared keys, for people.

use std::time::SystemTime;

use kagzi::client::KeyView;
use serde::Serialize;

use crate::output::{self, Format};
use crate::paging::{Foot, Paging};
use crate::session::Session;
use crate::table;
use crate::time_text;

#[derive(clap::Subcommand)]
pub enum Verb {
    /// List shared keys by their text.
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a shared key, with its result.
    Show {
        /// Its text.
        key: String,
    },
    /// Forget a shared key: the next who names it does the work again.
    Forget {
        /// Its text.
        key: String,
    },
}

#[derive(Serialize)]
struct View {
    key: String,
    state: &'static str,
    holder: String,
    fence: u64,
    claimed_at: Option<String>,
    finished_at: Option<String>,
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<serde_json::Value>,
}

impl From<KeyView> for View {
    fn from(key: KeyView) -> View {
        let time = |at: Option<SystemTime>| time_text::of(at).map(|at| at.to_string());
        View {
            key: key.key,
            state: key.state,
            holder: key.holder,
            fence: key.fence,
            claimed_at: time(key.claimed_at),
            finished_at: time(key.finished_at),
            expires_at: time(key.expires_at),
            failure: key.failure.map(|failure| format!("{}: {}", failure.code, failure.message)),
            result: key.result,
        }
    }
}

#[derive(Serialize)]
struct Page {
    keys: Vec<View>,
    #[serde(flatten)]
    foot: Foot,
}

pub async fn perform(verb: Verb, session: &Session) -> anyhow::Result<()> {
    let client = session.client().await?;
    match verb {
        Verb::List { paging } => {
            let list = client.shared_keys().page_size(paging.limit);
            let list = if paging.total { list.with_total() } else { list };
            let (keys, foot) = Foot::split(list.page(paging.token()).await?, &paging);
            let page = Page { keys, foot };
            match session.format {
                Format::Json => output::print_json(&page),
                Format::Table => {
                    output::print(&as_table(&page.keys))?;
                    page.foot.note();
                    Ok(())
                }
            }
        }
        Verb::Show { key } => {
            let view = View::from(client.key(key).await?);
            match session.format {
                Format::Json => output::print_json(&view),
                Format::Table => output::print(&as_text(&view)),
            }
        }
        Verb::Forget { key } => {
            client.forget_key(&key).await?;
            match session.format {
                Format::Json => output::print_json(&serde_json::json!({ "key": key, "forgotten": true })),
                Format::Table => output::print(&format!("forgot {key}: the next who names it does the work")),
            }
        }
    }
}

fn as_table(keys: &[View]) -> String {
    let mut table = table::with_columns(&["KEY", "STATE", "HOLDER", "CLAIMED", "EXPIRES"]);
    for key in keys {
        let time = |at: &Option<String>| at.clone().unwrap_or_default();
        let (claimed, expires) = (time(&key.claimed_at), time(&key.expires_at));
        table.add_row([key.key.clone(), key.state.to_owned(), key.holder.clone(), claimed, expires]);
    }
    table::text(table)
}

fn as_text(key: &View) -> String {
    let mut table = table::with_columns(&["FIELD", "VALUE"]);
    let result = key.result.as_ref().map(ToString::to_string);
    let rows = [
        ("key", Some(key.key.clone())),
        ("state", Some(key.state.to_owned())),
        ("holder", Some(key.holder.clone())),
        ("fence", Some(key.fence.to_string())),
        ("claimed", key.claimed_at.clone()),
        ("finished", key.finished_at.clone()),
        ("expires", key.expires_at.clone()),
        ("failure", key.failure.clone()),
        ("result", result),
    ];
    for (field, value) in rows {
        if let Some(value) = value {
            table.add_row([field.to_owned(), value]);
        }
    }
    table::text(table)
}
