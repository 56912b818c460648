//! What an approval is bound to: the digest of what was shown.

use sha2::{Digest, Sha256};

/// SHA-256 of a text, in hexadecimal digits.
pub fn sha256_hex(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
