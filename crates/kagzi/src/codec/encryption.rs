//! XChaCha20-Poly1305: payloads that only the holders of the key can read, and nobody can change unnoticed.

use std::fmt;

use chacha20poly1305::aead::{Aead, Generate, Payload as Sealing};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use kagzi_proto::{ENCRYPTED, key_id};

use super::{CodecError, Payload, PayloadCodec, envelope};

/// First byte of every encrypted payload, so that another layout can follow one day.
const LAYOUT: u8 = 1;
const NONCE_BYTES: usize = 24;
const KEY_ID_BYTES_MAX: usize = 64;

/// Encrypts payloads with XChaCha20-Poly1305 (feature `encryption`). The server, its database and its backups
/// never see them; content types are hidden too. What stays visible: names, times, sizes, error codes, and
/// the id of the key.
///
/// Every payload has a random nonce of 24 bytes and is bound to the id of its key. To rotate, make the new
/// key the first and keep the old one until no run needs it: old payloads name the key that they need.
///
/// ```
/// # fn main() -> Result<(), kagzi::codec::CodecError> {
/// # let (new, old) = ([7; 32], [1; 32]);
/// let codec = kagzi::codec::EncryptionCodec::new("2026-11", new)?.with_old_key("2026-05", old)?;
/// # Ok(())
/// # }
/// ```
pub struct EncryptionCodec {
    /// The first encrypts; all decrypt.
    keys: Vec<(String, XChaCha20Poly1305)>,
}

impl EncryptionCodec {
    /// Encrypts with this key. The id is stored in the clear next to every payload: a name, not a secret.
    pub fn new(key_id: impl Into<String>, key: [u8; 32]) -> Result<EncryptionCodec, CodecError> {
        EncryptionCodec { keys: Vec::new() }.with_old_key(key_id, key)
    }

    /// Decrypts with this key too.
    pub fn with_old_key(
        mut self,
        key_id: impl Into<String>,
        key: [u8; 32],
    ) -> Result<EncryptionCodec, CodecError> {
        let key_id = key_id.into();
        let sound = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if key_id.is_empty() || key_id.len() > KEY_ID_BYTES_MAX || !key_id.bytes().all(sound) {
            return Err(CodecError::new(format!(
                "key id {key_id:?} must be 1 to {KEY_ID_BYTES_MAX} letters, digits, '-', '_' or '.'"
            )));
        }
        if self.cipher(&key_id).is_some() {
            return Err(CodecError::new(format!("key '{key_id}' is given twice")));
        }
        self.keys.push((key_id, XChaCha20Poly1305::new(&key.into())));
        Ok(self)
    }

    fn cipher(&self, key_id: &str) -> Option<&XChaCha20Poly1305> {
        self.keys.iter().find(|(id, _)| id == key_id).map(|(_, cipher)| cipher)
    }

    fn key_ids(&self) -> String {
        self.keys.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl PayloadCodec for EncryptionCodec {
    fn encode(&self, payload: Payload) -> Result<Payload, CodecError> {
        let (key_id, cipher) = self.keys.first().expect("a codec is made with a key");
        let content_type = format!("{ENCRYPTED}; key={key_id}");
        let nonce = XNonce::try_generate()
            .map_err(|error| CodecError::new(format!("the system gives no random numbers: {error}")))?;
        let sealed = envelope::wrap(&payload, |inner| {
            cipher
                .encrypt(&nonce, Sealing { msg: inner, aad: content_type.as_bytes() })
                .map_err(|_| CodecError::new("the payload is too long to encrypt"))
        })?;
        let mut data = Vec::with_capacity(1 + NONCE_BYTES + sealed.len());
        data.push(LAYOUT);
        data.extend_from_slice(&nonce);
        data.extend_from_slice(&sealed);
        Ok(Payload { data: data.into(), content_type })
    }

    fn decode(&self, payload: Payload) -> Result<Payload, CodecError> {
        let Some(key_id) = key_id(&payload.content_type) else { return Ok(payload) };
        let Some(cipher) = self.cipher(key_id) else {
            return Err(CodecError::new(format!(
                "the payload is encrypted with key '{key_id}', and only {} is known here; give the codec \
                 that key \
                 with with_old_key",
                self.key_ids()
            )));
        };
        let (nonce, sealed) = match payload.data.split_first() {
            Some((&LAYOUT, rest)) if rest.len() > NONCE_BYTES => rest.split_at(NONCE_BYTES),
            Some(_) | None => {
                return Err(CodecError::new("the encrypted payload is cut off or of a newer layout"));
            }
        };
        let nonce = XNonce::try_from(nonce).expect("split at the length of a nonce");
        let aad = payload.content_type.as_bytes();
        let inner = cipher.decrypt(&nonce, Sealing { msg: sealed, aad }).map_err(|_| {
            CodecError::new(format!(
                "could not decrypt with key '{key_id}': the key is another one, or the payload was changed"
            ))
        })?;
        envelope::unwrap(inner)
    }
}

/// Never the keys.
impl fmt::Debug for EncryptionCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncryptionCodec({})", self.key_ids())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codec(id: &str, byte: u8) -> EncryptionCodec {
        EncryptionCodec::new(id, [byte; 32]).unwrap()
    }

