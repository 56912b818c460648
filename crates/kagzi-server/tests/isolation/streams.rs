//! The streams: each message that can be sent on one of them is tried, with each choice that it can make.

use std::time::Duration;

use kagzi_proto::v1;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MessageDescriptor, Value};
use tonic::{Request, transport::Channel};

use crate::{Filling, Loot, Plain, QUEUE, SECRET, STREAMS, fill};

/// Every message of every stream, as the thief would send it. How many were opened, and how many were
/// answered with more than an end.
pub async fn try_all(channel: &Channel, pool: &DescriptorPool, loot: &Loot) -> (usize, usize) {
    let (mut said, mut heard) = (0, 0);
    for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        if !STREAMS.contains(&method.name()) {
            continue;
        }
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        let everywhere = [&loot.run, &loot.worker, &loot.business, QUEUE, "victim"];
        let fillings = [Filling::AsWritten(loot), Filling::Prefixes(loot)];
        for filling in fillings.into_iter().chain(everywhere.iter().map(|text| Filling::Everywhere(text))) {
            for message in variants(&method.input(), filling, 0) {
                // A worker is heard only after it has greeted; the greeting itself is one of the messages.
                let greeting = (method.name() == "Work").then(own_greeting);
                let messages = greeting.into_iter().chain([message.encode_to_vec()]).collect();
                let answers = converse(channel, path.clone(), messages).await;
                (said, heard) = (said + 1, heard + usize::from(!answers.is_empty()));
                let told = String::from_utf8_lossy(&answers);
                assert!(!told.contains(SECRET), "{} tells {told}\nasked {message}", method.name());
            }
        }
        // The greeting as the first message: with the victim's worker id, and as a stranger in its namespace.
        let hello = pool.get_message_by_name("kagzi.v1.WorkerMessage").unwrap();
        if method.name() == "Work" {
            for message in variants(&hello, Filling::AsWritten(loot), 0) {
                said += 1;
                let answers = converse(channel, path.clone(), vec![message.encode_to_vec()]).await;
                let told = String::from_utf8_lossy(&answers);
                assert!(!told.contains(SECRET), "a greeting is answered with {told}\nasked {message}");
            }
        }
    }
    (said, heard)
}

/// The thief's own greeting, which is accepted.
fn own_greeting() -> Vec<u8> {
    let registration = v1::RegisterWorkerRequest {
        namespace_id: "thief".into(),
        task_queue: "thiefs-queue".into(),
        workflow_types: vec!["order".into()],
        ..Default::default()
    };
    let hello = v1::Hello { registration: Some(registration), ..Default::default() };
    let message = v1::worker_message::Message::Hello(Box::new(hello));
    v1::WorkerMessage { message: Some(message) }.encode_to_vec()
}

/// The message once for every choice that it and what it holds can make.
fn variants(message: &MessageDescriptor, filling: Filling<'_>, depth: usize) -> Vec<DynamicMessage> {
    let plain = fill(message, filling, depth);
    let mut all = vec![plain.clone()];
    if depth > 3 {
        return all;
    }
    for field in message.fields() {
        let chosen = field.containing_oneof().is_some();
        let Kind::Message(inner) = field.kind() else { continue };
        if field.is_map() || !inner.full_name().starts_with("kagzi.") {
            continue;
        }
        let nested = inner.oneofs().next().is_some();
        if !chosen && !nested {
            continue;
        }
        for value in variants(&inner, filling, depth + 1) {
            let value = Value::Message(value);
            let mut one = plain.clone();
            one.set_field(&field, if field.is_list() { Value::List(vec![value]) } else { value });
            all.push(one);
        }
    }
    all
}

/// Sends messages, ends its side and reads all that is answered.
async fn converse(channel: &Channel, path: String, messages: Vec<Vec<u8>>) -> Vec<u8> {
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await.unwrap();
    let messages = futures_util::stream::iter(messages);
    let Ok(answers) = client.streaming(Request::new(messages), path.parse().unwrap(), Plain).await else {
        return Vec::new();
    };
    let (mut answers, mut told) = (answers.into_inner(), Vec::new());
    let reading = async {
        while let Ok(Some(answer)) = answers.message().await {
            told.extend(answer);
        }
    };
    tokio::time::timeout(Duration::from_secs(10), reading).await.expect("the stream ends");
    told
}
