//! A way to PostgreSQL that fails as networks do.

use postgres::config::Host;
use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex},
    time::Duration,
};

/// How often a pump looks what has become of its way.
const LOOK: Duration = Duration::from_millis(5);

/// What becomes of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// They pass.
    Open,
    /// They stay, and nothing passes.
    Stalled,
    /// They end, and so does every new one.
    Closed,
    /// What is asked arrives; with the first answer the connection ends, so nobody knows what was done.
    Deaf,
}

/// The way; it is gone when the test is.
pub(crate) struct Proxy {
    state: Arc<Mutex<State>>,
    url: String,
}

#[derive(Clone, Copy)]
struct State {
    way: Way,
    /// Connections of an earlier number have been cut.
    number: u64,
}

impl Proxy {
    /// A way to the server at this URL.
    pub(crate) fn to(url: &str) -> Self {
        let config: postgres::Config = url.parse().unwrap();
        let near = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = near.local_addr().unwrap().port();
        let user = config.get_user().unwrap();
        let password =
            String::from_utf8_lossy(config.get_password().unwrap_or_default()).into_owned();
        let options = config.get_options().unwrap_or_default().replace('=', "%3D");
        let url = format!(
            "postgres://{user}:{password}@127.0.0.1:{port}/{}?sslmode=disable&options={options}",
            config.get_dbname().unwrap()
        );
        let state = Arc::new(Mutex::new(State {
            way: Way::Open,
            number: 0,
        }));
        let seen = state.clone();
        std::thread::spawn(move || {
            for caller in near.incoming().map_while(Result::ok) {
                let now = *seen.lock().unwrap();
                // A server that is down is met like a way that is closed.
                if now.way != Way::Closed
                    && let Ok(server) = Link::reach(&config)
                {
                    carry(Link::Tcp(caller), server, &seen, now.number);
                }
            }
        });
        Self { state, url }
    }

    /// The address of the store behind it.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn set(&self, way: Way) {
        self.state.lock().unwrap().way = way;
    }

    /// Ends every connection that there is.
    pub(crate) fn cut(&self) {
        self.state.lock().unwrap().number += 1;
    }
}

fn carry(caller: Link, server: Link, state: &Arc<Mutex<State>>, number: u64) {
    let (Ok(back), Ok(answers)) = (caller.again(), server.again()) else {
        return;
    };
    let forth = state.clone();
    std::thread::spawn(move || pump(caller, server, &forth, number, false));
    let state = state.clone();
    std::thread::spawn(move || pump(answers, back, &state, number, true));
}

fn pump(mut from: Link, mut to: Link, state: &Mutex<State>, number: u64, answers: bool) {
    let mut bytes = [0; 16_384];
    from.look_every(LOOK);
    let mut waiting = 0;
    loop {
        let now = *state.lock().unwrap();
        if now.number != number || now.way == Way::Closed {
            break;
        }
        if now.way == Way::Stalled {
            std::thread::sleep(LOOK);
            continue;
        }
        if waiting > 0 {
            if answers && now.way == Way::Deaf || to.write_all(&bytes[..waiting]).is_err() {
                break;
            }
            waiting = 0;
        }
        match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => waiting = read,
            Err(error) if is_look(&error) => {}
            Err(_) => break,
        }
    }
    from.end();
    to.end();
}

fn is_look(error: &io::Error) -> bool {
    [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut].contains(&error.kind())
}

enum Link {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Link {
    fn reach(config: &postgres::Config) -> io::Result<Self> {
        let port = config.get_ports().first().copied().unwrap_or(5432);
        match &config.get_hosts()[0] {
            Host::Tcp(name) => TcpStream::connect((name.as_str(), port)).map(Self::Tcp),
            Host::Unix(directory) => {
                UnixStream::connect(directory.join(format!(".s.PGSQL.{port}"))).map(Self::Unix)
            }
        }
    }

    fn again(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
        }
    }

    fn look_every(&self, time: Duration) {
        let _ = match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(time)),
            Self::Unix(stream) => stream.set_read_timeout(Some(time)),
        };
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(bytes),
            Self::Unix(stream) => stream.read(bytes),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Unix(stream) => stream.write_all(bytes),
        }
    }

    fn end(&self) {
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}
