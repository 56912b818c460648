//! `kagzi trigger …`: a run for every event on a topic.

use kagzi::admin::Trigger;
use serde::Serialize;

use crate::output::{self, Format};
use crate::paging::{Foot, Paging};
use crate::session::Session;
use crate::table;

#[derive(clap::Subcommand)]
pub enum Verb {
    /// Make a trigger: events that are published from now on start runs, with their value as the input.
    Create {
        /// Its name.
        id: String,
        /// Whose events start runs.
        #[arg(long)]
        topic: String,
        /// Only events with this key; whatever their key is unless it is said.
        #[arg(long)]
        key: Option<String>,
        /// What is started.
        #[arg(long = "type", value_name = "TYPE")]
        workflow_type: String,
        /// On which queue.
        #[arg(long)]
        queue: String,
    },
    /// List triggers by their names.
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// Delete a trigger. Runs that it started go on.
    Delete {
        /// Its name.
        id: String,
    },
}

#[derive(Serialize)]
struct View {
    trigger_id: String,
    topic: String,
    key: Option<String>,
    workflow_type: String,
    task_queue: String,
}

impl From<Trigger> for View {
    fn from(trigger: Trigger) -> View {
        View {
            trigger_id: trigger.id,
            topic: trigger.topic,
            key: trigger.key,
            workflow_type: trigger.workflow_type,
            task_queue: trigger.task_queue,
        }
    }
}

#[derive(Serialize)]
struct Page {
    triggers: Vec<View>,
    #[serde(flatten)]
    foot: Foot,
}

pub async fn perform(verb: Verb, session: &Session) -> anyhow::Result<()> {
    let admin = session.admin().await?;
    match verb {
        Verb::Create { id, topic, key, workflow_type, queue } => {
            let trigger = Trigger::new(id, topic, workflow_type, queue);
            let trigger = key.into_iter().fold(trigger, Trigger::key);
            let made = View::from(admin.create_trigger(trigger).await?);
            match session.format {
                Format::Json => output::print_json(&made),
                Format::Table => output::print(&format!(
                    "made trigger {}: events on '{}' start {} on queue {}",
                    made.trigger_id, made.topic, made.workflow_type, made.task_queue
                )),
            }
        }
        Verb::List { paging } => {
            let list = admin.triggers().page_size(paging.limit);
            let list = if paging.total { list.with_total() } else { list };
            let (triggers, foot) = Foot::split(list.page(paging.token()).await?, &paging);
            let page = Page { triggers, foot };
            match session.format {
                Format::Json => output::print_json(&page),
                Format::Table => {
                    output::print(&as_table(&page.triggers))?;
                    page.foot.note();
                    Ok(())
                }
            }
        }
        Verb::Delete { id } => {
            admin.delete_trigger(&id).await?;
            match session.format {
                Format::Json => output::print_json(&serde_json::json!({ "trigger_id": id, "deleted": true })),
                Format::Table => output::print(&format!("deleted trigger {id}")),
            }
        }
    }
}

fn as_table(triggers: &[View]) -> String {
    let mut table = table::with_columns(&["ID", "TOPIC", "KEY", "TYPE", "QUEUE"]);
    for trigger in triggers {
        let key = trigger.key.as_deref().unwrap_or("any");
        table.add_row([
            &trigger.trigger_id,
            &trigger.topic,
            key,
            &trigger.workflow_type,
            &trigger.task_queue,
        ]);
    }
    table::text(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_as_a_table() {
        let view = |key: Option<&str>| View {
            trigger_id: "ship-paid".into(),
            topic: "order.paid".into(),
            key: key.map(str::to_owned),
            workflow_type: "ship".into(),
            task_queue: "shipping".into(),
        };

        let table = as_table(&[view(None), view(Some("42"))]);

        let lines: Vec<String> =
            table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[0], "ID TOPIC KEY TYPE QUEUE");
        assert_eq!(lines[lines.len() - 2], "ship-paid order.paid any ship shipping");
        assert_eq!(lines[lines.len() - 1], "ship-paid order.paid 42 ship shipping");
    }
}
