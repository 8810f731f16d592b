//! Uploads that are answered before their bytes were sent, and senders who send all the same.

use super::{SHORT, read_response};
use purvey_catalog::catalog::{Catalog, Options};
use purvey_server::{Server, ServerConfig, Surfaces};
use purvey_work::{Blobs, Platform, PlatformOptions, Store};
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// SHA-256 of nothing and of "whole", by `sha256sum`.
const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const WHOLE: &str = "5d5766cf2d78701614200418ee1450690d9af12c84d52545e4802f001ad53099";

struct Work {
    addr: SocketAddr,
    /// The path of uploads and the credential for it.
    head: String,
    platform: Platform,
    _directory: TempDir,
}

impl Work {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = PlatformOptions::default();
        options.blobs = Blobs::local(&directory.path().join("artifacts")).unwrap();
        options.uploads.bytes = 20_000_000;
        let platform = Platform::new(Store::in_memory().unwrap(), options);
        let made = platform.bootstrap().await.unwrap().unwrap();
        let catalog = Catalog::open(&directory.path().join("catalog"), Options::default()).unwrap();
        let mut config = ServerConfig::default();
        config.listen = ([127, 0, 0, 1], 0).into();
        let surfaces = Surfaces::from(catalog).with_work(platform.clone());
        let server = Server::bind(config, surfaces).await.unwrap();
        let addr = server.addr();
        tokio::spawn(server.run(std::future::pending()));
        let head = format!(
            "POST /v1/workspaces/{}/artifacts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nidempotency-key: k\r\nx-filename: f\r\n",
            made.workspace.id, made.token.secret
        );
        Self {
            addr,
            head,
            platform,
            _directory: directory,
        }
    }

    /// Sends a head, with these fields.
    async fn begin(&self, fields: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        let head = format!("{}{fields}\r\n", self.head);
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }
}

fn fields(size: usize, sha256: &str, media: &str) -> String {
    format!(
        "content-type: {media}\r\ncontent-length: {size}\r\nx-upload-size: {size}\r\nx-content-sha256: {sha256}\r\n"
    )
}

#[tokio::test]
async fn who_asks_first_is_asked_for_the_bytes_or_refused() {
    let work = Work::new().await;
    let octets = "application/octet-stream";
    for (size, media, status) in [
        (5, "text/plain", "415"),
        (5, "application/octet-stream; v=1", "415"),
        (20_000_001, octets, "413"),
    ] {
        let ask = fields(size, NOTHING, media) + "expect: 100-continue\r\n";
        let mut stream = work.begin(&ask).await;
        let answer = read_response(&mut stream).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
    let ask = fields(5, WHOLE, octets) + "expect: 100-continue\r\n";
    let mut stream = work.begin(&ask).await;
    let mut line = [0; 25];
    stream.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"HTTP/1.1 100 Continue\r\n\r\n");
    // Nothing more until the bytes are there.
    assert!(timeout(SHORT, stream.read(&mut [0])).await.is_err());
    stream.write_all(b"whole").await.unwrap();
    let answer = read_response(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
}

#[tokio::test]
async fn who_sends_all_the_same_reads_the_answer() {
    let work = Work::new().await;
    let bytes = vec![7; 4_000_000];
    for (media, declared, status) in [
        ("text/plain", NOTHING, "415"),
        // Judged by its bytes, at their end.
        ("application/octet-stream", NOTHING, "400"),
        // Judged by its key, which has failed by then.
        ("application/octet-stream", NOTHING, "409"),
    ] {
        let mut stream = work.begin(&fields(bytes.len(), declared, media)).await;
        // Whoever is cut off while sending sees an error here, or has its answer taken away by the reset.
        stream.write_all(&bytes).await.unwrap();
        let answer = read_response(&mut stream).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_sender_who_is_gone_leaves_nothing() {
    let work = Work::new().await;
    let octets = "application/octet-stream";
    let mut stream = work.begin(&fields(4_000_000, NOTHING, octets)).await;
    stream.write_all(&[7; 1_000_000]).await.unwrap();
    drop(stream);
    let again = fields(4_000_000, NOTHING, octets);
    let failed = async {
        loop {
            let mut stream = work.begin(&again).await;
            let answer = read_response(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 409 "), "{answer}");
            if answer.contains("\"artifact.upload_failed\"") {
                return;
            }
            assert!(answer.contains("\"artifact.upload_active\""), "{answer}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(10), failed).await.unwrap();
    work.platform.tend_artifacts(false).await.unwrap();
}
