use crate::config_args::ConfigArgs;
use crate::output::{self, Format};
use crate::table;
use kagzi_server::config::{Effective, Loaded};
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    config: ConfigArgs,
}

pub fn perform(args: Args, format: Format) -> anyhow::Result<()> {
    let loaded = args.config.load(Vec::new())?;
    match format {
        Format::Table => output::print(&as_table(&loaded)),
        Format::Json => output::print_json(&loaded.values().iter().map(View::of).collect::<Vec<_>>()),
    }
}

#[derive(Serialize)]
struct View {
    key: String,
    value: serde_json::Value,
    from: String,
}

impl View {
    fn of(effective: &Effective) -> View {
        View { key: effective.key.path(), value: effective.value.clone(), from: effective.origin.to_string() }
    }
}

fn as_table(loaded: &Loaded) -> String {
    let mut table = table::with_columns(&["KEY", "VALUE", "FROM"]);
    for view in loaded.values().iter().map(View::of) {
        let value = if view.value.is_null() { "not set".to_owned() } else { view.value.to_string() };
        table.add_row([view.key, value, view.from]);
    }
    table::text(table)
}
