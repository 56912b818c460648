use uuid::Uuid;

const LEN: usize = 36;

/// Every UUID that stands in these bytes as text. Tests put one into each payload, so that its way can be
/// followed: over the wire, into the database's log, and out again.
pub fn marks(bytes: &[u8]) -> Vec<Uuid> {
    let mut found = Vec::new();
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'-') {
        // The first of the four dashes is the ninth character.
        let Some(begin) = at.checked_sub(8) else { continue };
        let Some(text) = bytes.get(begin..begin + LEN) else { continue };
        // A look at the next dash first: most dashes belong to something else, and pages are long.
        if text[13] == b'-'
            && let Ok(mark) = Uuid::try_parse_ascii(text)
        {
            found.push(mark);
        }
    }
    found
}
