//! One POST over HTTP/1.1, on a connection of its own: messages are rare, and a connection that is kept can
//! only be stale.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, client::conn::http1, header::RETRY_AFTER};
use hyper_util::rt::TokioIo;
use kagzi_model::Millis;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::target::{Target, is_no_receiver};
use crate::clean;

/// Bytes of an answer that are read: enough to say what is wrong.
const ANSWER_BYTES_MAX: usize = 2_048;

/// So long the body of an answer is waited for. It only explains.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// What the receiver said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub status: u16,
    /// The beginning of its body, as one line.
    pub beginning: String,
    /// When it asked to come again.
    pub retry_after_ms: Option<Millis>,
}

/// Sends the request and reads the beginning of the answer. The caller limits the time.
pub(super) async fn post(
    target: &Target,
    tls: &Arc<ClientConfig>,
    headers: Vec<(&'static str, String)>,
    body: String,
) -> io::Result<Answer> {
    let mut request = Request::post(target.path_and_query())
        .header("host", target.authority())
        .header("connection", "close");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(io::Error::other)?;
    let stream = connect(target).await?;
    if !target.is_encrypted() {
        return exchange(stream, request).await;
    }
    let name = ServerName::try_from(target.lookup()).map_err(io::Error::other)?;
    exchange(TlsConnector::from(tls.clone()).connect(name, stream).await?, request).await
}

/// Connects to the first of the host's addresses that answers and that may be asked.
async fn connect(target: &Target) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the host has no address that messages may be sent to");
    for address in tokio::net::lookup_host((target.lookup(), target.port())).await? {
        if is_no_receiver(address.ip()) {
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> io::Result<Answer>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // The connection moves the bytes. It is not spawned, so that it ends with the try.
    let talk = async {
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after_ms = retry_after.and_then(|text| text.trim().parse::<i64>().ok());
        let retry_after_ms = retry_after_ms.map(|seconds| seconds.saturating_mul(1_000));
        let status = response.status().as_u16();
        let beginning = beginning(response.into_body()).await;
        Ok(Answer { status, beginning, retry_after_ms })
    };
    tokio::pin!(talk);
    tokio::pin!(connection);
    tokio::select! {
        biased;
        answer = &mut talk => return answer,
        ended = &mut connection => ended.map_err(io::Error::other)?,
    }
    // The connection is over; what it read is still to be had.
    talk.await
}

/// The status is what counts: a body that breaks off, or never ends, is no error.
async fn beginning(mut body: hyper::body::Incoming) -> String {
    let mut read = Vec::new();
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            read.extend_from_slice(frame.data_ref().map_or(&[], |data| &data[..]));
            if read.len() >= ANSWER_BYTES_MAX {
                return;
            }
        }
    };
    // What came until then is enough.
    let _ = tokio::time::timeout(ANSWER_MAX, reading).await;
    read.truncate(ANSWER_BYTES_MAX);
    clean::line(&String::from_utf8_lossy(&read), 200)
}
