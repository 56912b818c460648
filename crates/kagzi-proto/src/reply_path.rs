//! Where the answer to a request is recorded: a step whose path names channel and request. Part of the
//! contract, like the key of a step.

use uuid::Uuid;

/// How the paths of replies begin.
pub const REPLY: &str = "~reply/";

/// The content type of an answer that says no: JSON with a `code` and a `message`.
pub const REJECTED: &str = "application/vnd.kagzi.rejected+json";

/// Longest path with channel and id in words.
const WORDS_BYTES_MAX: usize = 255;

/// The path of the step that holds the answer to the request with this id on this channel. One with other
/// characters than those of ids, or a long one, is a hash.
pub fn reply_path(channel: &str, id: &str) -> String {
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if plain(channel) && plain(id) && REPLY.len() + channel.len() + id.len() < WORDS_BYTES_MAX {
        return format!("{REPLY}{channel}/{id}");
    }
    // The length of the first part keeps two pairs apart that read the same in one.
    let both = format!("{}:{channel}{id}", channel.len());
    format!("{REPLY}{}", Uuid::new_v5(&Uuid::NAMESPACE_URL, both.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_ids_are_in_the_path_and_no_two_requests_share_one() {
        assert_eq!(reply_path("add-item", "ask-7"), "~reply/add-item/ask-7");
        let odd = [("a/b", "c"), ("a", "b/c"), ("ab", "/c"), ("a", "b#2"), ("ä", "b"), ("a", "ä")];
        let paths: Vec<String> = odd.iter().map(|(channel, id)| reply_path(channel, id)).collect();
        for (at, path) in paths.iter().enumerate() {
            assert!(!paths[..at].contains(path), "{path}");
            assert!(!path[REPLY.len()..].contains('/'), "{path}");
        }
        assert!(reply_path(&"x".repeat(255), &"y".repeat(255)).len() < 60);
    }
}
