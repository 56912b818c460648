use super::view::NamespaceView;
use crate::output::{self, Format};
use crate::session::Session;
use crate::table;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// How many to list.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Go on where an earlier list ended.
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
}

#[derive(Serialize)]
struct Page {
    namespaces: Vec<NamespaceView>,
    next_page_token: Option<String>,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let token = args.page_token.unwrap_or_default();
    let answer = session.admin().await?.namespaces().page_size(args.limit).page(token).await?;
    let page = Page {
        namespaces: answer.rows.into_iter().map(NamespaceView::from).collect(),
        next_page_token: answer.next,
    };
    match session.format {
        Format::Json => output::print_json(&page),
        Format::Table => {
            output::print(&as_table(&page.namespaces))?;
            if let Some(token) = page.next_page_token {
                output::note(&format!("more with: --page-token '{token}'"));
            }
            Ok(())
        }
    }
}

fn as_table(namespaces: &[NamespaceView]) -> String {
    let mut table = table::with_columns(&["NAMESPACE", "STATUS", "LIMIT", "RETENTION", "DESCRIPTION"]);
    for namespace in namespaces {
        table.add_row([
            namespace.name.as_str().into(),
            table::mood_cell(namespace.status, namespace.mood),
            namespace.max_concurrent.map_or("-".to_owned(), |most| most.to_string()).into(),
            namespace.retention.clone().unwrap_or_else(|| "-".to_owned()).into(),
            namespace.description.as_str().into(),
        ]);
    }
    table::text(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ns::view::tests::sample;

    #[test]
    fn namespaces_as_a_table() {
        let mut plain = kagzi::admin::Namespace::default();
        plain.namespace_id = "default".into();

        insta::assert_snapshot!(as_table(&[plain.into(), sample().into()]));
    }
}
