use crate::logs::{self, LogFormat};
use crate::{output, stop};
use anyhow::Context;
use kagzi_server::StoreUrl;
use kagzi_server::{Options, Server, Settings};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

#[derive(clap::Args)]
pub struct Args {
    /// The address to listen on; port 0 takes any free one.
    #[arg(long, default_value = "127.0.0.1:50051", value_name = "ADDR")]
    listen: SocketAddr,
    /// The directory that keeps the data.
    #[arg(long, default_value = ".kagzi", value_name = "DIR")]
    data: PathBuf,
}

pub async fn perform(args: Args) -> anyhow::Result<()> {
    logs::install(LogFormat::Text);
    std::fs::create_dir_all(&args.data)
        .with_context(|| format!("could not create data directory {}", args.data.display()))?;
    let file = args.data.join("kagzi.db");
    let options = Options {
        listen: args.listen,
        store: StoreUrl::Sqlite(file.clone()),
        insecure: false,
        settings: Settings::default(),
    };
    let shutdown = CancellationToken::new();
    let ready = move |address| {
        // A closed stdout means that nobody reads the greeting; the server serves all the same.
        let _ = output::print(&greeting(address, &file));
    };
    stop::on_signal(shutdown.clone(), Server::serve(options, ready, shutdown)).await
}

fn greeting(address: SocketAddr, file: &Path) -> String {
    let to_it = match address.to_string().as_str() {
        "127.0.0.1:50051" => String::new(),
        elsewhere => format!(" --address {elsewhere}"),
    };
    format!(
        "\
Kagzi is ready.
  address  {address}
  data     {}
  next     kagzi run start hello --input '{{\"name\":\"Ada\"}}'{to_it}
           kagzi doctor{to_it}
Stop with Ctrl-C; the data stays.",
        file.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greeting_names_address_data_and_a_next_command_that_reaches_this_server() {
        let greeting = greeting("127.0.0.1:7000".parse().unwrap(), Path::new(".kagzi/kagzi.db"));

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
