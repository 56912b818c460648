//! What may reach a terminal. Text of a server is written by whoever can fail a run or describe a namespace:
//! a control character in it could clear the screen, rename the window or turn a line around.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether the text may set colours itself: ours does, on a terminal that wants them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Styles {
    Allowed,
    Escaped,
}

/// The text with everything that a terminal would obey written out as `\u{1b}`. Lines and tabs stay.
pub fn harmless(text: &str, styles: Styles) -> Cow<'_, str> {
    if !text.chars().any(is_dangerous) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let style = (styles == Styles::Allowed).then(|| style_len(rest)).flatten();
        let taken = style.unwrap_or(character.len_utf8());
        if style.is_none() && is_dangerous(character) {
            write!(clean, "{}", character.escape_unicode()).expect("a string takes everything");
        } else {
            clean.push_str(&rest[..taken]);
        }
        rest = &rest[taken..];
    }
    Cow::Owned(clean)
}

/// The same for JSON, which stays the same JSON: outside of its texts it has no such characters but white
/// space.
pub fn harmless_json(json: &str) -> Cow<'_, str> {
    if !json.chars().any(is_dangerous) {
        return Cow::Borrowed(json);
    }
    let mut clean = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        match character {
            '\r' => clean.push(' '),
            other if is_dangerous(other) => {
                write!(clean, "\\u{:04x}", u32::from(other)).expect("a string takes everything");
            }
            other => clean.push(other),
        }
    }
    Cow::Owned(clean)
}

/// Control characters of both sets, and what turns the direction of text around or breaks lines unseen.
fn is_dangerous(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' => true,
        other => other.is_control(),
    }
}

/// The length of a sequence at the beginning that only sets colours or weight. Hiding and blinking are none
/// of ours.
fn style_len(text: &str) -> Option<usize> {
    let (numbers, _) = text.strip_prefix("\u{1b}[")?.split_once('m')?;
    let plain = |number: &str| {
        matches!(number.parse::<u8>(), Ok(0..=4 | 22..=24 | 30..=37 | 39..=47 | 49 | 90..=97 | 100..=107))
    };
    let palette = numbers.strip_prefix("38;5;").or_else(|| numbers.strip_prefix("48;5;"));
    let ours = match palette {
        Some(colour) => colour.parse::<u8>().is_ok(),
        None => numbers.is_empty() || numbers.split(';').all(plain),
    };
    ours.then_some("\u{1b}[".len() + numbers.len() + "m".len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        let nasty = "a\u{1b}[2J\u{1b}]0;PWNED\u{7}b\rc\u{0}d\u{9b}2Je\u{202e}f";

        let shown = harmless(nasty, Styles::Allowed);

        assert_eq!(shown, r"a\u{1b}[2J\u{1b}]0;PWNED\u{7}b\u{d}c\u{0}d\u{9b}2Je\u{202e}f");
    }

    #[test]
    fn ordinary_text_of_any_language_is_left_as_it_is() {
        for text in ["", "two\nlines\tand a tab", "grüße, 你好, שלום, 👩‍💻"] {
            assert_eq!(harmless(text, Styles::Escaped), text);
            assert_eq!(harmless_json(text), text);
        }
    }

    #[test]
    fn colours_are_let_through_only_where_they_are_ours_and_hiding_never() {
        let red = "\u{1b}[38;5;9mbad\u{1b}[39m \u{1b}[1mbold\u{1b}[0m";

        assert_eq!(harmless(red, Styles::Allowed), red);
        assert!(!harmless(red, Styles::Escaped).contains('\u{1b}'));
        assert!(!harmless("\u{1b}[8mhidden\u{1b}[5mblinks", Styles::Allowed).contains('\u{1b}'));
    }

    #[test]
    fn json_stays_the_same_json() {
        let text = "\u{9b}2J\u{202e}\u{7f}\u{1b}";
        let json = serde_json::to_string_pretty(&serde_json::json!({ "message": text })).unwrap();

        let shown = harmless_json(&json);

        assert!(!shown.chars().any(is_dangerous), "{shown}");
        let back: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(back["message"], text);
    }
}
