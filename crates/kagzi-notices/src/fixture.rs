//! Receivers on loopback for tests: a mail server and a web server that speak the real protocols, and that
//! refuse, hang and break off when they are told to.

mod smtp;
mod web;

use std::sync::Arc;

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio_rustls::TlsAcceptor;

pub use smtp::{Letter, MailServer, MailTrouble, Security};
pub use web::{Posted, WebReceiver, WebTrouble};

/// The authority of the fixture's certificate for `localhost`, in PEM. Its own key was thrown away.
pub const AUTHORITY_PEM: &[u8] = include_bytes!("fixture/authority.pem");

/// Shows the fixture's certificate.
fn acceptor() -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("fixture/localhost.pem"));
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("fixture/localhost.key"));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.expect("the fixture's certificate is readable")],
            key.expect("the fixture's key is readable"),
        )
        .expect("key and certificate belong together");
    TlsAcceptor::from(Arc::new(config))
}
