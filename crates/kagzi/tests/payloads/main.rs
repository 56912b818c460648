//! What becomes of payloads between the code that makes them and the code that reads them.

mod awaiting;
mod codecs;
mod encryption;
mod logs;
mod sizes;

use kagzi::codec::EncryptionCodec;
use kagzi::testing::TestEngine;
use kagzi::worker::CancellationToken;
use kagzi::{Client, Worker};

fn key(id: &str) -> EncryptionCodec {
    EncryptionCodec::new(id, key_bytes(id)).unwrap()
}

/// Another key for another id.
fn key_bytes(id: &str) -> [u8; 32] {
    let mut key = [7; 32];
    key[..id.len()].copy_from_slice(id.as_bytes());
    key
}

fn client(engine: &TestEngine) -> Client {
    engine.client().codec(key("k1"))
}

/// A worker of queue `q` that is drained by its token.
async fn work(
    engine: &TestEngine,
    codec: EncryptionCodec,
    register: impl FnOnce(&mut Worker),
) -> CancellationToken {
    let mut worker = engine.worker("q").codec(codec).build().await.unwrap();
    register(&mut worker);
    let stop = worker.shutdown_token();
    tokio::spawn(worker.run());
    stop
}
