//! An S3-speaking server that is not ours.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;

use crate::python::python;

/// Serves until its standard input ends, which it does however the test ends.
const SCRIPT: &str = "
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False)
server.start()
print('http://%s:%d' % server.get_host_and_port(), flush=True)
sys.stdin.read()
";

/// Credentials that it takes, and its region.
pub const VARIABLES: [(&str, &str); 4] = [
    ("AWS_ACCESS_KEY_ID", "tests"),
    ("AWS_SECRET_ACCESS_KEY", "a-secret-of-the-tests"),
    ("AWS_REGION", "us-east-1"),
    ("AWS_ALLOW_HTTP", "true"),
];

struct Objects {
    url: String,
    _input: ChildStdin,
    _child: Child,
}

/// A bucket of its own for each name.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// Where the server is.
    pub endpoint: &'static str,
    /// What it is called.
    pub name: String,
}

impl Bucket {
    /// Makes one on a server that this process shares. `None`, said aloud, where there is no Python; in CI that is a failure.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        static SERVER: OnceLock<Option<Objects>> = OnceLock::new();
        let server = SERVER.get_or_init(start).as_ref()?;
        let bucket = Self {
            endpoint: &server.url,
            name: name.to_owned(),
        };
        let made = reqwest::blocking::Client::new().put(bucket.url()).send();
        assert_eq!(made.unwrap().status(), 200);
        Some(bucket)
    }

    fn url(&self) -> String {
        format!("{}/{}", self.endpoint, self.name)
    }

    /// What a server has to be told to use it, besides the URL `s3://NAME`.
    #[must_use]
    pub fn variables(&self) -> Vec<(String, String)> {
        let fixed = VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut variables = Vec::from(fixed);
        variables.push(("AWS_ENDPOINT".into(), self.endpoint.into()));
        variables
    }

    /// Objects, and uploads in parts that were neither completed nor aborted; those without a part take no room and do not count.
    #[must_use]
    pub fn count(&self) -> (usize, usize) {
        let get = |at: String| {
            let answer = reqwest::blocking::get(format!("{}{at}", self.url())).unwrap();
            // What was listed may be gone by now.
            assert!(matches!(answer.status().as_u16(), 200 | 404), "{answer:?}");
            answer.text().unwrap()
        };
        let objects = get("?list-type=2&max-keys=1000".to_owned());
        let uploads = get("?uploads".to_owned());
        let uploads = values(&uploads, "UploadId").zip(values(&uploads, "Key"));
        let with_parts = uploads.filter(|(upload, key)| {
            let parts = get(format!("/{key}?uploadId={upload}"));
            values(&parts, "PartNumber").next().is_some()
        });
        (values(&objects, "Key").count(), with_parts.count())
    }
}

/// What stands in each element of this name.
fn values<'a>(xml: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let pieces = xml.split(&format!("<{name}>")).skip(1).collect::<Vec<_>>();
    pieces
        .into_iter()
        .map(|piece| piece.split_once('<').map_or(piece, |(value, _)| value))
}

fn start() -> Option<Objects> {
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/objects.txt");
    let mut child = Command::new(python(&requirements)?)
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut url = String::new();
    let output = child.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut url).unwrap();
    assert!(!url.is_empty(), "the server of objects does not start");
    Some(Objects {
        url: url.trim_end().to_owned(),
        _input: child.stdin.take().expect("a pipe"),
        _child: child,
    })
}