    fn secret() -> Payload {
        Payload { data: "\"4242 4242\"".into(), content_type: "application/json".into() }
    }

    #[test]
    fn a_payload_comes_back_and_nothing_of_it_is_readable() {
        let sealed = codec("k1", 7).encode(secret()).unwrap();

        assert_eq!(sealed.content_type, "application/vnd.kagzi.encrypted; key=k1");
        assert!(!sealed.data.windows(4).any(|bytes| bytes == b"4242" || bytes == b"json"));
        assert_eq!(codec("k1", 7).decode(sealed).unwrap(), secret());
    }

    #[test]
    fn equal_payloads_do_not_look_equal() {
        let codec = codec("k1", 7);

        assert_ne!(codec.encode(secret()).unwrap().data, codec.encode(secret()).unwrap().data);
    }

    #[test]
    fn a_rotated_key_still_opens_what_it_closed() {
        let old = codec("k1", 7).encode(secret()).unwrap();
        let rotated = codec("k2", 8).with_old_key("k1", [7; 32]).unwrap();

        assert_eq!(key_id(&rotated.encode(secret()).unwrap().content_type), Some("k2"));
        assert_eq!(rotated.decode(old).unwrap(), secret());
    }

    #[test]
    fn an_unknown_key_and_a_wrong_key_are_told_apart() {
        let sealed = codec("k1", 7).encode(secret()).unwrap();

        let unknown = codec("k2", 7).decode(sealed.clone()).unwrap_err().to_string();
        let wrong = codec("k1", 8).decode(sealed).unwrap_err().to_string();

        assert!(unknown.contains("encrypted with key 'k1', and only k2 is known"), "{unknown}");
        assert!(wrong.contains("could not decrypt with key 'k1': the key is another one"), "{wrong}");
    }

    #[test]
    fn a_changed_payload_is_noticed_wherever_it_was_changed() {
        let codec = codec("k1", 7).with_old_key("k2", [7; 32]).unwrap();
        let sealed = codec.encode(secret()).unwrap();

        for place in 0..sealed.data.len() {
            let mut data = sealed.data.to_vec();
            data[place] ^= 1;
            assert!(codec.decode(Payload { data: data.into(), ..sealed.clone() }).is_err(), "byte {place}");
        }
        let relabelled = Payload { content_type: format!("{ENCRYPTED}; key=k2"), ..sealed };
        assert!(codec.decode(relabelled).is_err(), "the key id is bound to the payload");
        let short = Payload { data: vec![LAYOUT; 9].into(), content_type: format!("{ENCRYPTED}; key=k1") };
        assert!(codec.decode(short).is_err());
    }

    #[test]
    fn key_ids_are_checked_and_keys_are_not_printed() {
        assert!(EncryptionCodec::new("", [0; 32]).is_err());
        assert!(EncryptionCodec::new("a b", [0; 32]).is_err());
        assert!(codec("k1", 7).with_old_key("k1", [8; 32]).is_err());
        assert_eq!(format!("{:?}", codec("k1", 7)), "EncryptionCodec(k1)");
    }
}
