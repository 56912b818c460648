//! Page tokens: opaque to users, bound to their query. Inside: direction, cursor, and a mark of the query.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use kagzi_model::{Name, Timestamp, check_name};
use kagzi_store::{Cursor, Direction, PageRequest};
use tonic::Status;
use uuid::Uuid;

use crate::check::invalid;

const BROKEN: &str = "it is not a token of this server; start again without one";
const FOREIGN: &str = "it belongs to a query with other filters or another order; start again without one";

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
    let broken = || wrong(BROKEN);
    let text = decoded(token).ok_or_else(broken)?;
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
        return Err(wrong(FOREIGN));
    }
    Ok(PageRequest { from: Some(Cursor { at: Timestamp(at), id }), direction, limit })
}

/// Writes the token of a list by name: what follows this name, or what stands before it.
pub fn write_by_name(direction: Direction, name: &str, query: &str) -> String {
    let way = match direction {
        Direction::Next => "after",
        Direction::Prev => "before",
    };
    URL_SAFE_NO_PAD.encode(format!("{way}:{:016x}:{name}", mark(query)))
}

/// Reads it; an empty one asks for the first page.
pub fn read_by_name(token: &str, query: &str) -> Result<(Direction, Option<Name>), Status> {
    let (direction, name) = read_by_place(token, query)?;
    if let Some(name) = &name {
        check_name(name).map_err(|_| broken(token))?;
    }
    Ok((direction, name))
}

/// The status for a token that this server has not made.
pub fn broken(token: &str) -> Status {
    invalid("page_token", token, BROKEN)
}

/// The same where the place in the list is no name but a text of our own, which the caller reads.
pub fn read_by_place(token: &str, query: &str) -> Result<(Direction, Option<Name>), Status> {
    if token.is_empty() {
        return Ok((Direction::Next, None));
    }
    let broken = || broken(token);
    let text = decoded(token).ok_or_else(broken)?;
    let (direction, place) = match text.split_once(':') {
        Some(("after", place)) => (Direction::Next, place),
        Some(("before", place)) => (Direction::Prev, place),
        Some(_) | None => return Err(broken()),
    };
    let (marked, name) = place.split_once(':').ok_or_else(broken)?;
    if u64::from_str_radix(marked, 16) != Ok(mark(query)) {
        return Err(invalid("page_token", token, FOREIGN));
    }
    Ok((direction, Some(Name::from(name))))
}

fn decoded(token: &str) -> Option<String> {
    URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok())
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

    #[test]
    fn a_token_by_name_goes_both_ways_from_any_name_and_in_its_own_query_only() {
        for way in [Direction::Next, Direction::Prev] {
            let token = write_by_name(way, "a:b/é", "q");

            assert_eq!(read_by_name(&token, "q").unwrap(), (way, Some(Name::from("a:b/é"))));
            assert!(read_by_name(&token, "p").unwrap_err().message().contains("other filters"));
        }
        assert_eq!(read_by_name("", "q").unwrap(), (Direction::Next, None));
        assert!(read_by_name("after:x", "q").unwrap_err().message().contains("not a token"));
        let other = write(Direction::Next, Cursor { at: Timestamp(1), id: Uuid::nil() }, "q");
        assert!(read_by_name(&other, "q").unwrap_err().message().contains("not a token"));
    }
}
