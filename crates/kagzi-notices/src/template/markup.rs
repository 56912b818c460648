//! Where a field may stand in a page, and what a page may not hold.
//!
//! Escaping makes a field safe between tags and in quotes, but not in the name of an attribute, in a script
//! or as an address of its own choice. So within a tag only the link may stand, which is made by us, and only
//! in quotes; and what would be active in a mail program is refused.

use super::{Mistake, Piece, TemplateError};
use crate::facts::Field;

/// Where in a page a character stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Text,
    Tag,
    Quoted(char),
    Comment,
}

/// What makes a page do something. A template is text; whoever needs more has a page of their own.
const ACTIVE: [(&str, &str); 10] = [
    ("<script", "a script"),
    ("<style", "a style sheet, which may load from elsewhere,"),
    ("<iframe", "a frame"),
    ("<object", "an object"),
    ("<form", "a form, which could answer by itself,"),
    ("<meta", "a redirection"),
    ("javascript:", "a script"),
    ("\"data:", "a page within an address"),
    ("'data:", "a page within an address"),
    ("=data:", "a page within an address"),
];

/// Finds the first mistake.
pub(super) fn check(lines: &[Vec<Piece>]) -> Result<(), TemplateError> {
    let mut place = Place::Text;
    for (n, line) in lines.iter().enumerate() {
        let wrong = |mistake| TemplateError { line: n + 1, mistake };
        for piece in line {
            match piece {
                Piece::Text(text) => {
                    let lower = text.to_lowercase();
                    if let Some((_, what)) = ACTIVE.iter().find(|(mark, _)| lower.contains(mark)) {
                        return Err(wrong(Mistake::Active { what }));
                    }
                    place = after(place, text);
                }
                Piece::Field(Field::Link) if matches!(place, Place::Quoted(_) | Place::Text) => {}
                Piece::Field(_) if place == Place::Text => {}
                Piece::Field(field) => return Err(wrong(Mistake::FieldInTag { name: field.name() })),
            }
        }
        // A quote may go on over lines, as browsers allow it; a line break changes no place.
    }
    Ok(())
}

fn after(place: Place, text: &str) -> Place {
    let mut place = place;
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let skipped = match (place, letter) {
            (Place::Text, '<') if rest.starts_with("<!--") => {
                place = Place::Comment;
                4
            }
            (Place::Text, '<') => {
                place = Place::Tag;
                1
            }
            (Place::Tag, '>') => {
                place = Place::Text;
                1
            }
            (Place::Tag, quote @ ('"' | '\'')) => {
                place = Place::Quoted(quote);
                1
            }
            (Place::Quoted(quote), letter) if letter == quote => {
                place = Place::Tag;
                1
            }
            (Place::Comment, '-') if rest.starts_with("-->") => {
                place = Place::Text;
                3
            }
            (Place::Text | Place::Tag | Place::Quoted(_) | Place::Comment, letter) => letter.len_utf8(),
        };
        rest = &rest[skipped..];
    }
    place
}
