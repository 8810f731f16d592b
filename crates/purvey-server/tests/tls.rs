//! TLS from PEM files, with a client that trusts only that certificate.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{config, filled};
use purvey_server::{Server, ServerConfig, TlsFiles};
use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};
use std::{path::Path, sync::Arc};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
};
use tokio_rustls::TlsConnector;

fn with_tls(directory: &Path, certificate: &str, key: &str) -> ServerConfig {
    let files = TlsFiles {
        certificates: directory.join("certificate.pem"),
        key: directory.join("key.pem"),
    };
    std::fs::write(&files.certificates, certificate).unwrap();
    std::fs::write(&files.key, key).unwrap();
    let mut config = config();
    config.tls = Some(files);
    config
}

fn client(trusted: &rcgen::Certificate, protocol: &str) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.der().clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    TlsConnector::from(Arc::new(config))
}

#[tokio::test]
async fn the_service_speaks_tls_with_the_given_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let config = with_tls(
        directory.path(),
        &made.cert.pem(),
        &made.signing_key.serialize_pem(),
    );
    let server = Server::bind(config, filled(directory.path()))
        .await
        .unwrap();
    let addr = server.addr();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async {
        let _ = stopped.await;
    }));
    let name = || ServerName::try_from("localhost").unwrap();

    let stream = TcpStream::connect(addr).await.unwrap();
    let mut stream = client(&made.cert, "http/1.1")
        .connect(name(), stream)
        .await
        .unwrap();
    let request =
        b"GET /odp/offerings/lamp-01 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    // The peer closes without saying so; what came before counts.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("\"id\":\"lamp-01\""), "{answer}");

    let stream = TcpStream::connect(addr).await.unwrap();
    let stream = client(&made.cert, "h2")
        .connect(name(), stream)
        .await
        .unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));

    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let stream = TcpStream::connect(addr).await.unwrap();
    assert!(
        client(&other.cert, "h2")
            .connect(name(), stream)
            .await
            .is_err()
    );

    // Whoever speaks plain HTTP to it gets nothing, and does no harm.
    let mut plain = TcpStream::connect(addr).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"));

    stop.send(()).unwrap();
    running.await.unwrap();
}

#[tokio::test]
async fn files_that_are_no_certificate_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let catalog = filled(directory.path());
    for (certificate, key, culprit) in [
        ("", made.signing_key.serialize_pem(), "certificate.pem"),
        (&*made.cert.pem(), String::new(), "key.pem"),
    ] {
        let config = with_tls(directory.path(), certificate, &key);
        let error = Server::bind(config, catalog.clone()).await.err().unwrap();
        assert!(error.to_string().contains(culprit), "{error}");
    }
}
