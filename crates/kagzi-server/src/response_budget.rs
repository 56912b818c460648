//! How large an answer may be, and how a page is cut to it.

use kagzi_model::Name;
use kagzi_store::{Cursor, Direction, Page, PageRequest};
use prost::Message;

use crate::page_token;

/// No list grows beyond this, unless a single item does. Clients of gRPC take messages of 4 MiB unless they
/// are told otherwise; what is left is for the rest of the message.
pub const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024 - 64 * 1024;

/// What an item costs beside its own bytes: the number of its field and its length.
const ITEM_BYTES: usize = 8;

/// The bytes that an answer has left for items.
pub struct Room {
    left: usize,
    /// The next item is taken whatever its size: an answer without any would never get further.
    first: bool,
}

impl Room {
    /// An answer that takes at least one item.
    pub fn new() -> Room {
        Room { left: ANSWER_BYTES_MAX, first: true }
    }

    /// An answer that holds so many bytes already, and may have no room at all.
    pub fn beside(bytes: usize) -> Room {
        Room { left: ANSWER_BYTES_MAX.saturating_sub(bytes), first: false }
    }

    /// Whether an item of this size goes in; if so, its room is taken.
    pub fn take(&mut self, bytes: usize) -> bool {
        let bytes = bytes + ITEM_BYTES;
        if !std::mem::take(&mut self.first) && bytes > self.left {
            return false;
        }
        self.left = self.left.saturating_sub(bytes);
        true
    }
}

/// How many of these items fit, from the first one on.
pub fn fitting<'m, M: Message + 'm>(items: impl IntoIterator<Item = &'m M>) -> usize {
    let mut room = Room::new();
    items.into_iter().take_while(|item| room.take(item.encoded_len())).count()
}

/// A page as it is answered, with its tokens.
pub struct Answered<M> {
    pub items: Vec<M>,
    pub next_page_token: String,
    pub prev_page_token: String,
    /// Rows that cannot be read and were left out.
    pub unreadable: u32,
}

/// Cuts a page to what fits, on the side that was read last, and writes its tokens.
pub fn page<T, M: Message>(
    found: Page<T>,
    request: &PageRequest,
    query: &str,
    item: impl Fn(T) -> (Cursor, M),
) -> Answered<M> {
    let alone = found.unreadable.alone.filter(|_| found.rows.is_empty());
    let (has_next, has_prev) = (found.has_next, found.has_prev);
    let token = |direction, cursor: &Cursor| page_token::write(direction, *cursor, query);
    let mut answered = page_of(found, request.direction, item, token);
    // Nothing on it can be read: it goes on all the same.
    if let Some((first, last)) = alone {
        if has_next {
            answered.next_page_token = token(Direction::Next, &last);
        }
        if has_prev {
            answered.prev_page_token = token(Direction::Prev, &first);
        }
    }
    answered
}

/// The same for rows whose place is their name.
pub fn page_by_name<T, M: Message>(
    found: Page<T>,
    direction: Direction,
    query: &str,
    item: impl Fn(T) -> (Name, M),
) -> Answered<M> {
    page_of(found, direction, item, |direction, name| page_token::write_by_name(direction, name, query))
}

fn page_of<T, K, M: Message>(
    found: Page<T>,
    read: Direction,
    item: impl Fn(T) -> (K, M),
    token: impl Fn(Direction, &K) -> String,
) -> Answered<M> {
    let Page { rows, mut has_next, mut has_prev, unreadable } = found;
    let mut items: Vec<(K, M)> = rows.into_iter().map(item).collect();
    match read {
        Direction::Next => {
            let fit = fitting(items.iter().map(|(_, item)| item));
            has_next |= fit < items.len();
            items.truncate(fit);
        }
        Direction::Prev => {
            let fit = fitting(items.iter().rev().map(|(_, item)| item));
            has_prev |= fit < items.len();
            items.drain(..items.len() - fit);
        }
    }
    let token = |direction, wanted: bool, edge: Option<&(K, M)>| match edge {
        Some((key, _)) if wanted => token(direction, key),
        Some(_) | None => String::new(),
    };
    Answered {
        next_page_token: token(Direction::Next, has_next, items.last()),
        prev_page_token: token(Direction::Prev, has_prev, items.first()),
        items: items.into_iter().map(|(_, item)| item).collect(),
        unreadable: u32::try_from(unreadable.count).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use kagzi_model::Timestamp;
    use kagzi_proto::v1::Payload;
    use kagzi_store::Unreadable;
    use uuid::Uuid;

    use super::*;

    fn large(_: i64) -> Payload {
        Payload { data: vec![7; 1024 * 1024].into(), content_type: String::new() }
    }

    /// Rows 1 to 8, read in a direction and cut.
    fn cut(direction: Direction) -> (usize, Vec<(Direction, i64)>) {
        let found = Page { rows: (1..=8).collect(), ..Page::empty() };
        let request = PageRequest { from: None, direction, limit: 8 };
        let cursor = |at| Cursor { at: Timestamp(at), id: Uuid::nil() };
        let answered = page(found, &request, "q", |at| (cursor(at), large(at)));
        let tokens = [answered.next_page_token, answered.prev_page_token];
        let goes_on = tokens.iter().filter(|token| !token.is_empty()).map(|token| {
            let read = page_token::read(token, "q", 8).unwrap();
            (read.direction, read.from.unwrap().at.0)
        });
        (answered.items.len(), goes_on.collect())
    }

    #[test]
    fn a_page_is_cut_on_the_side_that_was_read_last_and_its_token_goes_on_there() {
        assert_eq!(cut(Direction::Next), (3, vec![(Direction::Next, 3)]));
        assert_eq!(cut(Direction::Prev), (3, vec![(Direction::Prev, 6)]));
    }

    #[test]
    fn a_page_on_which_nothing_can_be_read_goes_on_all_the_same() {
        let place = |at| Cursor { at: Timestamp(at), id: Uuid::nil() };
        let unreadable = Unreadable { count: 3, alone: Some((place(4), place(6))) };
        let found: Page<i64> = Page { has_next: true, has_prev: true, unreadable, ..Page::empty() };
        let request = PageRequest { from: None, direction: Direction::Next, limit: 3 };

        let answered = page(found, &request, "q", |at| (place(at), large(at)));

        let from = |token: &str| page_token::read(token, "q", 3).unwrap().from.unwrap().at.0;
        assert_eq!((answered.items.len(), answered.unreadable), (0, 3));
        assert_eq!((from(&answered.next_page_token), from(&answered.prev_page_token)), (6, 4));
    }

    #[test]
    fn one_item_goes_in_whatever_its_size() {
        let mut room = Room::new();
        assert!(room.take(100 * ANSWER_BYTES_MAX));
        assert!(!room.take(1));

        let mut full = Room::beside(ANSWER_BYTES_MAX);
        assert!(!full.take(1));
    }
}
