//! Scopes that are recorded as one. A step whose path ends with a slash is such a scope: once it has a
//! result, that stands for everything whose path begins with it, and a replay is told of nothing else.

/// Whether the step of this path stands for everything below it.
pub fn is_scope(path: &str) -> bool {
    path.ends_with('/')
}

/// The scopes that a path lies in, the outermost first. A scope does not lie in itself.
pub fn scopes_around(path: &str) -> impl Iterator<Item = &str> {
    let slashes = path.match_indices('/').map(|(at, _)| at + 1);
    slashes.filter(move |end| *end < path.len()).map(move |end| &path[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_in_every_scope_that_it_begins_with() {
        let around = |path| scopes_around(path).collect::<Vec<_>>();

        assert!(around("charge").is_empty());
        assert_eq!(around("~2/item-7/part/"), ["~2/", "~2/item-7/"]);
        assert_eq!(around("item-7/charge#2"), ["item-7/"]);
        assert!(is_scope("item-7/") && !is_scope("item-7/charge"));
    }
}
