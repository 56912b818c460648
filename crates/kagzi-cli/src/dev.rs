use crate::config_args::{ConfigArgs, flag};
use crate::{logs, output, serve, stop};
use anyhow::Context;
use kagzi_server::{Server, StoreUrl};
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// The address to listen on; port 0 takes any free one [key: server.address] [default: 127.0.0.1:50051]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// The directory that keeps the data [default: .kagzi, unless store.url is configured]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// How log lines look [key: log.format] [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    log_format: Option<String>,
}

pub async fn perform(args: Args) -> anyhow::Result<()> {
    let flags = [
        flag("--listen", "server.address", args.listen),
        flag("--log-format", "log.format", args.log_format),
    ];
    let loaded = args.config.load(flags.into_iter().flatten().collect())?;
    logs::install(&loaded)?;
    let store = match (args.data, &loaded.config.store.url) {
        (None, Some(configured)) => configured.clone(),
        (data, _) => in_directory(data.unwrap_or_else(|| ".kagzi".into()))?,
    };
    let options = serve::options(&loaded, store.clone());
    let shutdown = CancellationToken::new();
    let ready = move |address| {
        // A closed stdout means that nobody reads the greeting; the server serves all the same.
        let _ = output::print(&greeting(address, &store));
    };
    stop::on_signal(shutdown.clone(), Server::serve(options, ready, shutdown)).await
}

fn in_directory(data: PathBuf) -> anyhow::Result<StoreUrl> {
    std::fs::create_dir_all(&data)
        .with_context(|| format!("could not create data directory {}", data.display()))?;
    Ok(StoreUrl::Sqlite(data.join("kagzi.db")))
}

fn greeting(address: SocketAddr, store: &StoreUrl) -> String {
    let to_it = match address.to_string().as_str() {
        "127.0.0.1:50051" => String::new(),
        elsewhere => format!(" --address {elsewhere}"),
    };
    let data = match store {
        StoreUrl::Sqlite(file) => file.display().to_string(),
        StoreUrl::Turso(_) | StoreUrl::Postgres(_) | StoreUrl::Memory => store.to_string(),
    };
    format!(
        "\
Kagzi is ready.
  address  {address}
  data     {data}
  next     kagzi run start hello --input '{{\"name\":\"Ada\"}}'{to_it}
           kagzi doctor{to_it}
Stop with Ctrl-C; the data stays."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greeting_names_address_data_and_a_next_command_that_reaches_this_server() {
        let greeting =
            greeting("127.0.0.1:7000".parse().unwrap(), &StoreUrl::Sqlite(".kagzi/kagzi.db".into()));

        insta::assert_snapshot!(greeting, @r#"
        Kagzi is ready.
          address  127.0.0.1:7000
          data     .kagzi/kagzi.db
          next     kagzi run start hello --input '{"name":"Ada"}' --address 127.0.0.1:7000
                   kagzi doctor --address 127.0.0.1:7000
        Stop with Ctrl-C; the data stays.
        "#);
    }
}
