//! `kagzi once …` against a real server.

mod stage;

use kagzi::Client;
use stage::{Server, json, refused};

#[tokio::test]
async fn keys_are_listed_shown_and_forgotten() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(&home.path().join("kagzi.db")).await;
    let client = Client::connect(server.address.clone()).await.unwrap();
    for (key, rows) in [("import:1", 41), ("import:2", 42)] {
        assert_eq!(client.once(key).run(|_| async move { Ok(rows) }).await.unwrap(), rows);
    }

    let listed = json(&server, &["once", "list"]).await;
    let keys: Vec<_> = listed["keys"].as_array().unwrap().iter().map(|key| key["key"].clone()).collect();
    assert_eq!(keys, ["import:1", "import:2"]);
    assert_eq!(listed["keys"][0]["state"], "completed");
    let shown = json(&server, &["once", "show", "import:2"]).await;
    assert_eq!((&shown["result"], &shown["fence"]), (&42.into(), &1.into()));
    let table = stage::kagzi(&["--address", &server.address, "once", "show", "import:2"]).await;
    assert!(String::from_utf8_lossy(&table.stdout).contains("completed"), "{table:?}");

    assert_eq!(json(&server, &["once", "forget", "import:2"]).await["forgotten"], true);
    let (code, said) = refused(&server, &["once", "show", "import:2"]).await;
    assert_eq!((code, said.contains("import:2")), (Some(3), true), "{said}");
    server.kill().await;
}
