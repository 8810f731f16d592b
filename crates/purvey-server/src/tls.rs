//! TLS from PEM files.

use crate::{TlsFiles, serve::ServeError};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use std::{path::Path, sync::Arc};
use tokio_rustls::TlsAcceptor;

/// Reads the certificate chain and its key; offers HTTP/2 and HTTP/1.1.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ServeError> {
    let certificates = CertificateDer::pem_file_iter(&files.certificates)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| bad(&files.certificates, &error))?;
    if certificates.is_empty() {
        return Err(bad(&files.certificates, &"it holds no certificate"));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| bad(&files.key, &error))?;
    // Named, since a process default would depend on which crates are linked.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(certificates, key)
        })
        .map_err(|error| bad(&files.certificates, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn bad(path: &Path, reason: &dyn std::fmt::Display) -> ServeError {
    ServeError::Tls {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}
