//! Regenerates the contract and compares it with what is committed.
//! `KAGZI_WRITE_PROTO=1 cargo test -p kagzi-proto` writes the new code instead.

use std::{fs, path::Path};

use prost::Message;

#[test]
fn generated_code_matches_the_proto_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let protos = root.join("../../proto");
    let files = ["common", "event", "workflow", "worker", "schedule", "intervention", "admin"]
        .map(|name| format!("kagzi/v1/{name}.proto"));
    let descriptors = protox::compile(files, [&protos]).expect("the proto files are valid");
    let out = tempfile::tempdir().unwrap();
    tonic_prost_build::configure()
        .bytes(".")
        // Large and rare, or large and passed through many hands: boxed, they do not make everything else
        // large.
        .boxed(".kagzi.v1.Ask.body.start")
        .boxed(".kagzi.v1.Ask.body.signal")
        .boxed(".kagzi.v1.JournalEntry.failure")
        .boxed(".kagzi.v1.WaitWorkflowRunResponse.workflow_run")
        .boxed(".kagzi.v1.WorkerMessage.message.hello")
        .boxed(".kagzi.v1.WorkerMessage.message.step_started")
        .boxed(".kagzi.v1.Report.body.step_failed")
        .boxed(".kagzi.v1.Report.body.run_failed")
        .boxed(".kagzi.v1.Report.body.start_child")
        .boxed(".kagzi.v1.SignalAwaited.ask")
        .boxed(".kagzi.v1.ServerMessage.message.assign")
        .out_dir(out.path())
        .compile_fds(descriptors.clone())
        .expect("code can be generated");
    let code = |name: &str| (name.to_owned(), fs::read(out.path().join(name)).unwrap());
    let fresh = [
        code("kagzi.v1.rs"),
        code("google.rpc.rs"),
        ("descriptors.bin".to_owned(), descriptors.encode_to_vec()),
    ];
    let committed = root.join("src/generated");

    if std::env::var_os("KAGZI_WRITE_PROTO").is_some() {
        for (name, bytes) in &fresh {
            fs::write(committed.join(name), bytes).unwrap();
        }
    }

    for (name, bytes) in &fresh {
        let hint = "run KAGZI_WRITE_PROTO=1 cargo test -p kagzi-proto";
        assert!(fs::read(committed.join(name)).ok().as_ref() == Some(bytes), "{name} is old: {hint}");
    }
}
