//! `kagzi run tree`: a run, the runs that it has started, and theirs.

use kagzi::Client;
use kagzi::client::Run;
use serde::Serialize;

use super::find;
use crate::output::{self, Format};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
    /// Begin at the run above all others instead.
    #[arg(long)]
    top: bool,
    /// How many generations of children to show.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    depth: u32,
    /// Most children of one run to show.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

/// One run of the tree.
#[derive(Serialize)]
struct Node {
    run_id: String,
    /// The step of its parent that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    workflow_type: String,
    task_queue: String,
    /// None = it is not kept any more.
    status: Option<&'static str>,
    children: Vec<Node>,
    /// There are more children than were asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let client = session.client().await?;
    let mut run = find::run(&client, &args.id).await?;
    while let Some(above) = run.parent_run_id.clone().filter(|_| args.top) {
        run = client.get(above).await?;
    }
    let tree = grow(&client, (run.run_id.clone(), None), Some(run), (args.depth, args.limit)).await?;
    match session.format {
        Format::Json => output::print_json(&tree),
        Format::Table => {
            let mut lines = Vec::new();
            draw(&tree, "", "", &mut lines);
            output::print(&lines.join("\n"))?;
            Ok(())
        }
    }
}

/// The run with its children, as its history names them.
fn grow<'a>(
    client: &'a Client,
    (run_id, step): (String, Option<String>),
    run: Option<Run>,
    (depth, limit): (u32, u16),
) -> std::pin::Pin<Box<dyn Future<Output = anyhow::Result<Node>> + Send + 'a>> {
    Box::pin(async move {
        let run = match run {
            Some(run) => Some(run),
            None => match client.get(&run_id).await {
                Err(error) if error.is_not_found() => None,
                answer => Some(answer?),
            },
        };
        let Some(run) = run else {
            let (workflow_type, task_queue) = (String::new(), String::new());
            let (children, more, status) = (vec![], false, None);
            return Ok(Node { run_id, step, workflow_type, task_queue, status, children, more });
        };
        let started =
            client.handle(&run_id).history().kind("child_started").page_size(limit).page("").await?;
        let mut children = Vec::new();
        for event in started.rows.iter().filter(|_| depth > 0) {
            let Some(child) = event.detail["child"].as_str() else { continue };
            let named = (child.to_owned(), event.step.clone());
            children.push(grow(client, named, None, (depth - 1, limit)).await?);
        }
        let more = started.next.is_some() || (depth == 0 && !started.rows.is_empty());
        let Run { run_id, workflow_type, task_queue, status, .. } = run;
        Ok(Node { run_id, step, workflow_type, task_queue, status: Some(status.name()), children, more })
    })
}

fn draw(node: &Node, first: &str, rest: &str, lines: &mut Vec<String>) {
    let step = node.step.as_deref().map_or_else(String::new, |step| format!("{step}: "));
    let what = match node.status {
        Some(status) => format!("{status} {} on {}", node.workflow_type, node.task_queue),
        None => "no longer kept".to_owned(),
    };
    lines.push(format!("{first}{step}{}  {what}", node.run_id));
    let last = node.children.len() - usize::from(!node.children.is_empty() && !node.more);
    for (number, child) in node.children.iter().enumerate() {
        let (branch, below) = if number == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        draw(child, &format!("{rest}{branch}"), &format!("{rest}{below}"), lines);
    }
    if node.more {
        lines.push(format!("{rest}└─ …  more; see --depth and --limit"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(run_id: &str, step: Option<&str>, children: Vec<Node>) -> Node {
        let (workflow_type, task_queue) = ("order".to_owned(), "main".to_owned());
        let (run_id, step) = (run_id.to_owned(), step.map(str::to_owned));
        Node { run_id, step, workflow_type, task_queue, status: Some("RUNNING"), children, more: false }
    }

    #[test]
    fn a_tree_is_drawn_with_its_branches() {
        let gone = Node { status: None, ..node("4", Some("bill"), vec![]) };
        let mut tree =
            node("1", None, vec![node("2", Some("ship"), vec![node("3", Some("pack"), vec![])]), gone]);
        let drawn = |tree: &Node| {
            let mut lines = Vec::new();
            draw(tree, "", "", &mut lines);
            lines
        };

        let lines = [
            "1  RUNNING order on main",
            "├─ ship: 2  RUNNING order on main",
            "│  └─ pack: 3  RUNNING order on main",
            "└─ bill: 4  no longer kept",
        ];
        assert_eq!(drawn(&tree), lines);
        tree.more = true;
        assert_eq!(drawn(&tree)[3..], ["├─ bill: 4  no longer kept", "└─ …  more; see --depth and --limit"]);
    }
}
