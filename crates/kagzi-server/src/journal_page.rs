//! A journal for a worker without a stream: as much of it as an answer holds.

use kagzi_engine::{Engine, Outline};
use kagzi_model::{Journal, Run, Timestamp, history::Sources};
use kagzi_proto::v1;
use kagzi_store::{Cursor, Direction};
use prost::Message;
use tonic::Status;
use uuid::Uuid;

use crate::{page_token, response_budget::Room, status::from_engine, wire};

/// Entries, and the token of those that follow.
#[derive(Default)]
pub struct JournalPage {
    pub entries: Vec<v1::JournalEntry>,
    pub next_page_token: String,
}

/// Reads on from a token; an empty one begins at the beginning. Payloads are fetched for the page alone.
pub async fn read(engine: &Engine, run: &Run, token: &str, mut room: Room) -> Result<JournalPage, Status> {
    let query = format!("journal {:?} {} {}", run.namespace, run.id, run.epoch);
    let from = page_token::read(token, &query, 0)?.from;
    let from = from.map_or(0, |from| usize::try_from(from.at.0).unwrap_or(0));
    let outline = Outline::read(engine, (&run.namespace, run.id), Journal::default(), 0).await;
    let outline = outline.map_err(from_engine)?;
    let entries = outline.view.entries();
    let now = engine.clock().now();
    let (mut page, mut seqs) = (Vec::new(), Vec::new());
    let mut left = entries.into_iter().skip(from).peekable();
    while let Some(entry) = left.peek() {
        let Sources { result, progress } = entry.sources;
        let both = [result, progress];
        let bytes: usize = both.iter().flatten().map(|seq| outline.payload_bytes(*seq)).sum();
        let line = wire::journal_entry(entry, now);
        if !room.take(line.encoded_len() + bytes) {
            break;
        }
        seqs.extend(both.into_iter().flatten());
        page.push((line, result, progress));
        left.next();
    }
    let next_page_token = match left.peek() {
        None => String::new(),
        // Entries are only ever added at the end, so how many came before is a place.
        Some(_) => {
            let place = Cursor { at: Timestamp((from + page.len()) as i64), id: Uuid::nil() };
            page_token::write(Direction::Next, place, &query)
        }
    };
    let payloads = engine.payloads(&run.namespace, run.id, &seqs).await.map_err(from_engine)?;
    let payload = |seq: Option<u64>| seq.and_then(|seq| payloads.get(&seq)).cloned().map(wire::payload);
    let entries = page.into_iter().map(|(line, result, progress)| v1::JournalEntry {
        result: payload(result).or(line.result.clone()),
        progress: payload(progress),
        ..line
    });
    Ok(JournalPage { entries: entries.collect(), next_page_token })
}
