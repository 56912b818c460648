//! For programs that receive Kagzi's webhooks: is this message really from our server?
//!
//! ```no_run
//! # let (signature, body) = ("the header", b"the body");
//! // The header `Kagzi-Signature`, and the body byte by byte as it arrived.
//! kagzi::webhook::verify("the secret of notify.webhook_secret", signature, body)?;
//! // In a test of the receiver, at the second at which a known message was signed.
//! kagzi::webhook::verify_at("the secret of notify.webhook_secret", signature, body, 1_700_000_000)?;
//! # Ok::<(), kagzi::webhook::Forged>(())
//! ```
//!
//! A message may arrive twice: `Kagzi-Notice-Id` is the same then.

use std::time::{Duration, SystemTime};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// How far the time of a signature may be from this machine's clock.
pub const TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// Longest header that is looked at.
const HEADER_BYTES_MAX: usize = 1_000;

/// Why a message is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Forged {
    /// The header is not of the form `t=SECONDS,v1=HEX`.
    #[error("the header Kagzi-Signature is not of the form t=SECONDS,v1=HEX")]
    Unreadable,
    /// Nobody who knows the secret signed this body at this time.
    #[error("the signature does not fit the body and the secret")]
    WrongSignature,
    /// It was signed too long ago, or this machine's clock is wrong: somebody may send an old message again.
    #[error("the signature is more than five minutes away from this machine's clock")]
    TooOld,
}

/// Checks the header `Kagzi-Signature` of a request against its body. The comparison takes the same time
/// whatever is wrong.
pub fn verify(secret: &str, signature: &str, body: &[u8]) -> Result<(), Forged> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    verify_at(secret, signature, body, now.as_secs())
}

/// The same, at a time of the caller's choice, in seconds since 1970.
pub fn verify_at(secret: &str, signature: &str, body: &[u8], now_secs: u64) -> Result<(), Forged> {
    if signature.len() > HEADER_BYTES_MAX {
        return Err(Forged::Unreadable);
    }
    let mut signed_at = None;
    let mut signatures = Vec::new();
    for part in signature.split(',') {
        match part.trim().split_once('=') {
            // The text is what was signed, so the number must be written in one way only.
            Some(("t", secs)) => signed_at = secs.parse::<u64>().ok().filter(|at| at.to_string() == secs),
            // There may be several, while a secret is being changed; and other versions, some day.
            Some(("v1", hex)) => signatures.extend(bytes(hex)),
            Some(_) | None => {}
        }
    }
    let Some(signed_at) = signed_at.filter(|_| !signatures.is_empty()) else {
        return Err(Forged::Unreadable);
    };
    let fits =
        signatures.iter().any(|signature| mac(secret, signed_at, body).verify_slice(signature).is_ok());
    if !fits {
        return Err(Forged::WrongSignature);
    }
    match signed_at.abs_diff(now_secs) <= TOLERANCE.as_secs() {
        true => Ok(()),
        false => Err(Forged::TooOld),
    }
}

fn mac(secret: &str, signed_at: u64, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(signed_at.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    mac
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        hex.chars().map(|letter| letter.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec-0123456789abcdef";
    const BODY: &[u8] = br#"{"text":"hi"}"#;
    const AT: u64 = 1_700_000_000;
    /// `printf '1700000000.{"text":"hi"}' | openssl dgst -sha256 -hmac 'whsec-0123456789abcdef'`
    const HEX: &str = "5ce931d777f3a3d2519eef5fd23947bbbe2c0fd51675ac16adda97b35fa711bc";

    fn check(header: &str, body: &[u8], now: u64) -> Result<(), Forged> {
        verify_at(SECRET, header, body, now)
    }

    #[test]
    fn a_known_signature_is_believed_for_five_minutes() {
        let header = format!("t={AT},v1={HEX}");

        assert_eq!(check(&header, BODY, AT), Ok(()));
        assert_eq!(check(&header, BODY, AT + 300), Ok(()));
        assert_eq!(check(&header, BODY, AT - 300), Ok(()));
        assert_eq!(check(&header, BODY, AT + 301), Err(Forged::TooOld));
        assert_eq!(check(&header, BODY, AT - 301), Err(Forged::TooOld));
    }

    #[test]
    fn another_body_time_or_secret_is_not_believed() {
        let header = format!("t={AT},v1={HEX}");

        assert_eq!(check(&header, b"{\"text\":\"ho\"}", AT), Err(Forged::WrongSignature));
        assert_eq!(check(&format!("t={},v1={HEX}", AT + 1), BODY, AT), Err(Forged::WrongSignature));
        assert_eq!(verify_at("whsec-other", &header, BODY, AT), Err(Forged::WrongSignature));
        assert_eq!(check(&format!("t={AT},v1={}", &HEX[2..]), BODY, AT), Err(Forged::WrongSignature));
        assert_eq!(check(&format!("t={AT},v1="), BODY, AT), Err(Forged::WrongSignature));
    }

    #[test]
    fn one_of_several_signatures_is_enough_while_a_secret_is_changed() {
        let other = "00".repeat(32);

        assert_eq!(check(&format!("t={AT},v1={other},v1={HEX}"), BODY, AT), Ok(()));
        assert_eq!(check(&format!("v2=new, v1={HEX} ,t={AT}"), BODY, AT), Ok(()));
    }

    #[test]
    fn what_is_no_signature_is_refused() {
        let long = "x".repeat(2_000);
        for header in
            ["", "t=1", &format!("v1={HEX}"), "t=,v1=00", "t=+1,v1=00", "t=01,v1=00", "t=1,v1=0g", &long]
        {
            assert_eq!(check(header, BODY, AT), Err(Forged::Unreadable), "{header:.40}");
        }
    }
}
