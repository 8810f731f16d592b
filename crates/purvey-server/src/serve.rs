//! Sockets: accepting, TLS, timeouts, connection cap, stopping.

use crate::{
    ServerConfig, Surfaces,
    front::Front,
    head::{HEAD_BYTES, HTTP2_HEAD_BYTES},
    tls,
    wire::Wire,
};
use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
};
use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

/// Connections are not looked at more often than four times in this time.
const SHORTEST_LOOK: Duration = Duration::from_millis(40);

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// A certificate or key file cannot be used.
    #[error("{}: {reason}", path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// A server that holds its address and is ready to run.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    front: Front,
}

impl Server {
    /// Takes the address and reads the TLS files; connections queue until [`Self::run`].
    ///
    /// # Errors
    /// The address is taken or not ours, or the TLS files cannot be used.
    pub async fn bind(
        config: ServerConfig,
        surfaces: impl Into<Surfaces>,
    ) -> Result<Self, ServeError> {
        let listen = |source| ServeError::Listen {
            address: config.listen,
            source,
        };
        let tls = config.tls.as_ref().map(tls::acceptor).transpose()?;
        let listener = TcpListener::bind(config.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        Ok(Self {
            listener,
            address,
            tls,
            front: Front::new(config, surfaces.into()),
        })
    }

    /// The address that is listened on, with the port that was picked.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` is done, then unready for the drain delay, then without accepting until every request is
    /// answered or the shutdown deadline has passed. Long polls are answered and event streams end as soon as nothing is accepted.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let config = self.front.config();
        let acceptor = Arc::new(Acceptor::new(self.tls, self.front.clone()));
        let slots = Arc::new(Semaphore::new(config.max_connections.max(1)));
        let connections = GracefulShutdown::new();
        let stop = async {
            shutdown.await;
            self.front.set_ready(false);
            tracing::info!("stopping");
            sleep(config.drain_delay).await;
        };
        tokio::pin!(stop);
        let mut tidy = tokio::time::interval(Duration::from_secs(60));
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = tidy.tick() => self.front.tidy(),
                (stream, peer, slot) = accept(&self.listener, &slots) => {
                    let acceptor = Arc::clone(&acceptor);
                    let watcher = connections.watcher();
                    tokio::spawn(acceptor.connection(stream, peer, slot, watcher));
                }
            }
        }
        drop(self.listener);
        self.front.close();
        if timeout(config.shutdown_deadline, connections.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("requests were still being answered at the shutdown deadline");
        }
    }
}

/// The next connection, once one may be opened.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
    // Never closed, so there is always a slot sooner or later.
    let slot = Arc::clone(slots).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer, slot),
            // The peer went away again; nothing is wrong with us.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
                ) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept; trying again");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

struct Acceptor {
    tls: Option<TlsAcceptor>,
    front: Front,
    http: auto::Builder<TokioExecutor>,
    header_timeout: Duration,
    write_timeout: Duration,
}

impl Acceptor {
    fn new(tls: Option<TlsAcceptor>, front: Front) -> Self {
        let config = front.config();
        let (header_timeout, write_timeout) = (config.header_timeout, config.write_timeout);
        let mut http = auto::Builder::new(TokioExecutor::new());
        http.http1()
            .timer(TokioTimer::new())
            .header_read_timeout(header_timeout)
            .max_buf_size(HEAD_BYTES);
        http.http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(256)
            .max_header_list_size(HTTP2_HEAD_BYTES as u32)
            .keep_alive_interval(Duration::from_secs(20))
            .keep_alive_timeout(header_timeout);
        Self {
            tls,
            front,
            http,
            header_timeout,
            write_timeout,
        }
    }

    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        slot: Option<OwnedSemaphorePermit>,
        watcher: hyper_util::server::graceful::Watcher,
    ) {
        let _slot = slot;
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => self.http(stream, peer, watcher).await,
            Some(tls) => match timeout(self.header_timeout, tls.accept(stream)).await {
                Ok(Ok(stream)) => self.http(stream, peer, watcher).await,
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake took too long"),
            },
        }
    }

    async fn http(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: SocketAddr,
        watcher: hyper_util::server::graceful::Watcher,
    ) {
        let front = self.front.for_peer(peer.ip());
        let stalls = front.stalls();
        let stream = Wire::new(stream, self.write_timeout);
        let begun = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&begun);
        let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
            seen.store(true, Ordering::Relaxed);
            let front = front.clone();
            async move { Ok::<_, std::convert::Infallible>(front.answer(request).await) }
        });
        let connection = self
            .http
            .serve_connection(TokioIo::new(stream), service)
            .into_owned();
        let connection = watcher.watch(connection);
        tokio::pin!(connection);
        // The protocol is told from the first bytes before any timer of the HTTP library runs: a connection that has not
        // brought a whole header by then is dropped here.
        let first = tokio::time::sleep_until(Instant::now() + self.header_timeout);
        tokio::pin!(first);
        let mut waiting = true;
        // Under HTTP/2 the socket takes bytes while a stream does not: its reader gives the stream no room.
        let mut look = tokio::time::interval(self.write_timeout.max(SHORTEST_LOOK) / 4);
        loop {
            tokio::select! {
                result = &mut connection => return log_end(result),
                () = &mut first, if waiting => {
                    waiting = false;
                    if !begun.load(Ordering::Relaxed) {
                        return;
                    }
                }
                _ = look.tick() => if stalls.longest() > self.write_timeout {
                    tracing::debug!("a connection ends: the reader of a response has stopped reading");
                    return;
                }
            }
        }
    }
}

fn log_end(result: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = result {
        tracing::debug!(%error, "connection ended");
    }
}
