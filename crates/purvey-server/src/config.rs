//! Every tunable of the server, with its unit and default.

use sha2::{Digest, Sha256};
use std::{fmt, net::SocketAddr, num::NonZeroU32, path::PathBuf, time::Duration};
use subtle::ConstantTimeEq;

/// How the server listens, what it bounds, and who may write.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Address and port to listen on; port 0 picks a free one. Default `127.0.0.1:8080`.
    pub listen: SocketAddr,
    /// Certificate and key for TLS; plain HTTP without. Default none.
    pub tls: Option<TlsFiles>,
    /// The operator's token; without one every write is refused with 401. Default none.
    pub admin_token: Option<AdminToken>,
    /// Longest wait for a TLS handshake or for a request's header to arrive; also closes idle connections. Default 10 s.
    pub header_timeout: Duration,
    /// Longest wait for a request body to arrive; for streams, for its next piece. Default 30 s.
    pub body_timeout: Duration,
    /// Longest wait for a client to take any byte of a response that is ready for it; then its connection ends. Default 30 s.
    pub write_timeout: Duration,
    /// Connections open at once; more wait unaccepted. At least 1. Default 4,096.
    pub max_connections: usize,
    /// Requests being answered at once, each until its response has left; more get 503 with `Retry-After`. At least 1. Default
    /// 1,024.
    pub max_in_flight: usize,
    /// Searches at work at once, each on a thread of its own. At least 1. Default: one for each processor.
    pub max_searches: usize,
    /// Searches that wait for one of those to end; more get 503 with `Retry-After`. Default 256.
    pub search_queue: usize,
    /// Longest wait of such a search; then it gets 503 too. Default 1 s.
    pub search_wait: Duration,
    /// Searches that take this long are logged with their shape, without their text and values. Default 250 ms.
    pub slow_search: Duration,
    /// Requests a client address may make a second, on average; more get 429 with `Retry-After`. Default: no bound.
    pub rate_per_second: Option<NonZeroU32>,
    /// Requests a client address may make at once under [`Self::rate_per_second`]. Default: as many as a second's.
    pub rate_burst: Option<NonZeroU32>,
    /// Largest body of one record in an operator's write, and longest line of a stream of them, in bytes. Default 2 MiB:
    /// one Offering with translations.
    pub max_record_bytes: usize,
    /// Longest wait of a write with `?wait=published`. Default 30 s.
    pub publish_wait: Duration,
    /// How long, once told to stop, the server stays reachable but unready, so that a balancer notices. Default 0 s.
    pub drain_delay: Duration,
    /// How long requests in progress may take to finish once the server stops accepting. Default 30 s.
    pub shutdown_deadline: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            tls: None,
            admin_token: None,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            max_connections: 4_096,
            max_in_flight: 1_024,
            max_searches: std::thread::available_parallelism().map_or(1, Into::into),
            search_queue: 256,
            search_wait: Duration::from_secs(1),
            slow_search: Duration::from_millis(250),
            rate_per_second: None,
            rate_burst: None,
            max_record_bytes: 2 * 1_024 * 1_024,
            publish_wait: Duration::from_secs(30),
            drain_delay: Duration::ZERO,
            shutdown_deadline: Duration::from_secs(30),
        }
    }
}

/// PEM files for TLS.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Certificate chain, the server's own first.
    pub certificates: PathBuf,
    /// Private key of the first certificate.
    pub key: PathBuf,
}

/// The operator's bearer token. Only its SHA-256 digest is kept, and nothing prints it.
#[derive(Clone)]
pub struct AdminToken([u8; 32]);

impl AdminToken {
    /// Shortest token accepted, in characters.
    pub const MIN_CHARS: usize = 16;

    /// Takes a token: [`Self::MIN_CHARS`] to 1,024 visible ASCII characters; blanks and line ends around it do not count.
    ///
    /// # Errors
    /// Says what a token must look like; never repeats it.
    pub fn new(token: &str) -> Result<Self, AdminTokenError> {
        let token = token.trim();
        let sized = (Self::MIN_CHARS..=1_024).contains(&token.len());
        if sized && token.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(Sha256::digest(token.as_bytes()).into()))
        } else {
            Err(AdminTokenError)
        }
    }

    /// Whether `candidate` is the token; takes the same time whatever it is.
    pub fn matches(&self, candidate: &[u8]) -> bool {
        let digest: [u8; 32] = Sha256::digest(candidate).into();
        self.0.ct_eq(&digest).into()
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(redacted)")
    }
}

/// A token that is too short, too long or not visible ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an operator's token is 16 to 1024 visible ASCII characters without blanks")]
pub struct AdminTokenError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_matches_itself_only_and_is_never_printed() {
        let token = AdminToken::new("0123456789abcdef\n").unwrap();
        assert!(token.matches(b"0123456789abcdef"));
        assert!(!token.matches(b"0123456789abcdeF"));
        assert!(!token.matches(b""));
        assert_eq!(format!("{token:?}"), "AdminToken(redacted)");
    }

    #[test]
    fn weak_tokens_are_refused() {
        for bad in ["", "   ", "short", "0123456789 abcdef", "0123456789abcdéf"] {
            assert_eq!(AdminToken::new(bad).unwrap_err(), AdminTokenError, "{bad}");
        }
    }
}
