//! A small closed-loop load: each connection sends its next request when the answer to the last has arrived.
#![forbid(unsafe_code)]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Requests that one connection sends in turn: request targets, for example `/odp/offerings?limit=50`.
pub type Targets<'a> = &'a [String];

/// What a load measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Requests answered as they should be, per second.
    pub rate: f64,
    /// Median of the time from first byte sent to last byte read.
    pub p50: Duration,
    /// 99th percentile of the same.
    pub p99: Duration,
    /// Bytes of one answer's body (the last one's).
    pub body: usize,
}

/// One keep-alive connection.
pub struct Connection {
    stream: BufReader<TcpStream>,
    body: Vec<u8>,
}

impl Connection {
    /// Connects to `address`.
    ///
    /// # Errors
    /// The operating system's.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self {
            stream: BufReader::with_capacity(64 * 1024, stream),
            body: Vec::new(),
        })
    }

    /// GETs `target` and returns the status and the body.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn get(&mut self, target: &str) -> io::Result<(u16, &[u8])> {
        self.send(&format!(
            "GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept: application/odp+json\r\n\r\n"
        ))
    }

    /// Sends `method` with a JSON body and further header lines, each ended by CR LF; returns the status and the body.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn json(
        &mut self,
        method: &str,
        target: &str,
        headers: &str,
        body: &str,
    ) -> io::Result<(u16, &[u8])> {
        self.send(&format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        ))
    }

    /// Sends a whole request and returns the status and the body.
    ///
    /// # Errors
    /// A broken connection, or an answer that is not HTTP/1.1 with a Content-Length.
    pub fn send(&mut self, request: &str) -> io::Result<(u16, &[u8])> {
        self.stream.get_mut().write_all(request.as_bytes())?;
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .ok_or_else(|| bad("status line"))?;
        let mut length = None;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let header = line.trim_end();
            if header.is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse::<usize>().ok();
            }
        }
        self.body
            .resize(length.ok_or_else(|| bad("no content-length"))?, 0);
        self.stream.read_exact(&mut self.body)?;
        Ok((status, &self.body))
    }
}

/// Loads `address` with GETs over `connections` for `duration` after a warm-up of a fifth of it.
///
/// # Errors
/// The first connection error, or an answer other than 200.
pub fn run(
    address: SocketAddr,
    targets: Targets<'_>,
    connections: usize,
    duration: Duration,
) -> io::Result<Measured> {
    run_with(
        address,
        connections,
        duration,
        |connection, worker, turn| {
            let Some(target) = targets.get((worker * 7919 + turn) % targets.len().max(1)) else {
                return Err(io::Error::other("nothing to ask for"));
            };
            let (status, body) = connection.get(target)?;
            if status != 200 {
                return Err(io::Error::other(format!("{target} answered {status}")));
            }
            Ok(body.len())
        },
    )
}

/// The same with requests of any kind: `ask` makes the `turn`-th of a connection (`worker`, from 0) and returns how long the answer's body is.
///
/// # Errors
/// The first error of `ask`.
pub fn run_with(
    address: SocketAddr,
    connections: usize,
    duration: Duration,
    ask: impl Fn(&mut Connection, usize, usize) -> io::Result<usize> + Sync,
) -> io::Result<Measured> {
    let barrier = Barrier::new(connections);
    let results: Vec<io::Result<(Vec<Duration>, usize)>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..connections)
            .map(|worker| {
                let (barrier, ask) = (&barrier, &ask);
                scope.spawn(move || {
                    let opened = Connection::open(address);
                    barrier.wait();
                    let mut connection = opened?;
                    let begin = Instant::now();
                    let warm = duration / 5;
                    let mut times = Vec::new();
                    let mut size = 0;
                    for turn in 0.. {
                        let sent = Instant::now();
                        if sent.duration_since(begin) >= warm + duration {
                            break;
                        }
                        size = ask(&mut connection, worker, turn)?;
                        if sent.duration_since(begin) >= warm {
                            times.push(sent.elapsed());
                        }
                    }
                    Ok((times, size))
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("a load thread panicked")))
            })
            .collect()
    });
    let mut times = Vec::new();
    let mut body = 0;
    for result in results {
        let (mut some, size) = result?;
        times.append(&mut some);
        body = size;
    }
    if times.is_empty() {
        return Err(io::Error::other("nothing was answered in time"));
    }
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    Ok(Measured {
        rate: times.len() as f64 / duration.as_secs_f64(),
        p50: at(0.5),
        p99: at(0.99),
        body,
    })
}
