//! Page tokens: opaque to users, bound to their query. Inside: direction, cursor, and a mark of the query.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use kagzi_model::Timestamp;
use kagzi_store::{Cursor, Direction, PageRequest};
use tonic::Status;
use uuid::Uuid;

use crate::check::invalid;

/// Writes a token.
pub fn write(direction: Direction, cursor: Cursor, query: &str) -> String {
    let way = match direction {
        Direction::Next => "next",
        Direction::Prev => "prev",
    };
    let text = format!("{way}:{}:{}:{:016x}", cursor.at.0, cursor.id.simple(), mark(query));
    URL_SAFE_NO_PAD.encode(text)
}

/// Reads a token; an empty one asks for the first page.
pub fn read(token: &str, query: &str, limit: usize) -> Result<PageRequest, Status> {
    if token.is_empty() {
        return Ok(PageRequest { from: None, direction: Direction::Next, limit });
    }
    let wrong = |rule| invalid("page_token", token, rule);
    let broken = || wrong("it is not a token of this server");
    let text = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(broken)?;
    // Without a direction it means the next page.
    let (direction, place) = match text.split_once(':') {
        Some(("next", place)) => (Direction::Next, place),
        Some(("prev", place)) => (Direction::Prev, place),
        Some(_) | None => (Direction::Next, text.as_str()),
    };
    let mut parts = place.split(':');
    let at = parts.next().and_then(|at| at.parse().ok()).ok_or_else(broken)?;
    let id = parts.next().and_then(|id| Uuid::try_parse(id).ok()).ok_or_else(broken)?;
    let marked = parts.next().and_then(|mark| u64::from_str_radix(mark, 16).ok()).ok_or_else(broken)?;
    if marked != mark(query) {
        return Err(wrong(
            "it belongs to a query with other filters or another order; start again without a token",
        ));
    }
    Ok(PageRequest { from: Some(Cursor { at: Timestamp(at), id }), direction, limit })
}

/// FNV-1a: stable across versions and machines, which the standard hasher does not promise.
fn mark(query: &str) -> u64 {
    query.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_was_written() {
        let cursor = Cursor { at: Timestamp(1_234_567), id: Uuid::from_u128(42) };

        let page = read(&write(Direction::Prev, cursor, "q"), "q", 10).unwrap();

        assert_eq!(page, PageRequest { from: Some(cursor), direction: Direction::Prev, limit: 10 });
    }

    #[test]
    fn a_token_without_a_direction_goes_on() {
        let cursor = Cursor { at: Timestamp(7), id: Uuid::from_u128(42) };
        let token = URL_SAFE_NO_PAD.encode(format!("7:{}:{:016x}", cursor.id.simple(), mark("q")));

        let page = read(&token, "q", 10).unwrap();

        assert_eq!(page, PageRequest { from: Some(cursor), direction: Direction::Next, limit: 10 });
    }

    #[test]
    fn a_token_of_another_query_is_refused() {
        let token = write(Direction::Next, Cursor { at: Timestamp(1), id: Uuid::nil() }, "a");

        assert!(read(&token, "b", 10).unwrap_err().message().contains("other filters"));
        assert!(read("nonsense!", "b", 10).unwrap_err().message().contains("not a token"));
    }
}
