//! As much of HTTP/2 and gRPC as it takes to find messages in what a socket sent and received.

use std::collections::BTreeMap;

use super::SystemCall;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD_LEN: usize = 9;
const DATA: u8 = 0;
/// Length-prefixed: one byte says whether it is compressed, four how long it is.
const MESSAGE_HEAD_LEN: usize = 5;

/// One gRPC message, with the line on which the call began that carried its first byte.
pub struct Message {
    pub began: usize,
    pub bytes: Vec<u8>,
}

/// What was said on one stream of one connection.
#[derive(Default)]
pub struct Dialogue {
    pub asked: Vec<Message>,
    pub said: Vec<Message>,
}

/// Every stream on which a message came in, in the order of connections and streams.
pub fn dialogues(calls: &[SystemCall]) -> Vec<Dialogue> {
    let mut connections: BTreeMap<&str, (Flow, Flow)> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.file.starts_with("socket:")) {
        let (incoming, outgoing) = connections.entry(&call.file).or_default();
        if call.reads() {
            incoming.push(&call.data, call.began);
        } else if call.writes() {
            outgoing.push(&call.data, call.began);
        }
    }
    // Probes and metrics are HTTP/1.
    let grpc = connections.into_values().filter(|(incoming, _)| incoming.bytes.starts_with(PREFACE));
    grpc.flat_map(|(incoming, outgoing)| {
        let mut said = outgoing.streams(0);
        incoming.streams(PREFACE.len()).into_iter().map(move |(stream, asked)| Dialogue {
            asked: asked.messages(),
            said: said.remove(&stream).unwrap_or_default().messages(),
        })
    })
    .collect()
}

/// Bytes in one direction: of a connection, or of one stream of it.
#[derive(Default)]
struct Flow {
    bytes: Vec<u8>,
    /// Up to which byte each call came, and where it began.
    calls: Vec<(usize, usize)>,
}

impl Flow {
    fn push(&mut self, bytes: &[u8], began: usize) {
        self.bytes.extend_from_slice(bytes);
        self.calls.push((self.bytes.len(), began));
    }

    /// Where the call began that carried this byte.
    fn began(&self, offset: usize) -> usize {
        let call = self.calls.partition_point(|(end, _)| *end <= offset);
        self.calls[call].1
    }

    /// What the frames of a connection carry, from the first frame on.
    fn streams(&self, first_frame: usize) -> BTreeMap<u32, Flow> {
        let mut streams: BTreeMap<u32, Flow> = BTreeMap::new();
        let mut at = first_frame;
        while let Some(head) = self.bytes.get(at..at + FRAME_HEAD_LEN) {
            let payload = at + FRAME_HEAD_LEN;
            let end = payload + number(&head[..3]);
            let Some(data) = self.bytes.get(payload..end) else { break };
            if head[3] == DATA {
                let stream = u32::try_from(number(&head[5..]) & 0x7fff_ffff).expect("31 bits");
                streams.entry(stream).or_default().push(data, self.began(at));
            }
            at = end;
        }
        streams
    }

    /// The whole messages of a stream.
    fn messages(&self) -> Vec<Message> {
        let mut messages = Vec::new();
        let mut at = 0;
        while let Some(head) = self.bytes.get(at..at + MESSAGE_HEAD_LEN) {
            let body = at + MESSAGE_HEAD_LEN;
            let end = body + number(&head[1..]);
            let Some(bytes) = self.bytes.get(body..end) else { break };
            messages.push(Message { began: self.began(at), bytes: bytes.to_vec() });
            at = end;
        }
        messages
    }
}

fn number(big_endian: &[u8]) -> usize {
    big_endian.iter().fold(0, |number, byte| number << 8 | usize::from(*byte))
}
