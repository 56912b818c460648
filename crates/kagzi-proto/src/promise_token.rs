//! The token of a promise: run, name and 128 random bits in one text. Part of the contract: server and SDK
//! agree on it, and nobody else needs to look inside.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// How a token begins, so that people and programs that look for leaked secrets know it.
const BEGINS: &str = "kagzi_promise_";
const RUN_LEN: usize = 16;
const SECRET_LEN: usize = 16;

/// What a token says.
#[derive(Clone, PartialEq, Eq)]
pub struct PromiseToken {
    /// The run that made the promise.
    pub run: Uuid,
    /// The promise's name in that run.
    pub name: String,
    /// Whoever knows it may complete this promise, once.
    pub secret: [u8; SECRET_LEN],
}

impl PromiseToken {
    /// 128 bits that nobody can guess.
    pub fn new_secret() -> [u8; SECRET_LEN] {
        // Each of the two has 122 random bits from the system.
        let drawn = Sha256::new().chain_update(Uuid::new_v4()).chain_update(Uuid::new_v4()).finalize();
        let mut secret = [0; SECRET_LEN];
        secret.copy_from_slice(&drawn[..SECRET_LEN]);
        secret
    }

    /// The secret that is written in hexadecimal digits.
    pub fn read_secret(hex: &str) -> Option<[u8; SECRET_LEN]> {
        Uuid::try_parse(hex).ok().map(Uuid::into_bytes)
    }

    /// The secret in hexadecimal digits.
    pub fn secret_text(&self) -> String {
        Uuid::from_bytes(self.secret).simple().to_string()
    }

    /// What the server keeps instead of the secret.
    pub fn hash(&self) -> String {
        let hash = Sha256::digest(self.secret);
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The token as it is handed out.
    pub fn text(&self) -> String {
        let mut bytes = self.run.as_bytes().to_vec();
        bytes.extend(self.secret);
        bytes.extend(self.name.as_bytes());
        format!("{BEGINS}{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Reads a token; none when it is not one.
    pub fn read(text: &str) -> Option<PromiseToken> {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim().strip_prefix(BEGINS)?).ok()?;
        let (run, rest) = bytes.split_at_checked(RUN_LEN)?;
        let (secret, name) = rest.split_at_checked(SECRET_LEN)?;
        Some(PromiseToken {
            run: Uuid::from_slice(run).ok()?,
            name: String::from_utf8(name.to_vec()).ok().filter(|name| !name.is_empty())?,
            secret: secret.try_into().ok()?,
        })
    }
}

/// Never shows the secret: tokens end up in logs.
impl std::fmt::Debug for PromiseToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PromiseToken({} {})", self.run, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written_and_anything_else_is_none() {
        let (run, name) = (Uuid::now_v7(), "payment of €7".to_owned());
        let token = PromiseToken { run, name, secret: PromiseToken::new_secret() };

        assert_eq!(PromiseToken::read(&token.text()), Some(token.clone()));
        assert_eq!(PromiseToken::read_secret(&token.secret_text()), Some(token.secret));
        assert!(!format!("{token:?}").contains(&token.secret_text()));
        for wrong in ["", "kagzi_promise_", "kagzi_promise_AAAA", "payment", &token.text()[..50]] {
            assert_eq!(PromiseToken::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn secrets_differ_and_so_do_their_hashes() {
        let token = || PromiseToken {
            run: Uuid::nil(),
            name: "payment".to_owned(),
            secret: PromiseToken::new_secret(),
        };
        let (one, other) = (token(), token());

        assert_ne!(one.secret, other.secret);
        assert_ne!(one.hash(), other.hash());
        assert_eq!(one.hash().len(), 64);
    }
}
