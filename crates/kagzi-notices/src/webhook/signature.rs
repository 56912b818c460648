//! How a receiver knows that a message is ours: `Kagzi-Signature: t=SECONDS,v1=HEX`.
//!
//! The signature covers the time and the body, so that nobody can send an old message again much later. The
//! SDK's `webhook::verify` is the other side.

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The value of the header: HMAC-SHA256 of `SECONDS.BODY` under the secret.
pub fn sign(secret: &str, at_secs: u64, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(at_secs.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    let mut value = format!("t={at_secs},v1=");
    for byte in mac.finalize().into_bytes() {
        write!(value, "{byte:02x}").expect("a String takes all");
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As OpenSSL has it: `printf '1700000000.{"text":"hi"}' | openssl dgst -sha256 -hmac SECRET`.
    #[test]
    fn a_known_message_has_its_known_signature() {
        assert_eq!(
            sign("whsec-0123456789abcdef", 1_700_000_000, br#"{"text":"hi"}"#),
            "t=1700000000,v1=5ce931d777f3a3d2519eef5fd23947bbbe2c0fd51675ac16adda97b35fa711bc"
        );
    }
}
