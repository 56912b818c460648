//! Text that others wrote, made fit for a header, a line or a paragraph.
//!
//! A title comes from a workflow, and a workflow may have it from anybody. A line break in a subject would be
//! another header, a character that turns the direction of writing makes a sentence read as its opposite, and
//! a megabyte is no title.

/// One line of at most `chars_max` characters: every kind of white space becomes one space, and characters
/// that show nothing or turn the direction of writing are left out.
pub fn line(text: &str, chars_max: usize) -> String {
    let mut clean = String::new();
    let mut pending_space = false;
    let mut chars = 0;
    for letter in text.chars() {
        if letter.is_whitespace() || letter.is_control() {
            pending_space = !clean.is_empty();
            continue;
        }
        if is_invisible(letter) {
            continue;
        }
        let needed = 1 + usize::from(pending_space);
        if chars + needed > chars_max {
            return cut(clean, chars, chars_max);
        }
        if pending_space {
            clean.push(' ');
        }
        pending_space = false;
        clean.push(letter);
        chars += needed;
    }
    clean
}

/// Several lines of at most `chars_max` characters together. Line breaks stay, everything else is as in
/// [`line`], but that white space within a line is kept.
pub fn block(text: &str, chars_max: usize) -> String {
    let mut clean = String::new();
    let mut chars = 0;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let letter = match letter {
            '\r' if letters.peek() == Some(&'\n') => continue,
            '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}' => '\n',
            '\t' => ' ',
            other if other.is_control() || is_invisible(other) => continue,
            other => other,
        };
        if chars + 1 > chars_max {
            return cut(clean, chars, chars_max);
        }
        clean.push(letter);
        chars += 1;
    }
    clean.truncate(clean.trim_end().len());
    clean
}

/// Says that there was more, within the limit.
fn cut(mut clean: String, chars: usize, chars_max: usize) -> String {
    if chars >= chars_max {
        clean.pop();
    }
    if chars_max > 0 {
        clean.push('…');
    }
    clean
}

/// Characters that show nothing, or that change how their neighbours are shown: marks and overrides of the
/// direction of writing, zero-width spaces, tags. The two joiners stay, because scripts need them.
fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Text between the tags of a page, or in quotes within one.
pub fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_has_no_breaks_and_nothing_that_turns_the_direction_of_writing() {
        assert_eq!(line("Pay\r\nBcc: eve@example.org", 100), "Pay Bcc: eve@example.org");
        assert_eq!(line("  a \t\u{2028} b\u{85}c\0 ", 100), "a b c");
        assert_eq!(line("\u{202e}tnuocca\u{202c} pay", 100), "tnuocca pay");
        assert_eq!(line("\u{feff}x\u{200b}y\u{2066}z", 100), "xyz");
        assert_eq!(line("می\u{200c}خواهم", 100), "می\u{200c}خواهم");
    }

    #[test]
    fn what_is_too_long_ends_with_an_ellipsis_within_the_limit() {
        assert_eq!(line("abcdef", 6), "abcdef");
        assert_eq!(line("abcdefg", 6), "abcde…");
        assert_eq!(line("ab cdefg", 3), "ab…");
        assert_eq!(block("abcdefg", 6), "abcde…");
        assert_eq!(line("abc", 0), "");
    }

    #[test]
    fn a_block_keeps_its_lines() {
        assert_eq!(block("one\r\n  two\rthree\u{2028}four\u{7}\n\n", 100), "one\n  two\nthree\nfour");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_is_given_a_line_is_one_line_within_its_limit(text in any::<String>(), max in 0usize..50) {
            let clean = line(&text, max);

            prop_assert!(clean.chars().count() <= max, "{clean:?}");
            prop_assert!(!clean.chars().any(|letter| letter.is_control() || is_invisible(letter)));
            prop_assert_eq!(line(&clean, max), clean);
        }

        #[test]
        fn whatever_is_given_a_block_has_no_control_characters_but_line_breaks(
            text in any::<String>(), max in 0usize..50,
        ) {
            let clean = block(&text, max);

            prop_assert!(clean.chars().count() <= max, "{clean:?}");
            prop_assert!(!clean.chars().any(|letter| letter != '\n' && letter.is_control()));
        }

        #[test]
        fn escaped_text_holds_nothing_that_a_page_would_take_for_its_own(text in any::<String>()) {
            let escaped = html(&text);

            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
        }
    }
}
