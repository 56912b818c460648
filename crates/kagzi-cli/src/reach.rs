//! Whether a Kagzi server answers at an address, and if not, why.
//!
//! The transport would say "transport error" whether the name is wrong, nobody listens or somebody else does.

use crate::address::Address;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What a client of HTTP/2 says first, and an empty list of settings.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// A frame begins with its length, three bytes, and its kind.
const FRAME_HEADER_LEN: usize = 9;
const SETTINGS: u8 = 4;
/// The kinds of records with which TLS answers somebody who does not speak it, and its version.
const TLS_ALERT: [u8; 2] = [21, 3];

/// Says hello and listens for the answer.
pub async fn check(address: &Address, patience: Duration) -> Result<(), String> {
    let mut stream = match timeout(patience, TcpStream::connect(address.to_string())).await {
        Err(_) => {
            return Err(format!("no connection within {patience:?}: a firewall, or the machine is away"));
        }
        Ok(Err(error)) => return Err(why(&error)),
        Ok(Ok(stream)) => stream,
    };
    match timeout(patience, greet(&mut stream)).await {
        Err(_) => Err(format!("it accepts the connection and says nothing for {patience:?}")),
        Ok(Err(error)) => Err(format!("it closed the connection ({error})")),
        Ok(Ok(answer)) => judge(&answer),
    }
}

async fn greet(stream: &mut TcpStream) -> std::io::Result<[u8; FRAME_HEADER_LEN]> {
    stream.write_all(GREETING).await?;
    let mut answer = [0; FRAME_HEADER_LEN];
    // TLS answers with seven bytes and closes: what is missing stays zero.
    let mut len = 0;
    while len < answer.len() {
        match stream.read(&mut answer[len..]).await? {
            0 if len == 0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            0 => break,
            more => len += more,
        }
    }
    Ok(answer)
}

fn judge(answer: &[u8; FRAME_HEADER_LEN]) -> Result<(), String> {
    if answer[3] == SETTINGS && answer[0] == 0 {
        return Ok(());
    }
    if answer[..2] == TLS_ALERT {
        return Err("it speaks TLS, and this command does not yet; is there a port without TLS?".into());
    }
    if answer.starts_with(b"HTTP/1") {
        return Err("a web server answers there, and no Kagzi".into());
    }
    Err("something answers there that does not speak HTTP/2".into())
}

fn why(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "the connection was refused: nothing listens there".into(),
        // A name that means nothing has no kind of its own; the system's words name it.
        _other => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    const PATIENCE: Duration = Duration::from_secs(5);

    /// What is said of a server that answers with these bytes and closes.
    async fn said_of(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::from(listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            let (mut peer, _) = listener.accept().await.unwrap();
            let mut greeting = vec![0; GREETING.len()];
            peer.read_exact(&mut greeting).await.unwrap();
            peer.write_all(answer).await.unwrap();
        });
        let checked = check(&address, PATIENCE).await;
        serving.await.unwrap();
        checked.err().unwrap_or_default()
    }

    #[tokio::test]
    async fn whatever_answers_is_told_apart() {
        assert_eq!(said_of(b"\0\0\0\x04\0\0\0\0\0").await, "", "a server of HTTP/2");
        assert!(said_of(b"\x15\x03\x03\0\x02\x02\x46").await.contains("TLS"));
        assert!(said_of(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.contains("a web server"));
        assert!(said_of(b"SSH-2.0-OpenSSH_9.6\r\n").await.contains("does not speak HTTP/2"));
        assert!(said_of(b"").await.contains("closed the connection"));
    }

    #[tokio::test]
    async fn nobody_there_and_no_such_name_are_told_apart() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let free = Address::from(listener.local_addr().unwrap());
        drop(listener);

        let refused = check(&free, PATIENCE).await.unwrap_err();
        let nameless = check(&"no-such-host.invalid:50051".parse().unwrap(), PATIENCE).await.unwrap_err();

        assert!(refused.contains("refused"), "{refused}");
        assert!(nameless.contains("lookup") || nameless.contains("name"), "{nameless}");
    }

    #[tokio::test]
    async fn a_server_that_says_nothing_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::from(listener.local_addr().unwrap());

        let silent = check(&address, Duration::from_millis(50)).await.unwrap_err();

        assert!(silent.contains("says nothing for 50ms"), "{silent}");
    }
}
