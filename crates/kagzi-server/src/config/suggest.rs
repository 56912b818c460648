//! "did you mean": the nearest of the known names.

/// The known name that is nearest, if any is near enough to be meant.
pub fn nearest(written: &str, known: &[String]) -> Option<String> {
    // What was begun and not ended is meant, however much is missing.
    let mut longer = known.iter().filter(|name| name.starts_with(written));
    if let (Some(name), None) = (longer.next(), longer.next()) {
        return Some(name.clone());
    }
    let (distance, name) = known.iter().map(|name| (distance(written, name), name)).min()?;
    // A third of the name: `wroker.leas` is meant, `colour` is not.
    (distance <= written.len() / 3).then(|| name.clone())
}

/// Letters to change, insert or remove (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (to, wanted) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *wanted);
            diagonal = row[to + 1];
            row[to + 1] = changed.min(diagonal + 1).min(row[to] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_understood_and_a_wild_guess_is_not() {
        let known = ["worker.lease".to_owned(), "worker.stale_after".to_owned()];

        assert_eq!(nearest("wroker.leas", &known).as_deref(), Some("worker.lease"));
        assert_eq!(nearest("worker.stale-after", &known).as_deref(), Some("worker.stale_after"));
        assert_eq!(nearest("colour", &known), None);
    }
}
