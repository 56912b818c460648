//! The key that a step hands to receivers which deduplicate. Part of the contract: server and SDKs agree on
//! it.

use uuid::Uuid;

/// Longest key, in bytes: what most receivers accept.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;

/// Stable over every attempt of a step: the attempt is no part of it, or a retry would charge twice.
/// A key that would be too long carries a hash of the path instead; cutting it could make two equal.
pub fn idempotency_key(run_id: &str, path: &str) -> String {
    let key = format!("wf:{run_id}:step:{path}");
    if key.len() <= IDEMPOTENCY_KEY_BYTES_MAX {
        return key;
    }
    format!("wf:{run_id}:step:{}", Uuid::new_v5(&Uuid::NAMESPACE_URL, path.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_run_and_path() {
        assert_eq!(idempotency_key("r1", "item-7/charge#2"), "wf:r1:step:item-7/charge#2");
    }

    #[test]
    fn long_paths_give_short_keys_that_differ() {
        let (one, other) = (format!("{}1", "x".repeat(300)), format!("{}2", "x".repeat(300)));

        assert!(idempotency_key("r1", &one).len() <= IDEMPOTENCY_KEY_BYTES_MAX);
        assert_ne!(idempotency_key("r1", &one), idempotency_key("r1", &other));
        assert_eq!(idempotency_key("r1", &one), idempotency_key("r1", &one));
    }
}
