//! Drives the real binary over real sockets; never shipped.
