//! Errors of other people's libraries that say something: I/O errors, and with the feature `reqwest` those of
//! that HTTP client. They have a code and a class without any work of whoever returns them.

use std::io::{self, ErrorKind};

use kagzi_catalogue::handling::known_codes;
use kagzi_proto::v1;

use crate::failure;

/// What the error in this chain is, if it is one that is known.
pub(crate) fn read(error: &anyhow::Error, message: &str) -> Option<v1::Failure> {
    #[cfg(feature = "reqwest")]
    if let Some(found) = failure::find::<reqwest::Error>(error) {
        return Some(of_reqwest(found, message));
    }
    let code = io_code(failure::find::<io::Error>(error)?.kind())?;
    Some(of_code(code, message))
}

fn of_code(code: &str, message: &str) -> v1::Failure {
    let class = known_codes::class(code).map_or("", |class| class.name()).to_owned();
    v1::Failure { class, ..failure::new(code, message.to_owned(), false) }
}

/// The code of an I/O error. None of them is final by itself: a file that is not there may come.
fn io_code(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::NotFound => "file_not_found",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => "permission_denied",
        ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::NotConnected
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::BrokenPipe => "connection_failed",
        ErrorKind::TimedOut => "timeout",
        ErrorKind::Interrupted | ErrorKind::WouldBlock => "interrupted",
        ErrorKind::ResourceBusy | ErrorKind::ExecutableFileBusy | ErrorKind::Deadlock => "file_locked",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "disk_full",
        ErrorKind::OutOfMemory => "out_of_memory",
        // The rest says nothing about what to do, and new kinds may come with any compiler.
        _ => return None,
    })
}

#[cfg(feature = "reqwest")]
fn of_reqwest(error: &reqwest::Error, message: &str) -> v1::Failure {
    if let Some(status) = error.status() {
        let answer = crate::http_failure::HttpFailure::new(status.as_u16());
        let read = crate::step_error::StepFailure::from(answer);
        return v1::Failure {
            class: read.class,
            http_status: status.as_u16().into(),
            ..failure::new(&read.code, message.to_owned(), read.non_retryable)
        };
    }
    let code = if error.is_timeout() {
        "timeout"
    } else if error.is_builder() || error.is_redirect() {
        "invalid_request"
    } else if error.is_decode() {
        "invalid_response"
    } else {
        // Connecting, sending, reading: nobody knows how far the receiver got.
        "connection_failed"
    };
    // A request that cannot be made is the same request next time.
    v1::Failure { non_retryable: code == "invalid_request", ..of_code(code, message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_io(kind: ErrorKind) -> Option<v1::Failure> {
        let error = anyhow::Error::new(io::Error::new(kind, "it failed")).context("copying");
        read(&error, "copying: it failed")
    }

    #[test]
    fn io_errors_have_a_code_and_a_class_and_are_retried_by_the_policy() {
        for (kind, code, class) in [
            (ErrorKind::NotFound, "file_not_found", "recoverable"),
            (ErrorKind::PermissionDenied, "permission_denied", "user_resolvable"),
            (ErrorKind::ConnectionRefused, "connection_failed", "transient"),
            (ErrorKind::TimedOut, "timeout", "transient"),
            (ErrorKind::StorageFull, "disk_full", "catastrophic"),
            (ErrorKind::ResourceBusy, "file_locked", "transient"),
            (ErrorKind::Interrupted, "interrupted", "transient"),
            (ErrorKind::OutOfMemory, "out_of_memory", "catastrophic"),
        ] {
            let failure = read_io(kind).unwrap();
            assert_eq!((failure.code.as_str(), failure.class.as_str()), (code, class));
            assert_eq!((failure.non_retryable, failure.message.as_str()), (false, "copying: it failed"));
        }
        assert_eq!(read_io(ErrorKind::Other), None);
        assert_eq!(read(&anyhow::anyhow!("plain"), "plain"), None);
    }
}

#[cfg(all(test, feature = "reqwest"))]
mod reqwest_tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A server that answers every request with this, and its address.
    async fn serve(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(answer.as_bytes()).await;
                if answer.is_empty() {
                    // It stays open and silent.
                    tokio::time::sleep(Duration::from_secs(60)).await;
                }
            }
        });
        address
    }

    async fn asked(address: &str) -> v1::Failure {
        let client =
            reqwest::Client::builder().timeout(Duration::from_millis(500)).no_proxy().build().unwrap();
        let answer = async { client.get(address).send().await?.error_for_status()?.text().await }.await;
        let error = anyhow::Error::new(answer.unwrap_err()).context("asking");
        let failure = crate::failure::of_error(&error);
        assert!(failure.message.starts_with("asking: "), "{}", failure.message);
        failure
    }

    #[tokio::test]
    async fn an_error_of_the_http_client_says_what_it_is() {
        let limited = asked(&serve("HTTP/1.1 429 Too Many\r\ncontent-length: 0\r\n\r\n").await).await;
        assert_eq!((limited.code.as_str(), limited.class.as_str()), ("rate_limited", "transient"));
        assert_eq!((limited.http_status, limited.non_retryable), (429, false));

        let missing = asked(&serve("HTTP/1.1 404 Gone\r\ncontent-length: 0\r\n\r\n").await).await;
        assert_eq!((missing.code.as_str(), missing.http_status), ("not_found", 404));
        assert!(missing.non_retryable);

        let silent = asked(&serve("").await).await;
        assert_eq!((silent.code.as_str(), silent.class.as_str()), ("timeout", "transient"));

        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let refused = asked(&format!("http://{closed}")).await;
        assert_eq!((refused.code.as_str(), refused.non_retryable), ("connection_failed", false));

        let senseless = asked("no address at all").await;
        assert_eq!((senseless.code.as_str(), senseless.non_retryable), ("invalid_request", true));
    }
}
