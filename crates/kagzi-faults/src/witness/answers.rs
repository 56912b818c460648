use std::collections::{HashMap, HashSet};

use kagzi_proto::v1::{
    ConverseRequest, ConverseResponse, Payload, Report, ServerMessage, StepRecorded, WorkerMessage, ask,
    report, server_message, worker_message,
};
use prost::Message;
use uuid::Uuid;

use super::{
    SystemCall,
    http2::{Dialogue, dialogues},
    marks,
};

/// Stands before a mark in what unary calls send, to tell it from the ids of runs and workers.
const MARKED: &str = "ack-";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The answer to a unary call that sent a payload.
    Call,
    /// The answer to a start in a conversation.
    Start,
    /// The acknowledgement of a worker's report.
    Report,
    /// A payload that was handed out: to a worker, or to somebody who waits for a result.
    Payload,
}

/// Something that the server says about payloads which it therefore has to have stored.
#[derive(Debug, Clone)]
pub struct Answer {
    pub kind: Kind,
    /// Of the payloads.
    pub marks: Vec<Uuid>,
    /// Where it began to leave.
    pub began: usize,
}

/// Every answer in a transcript.
pub fn answers(calls: &[SystemCall]) -> Vec<Answer> {
    let dialogues = dialogues(calls);
    let acknowledged: Vec<Answer> = dialogues.iter().flat_map(acknowledged).collect();
    let known: HashSet<Uuid> = acknowledged.iter().flat_map(|answer| answer.marks.clone()).collect();
    let handed_out = dialogues.iter().flat_map(|dialogue| &dialogue.said).map(|message| Answer {
        kind: Kind::Payload,
        marks: marks(&message.bytes).into_iter().filter(|mark| known.contains(mark)).collect(),
        began: message.began,
    });
    let handed_out: Vec<Answer> = handed_out.filter(|answer| !answer.marks.is_empty()).collect();
    acknowledged.into_iter().chain(handed_out).collect()
}

fn acknowledged(dialogue: &Dialogue) -> Vec<Answer> {
    let Some(first) = dialogue.asked.first() else { return Vec::new() };
    if is_work(&first.bytes) {
        return reports(dialogue);
    }
    if is_conversation(&first.bytes) {
        return starts(dialogue);
    }
    let marks = marked(&first.bytes);
    let answer = dialogue.said.first().filter(|_| !marks.is_empty());
    answer.map(|answer| Answer { kind: Kind::Call, marks, began: answer.began }).into_iter().collect()
}

/// What a stream is for is in its compressed headers; its first message says it as well.
fn is_work(first: &[u8]) -> bool {
    let hello = WorkerMessage::decode(first).ok().and_then(|message| message.message);
    matches!(hello, Some(worker_message::Message::Hello(hello)) if Uuid::try_parse(&hello.worker_id).is_ok())
}

fn is_conversation(first: &[u8]) -> bool {
    ConverseRequest::decode(first).is_ok_and(|message| message.asks.iter().any(|ask| ask.body.is_some()))
}

fn reports(dialogue: &Dialogue) -> Vec<Answer> {
    let mut sent: HashMap<u64, Vec<Uuid>> = HashMap::new();
    for message in &dialogue.asked {
        let message = WorkerMessage::decode(&*message.bytes).expect("workers write their protocol");
        if let Some(worker_message::Message::Report(report)) = message.message {
            sent.insert(report.seq, payload_marks(report));
        }
    }
    let mut all = Vec::new();
    for message in &dialogue.said {
        let decoded = ServerMessage::decode(&*message.bytes).expect("servers write their protocol");
        let Some(server_message::Message::Ack(ack)) = decoded.message else { continue };
        for seq in ack.committed.into_iter().chain(ack.answers.into_iter().map(|answer| answer.seq)) {
            let marks = sent.remove(&seq).expect("only what was sent is acknowledged, once");
            all.push(Answer { kind: Kind::Report, marks, began: message.began });
        }
    }
    all.retain(|answer| !answer.marks.is_empty());
    all
}

fn payload_marks(report: Report) -> Vec<Uuid> {
    let of = |payload: Option<Payload>| payload.map_or(Vec::new(), |payload| marks(&payload.data));
    let of_step = |step: StepRecorded| of(step.result);
    match report.body {
        Some(report::Body::StepRecorded(step)) => of_step(step),
        Some(report::Body::RunCompleted(end)) => {
            end.steps.into_iter().flat_map(of_step).chain(of(end.output)).collect()
        }
        // Without a payload there is nothing to follow.
        Some(_) | None => Vec::new(),
    }
}

fn starts(dialogue: &Dialogue) -> Vec<Answer> {
    let mut sent: HashMap<u64, Vec<Uuid>> = HashMap::new();
    for message in &dialogue.asked {
        let message = ConverseRequest::decode(&*message.bytes).expect("clients write their protocol");
        for asked in message.asks {
            if let Some(ask::Body::Start(start)) = asked.body {
                sent.insert(asked.seq, start.input.map_or(Vec::new(), |input| marks(&input.data)));
            }
        }
    }
    let mut all = Vec::new();
    for message in &dialogue.said {
        let decoded = ConverseResponse::decode(&*message.bytes).expect("servers write their protocol");
        for reply in decoded.replies {
            if let Some(marks) = sent.remove(&reply.seq) {
                all.push(Answer { kind: Kind::Start, marks, began: message.began });
            }
        }
    }
    all
}

/// Marks that say that they are.
fn marked(bytes: &[u8]) -> Vec<Uuid> {
    let after = |at: usize| bytes.get(at..at + MARKED.len() + 36);
    let found = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(MARKED.as_bytes())).filter_map(after);
    found.flat_map(marks).collect()
}
