use super::view::NamespaceView;
use crate::output::{self, Format};
use crate::paging::{Foot, Paging};
use crate::session::Session;
use crate::table;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    paging: Paging,
}

#[derive(Serialize)]
struct Page {
    namespaces: Vec<NamespaceView>,
    #[serde(flatten)]
    foot: Foot,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let paging = args.paging;
    let namespaces = session.admin().await?.namespaces().page_size(paging.limit);
    let namespaces = if paging.total { namespaces.with_total() } else { namespaces };
    let (namespaces, foot) = Foot::split(namespaces.page(paging.token()).await?, &paging);
    let page = Page { namespaces, foot };
    match session.format {
        Format::Json => output::print_json(&page),
        Format::Table => {
            output::print(&as_table(&page.namespaces))?;
            page.foot.note();
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
