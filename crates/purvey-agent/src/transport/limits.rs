//! How long and how much a response may take, where the protocol does not say.

use std::time::Duration;

/// Limits of one exchange, a request and its response. Those of the protocol are not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Resolving, connecting and the TLS handshake together. Default 10 s.
    pub connect: Duration,
    /// From the start of the exchange, connecting included, to the end of the response's header. Default 20 s.
    pub header: Duration,
    /// Between two pieces of the body. Default 10 s.
    pub idle: Duration,
    /// The whole exchange. Default 60 s. A retry or a redirect is an exchange of its own.
    pub total: Duration,
    /// Bytes of all fields of the response's header, each with 4 more for what divides them. Default 65,536. Over
    /// HTTP/2, more than four times as many read as a lost connection. Informational responses (1xx) before it are not counted;
    /// `header` bounds them.
    pub header_bytes: u32,
    /// Fields of the response's header. Default 128. It is held to over HTTP/1; over HTTP/2 the bytes alone bound them.
    pub header_fields: usize,
    /// Bytes of an Action's response, without its content codings. Default 1,048,576.
    pub invoke_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            header: Duration::from_secs(20),
            idle: Duration::from_secs(10),
            total: Duration::from_secs(60),
            header_bytes: 65_536,
            header_fields: 128,
            invoke_bytes: 1_048_576,
        }
    }
}
