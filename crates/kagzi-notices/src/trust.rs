//! Whom we believe when a receiver shows a certificate: the machine's authorities, and one that an operator
//! named.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::email::SettingsError;

/// How to begin TLS with a receiver.
pub(crate) fn client_config(authority_pem: Option<&[u8]>) -> Result<Arc<ClientConfig>, SettingsError> {
    let mut roots = RootCertStore::empty();
    // A machine without authorities can still talk to a receiver of its own authority, or in clear.
    let machine = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(machine.certs);
    for certificate in authorities(authority_pem)? {
        roots.add(certificate).map_err(|error| SettingsError::new("ca_file", error.to_string()))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| SettingsError::new("ca_file", error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The certificates of a PEM file. A file without any is a mistake, not an empty list.
pub(crate) fn authorities(pem: Option<&[u8]>) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
    let Some(pem) = pem else { return Ok(Vec::new()) };
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(SettingsError::new("ca_file", "it holds no certificate; it must be a PEM file")),
        Err(error) => Err(SettingsError::new("ca_file", format!("it is no PEM file: {error}"))),
    }
}
