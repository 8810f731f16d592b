//! What only real sockets show: timeouts, caps, rates, stopping.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod answered;
mod bounds;
#[path = "../common/mod.rs"]
mod common;
mod http2;
mod stopping;
mod uploads;

use common::filled;
use purvey_catalog::catalog::Catalog;
use purvey_server::{Server, ServerConfig};
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

const GET: &str = "GET /odp/offerings/lamp-01 HTTP/1.1\r\nhost: x\r\n\r\n";
const SHORT: Duration = Duration::from_millis(300);

struct Running {
    addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    _catalog: Catalog,
    _directory: TempDir,
}

impl Running {
    async fn with(config: ServerConfig) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let catalog = filled(directory.path());
        let server = Server::bind(config, catalog.clone()).await.unwrap();
        let addr = server.addr();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        Self {
            addr,
            stop: Some(stop),
            task,
            _catalog: catalog,
            _directory: directory,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.unwrap()
    }

    fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }
}

/// Sends, then reads until the response's declared end (or the connection's).
async fn exchange(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    read_response(stream).await
}

async fn read_response(stream: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        let text = String::from_utf8_lossy(&seen).to_lowercase();
        if let Some(end) = text.find("\r\n\r\n") {
            let length = text[..end]
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.trim().parse::<usize>().unwrap());
            if seen.len() >= end + 4 + length {
                return String::from_utf8(seen).unwrap();
            }
        }
        let read = timeout(Duration::from_secs(5), stream.read(&mut buffer))
            .await
            .expect("an answer in time")
            .unwrap();
        if read == 0 {
            return String::from_utf8(seen).unwrap();
        }
        seen.extend_from_slice(&buffer[..read]);
    }
}

/// Waits until the only place in flight is free again.
async fn until_free(server: &Running) {
    let free = async {
        loop {
            let mut stream = server.connect().await;
            if exchange(&mut stream, GET).await.contains(" 200 ") {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(10), free).await.expect("free");
}
