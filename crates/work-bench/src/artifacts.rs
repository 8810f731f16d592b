//! Artifacts over HTTP, beside what the machine does with the same bytes: hashing them, copying them durably, writing as many files.

use crate::{Outcome, http::Server, parts::Bench};
use load::Connection;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

const MIB: u64 = 1 << 20;
/// One large upload.
const LARGE: u64 = 1_024 * MIB;
/// Several at once.
const MEDIUM: u64 = 64 * MIB;
const AT_ONCE: usize = 32;
/// Many small ones, by as many threads.
const SMALL: usize = 10_000;
const ROUNDS: u32 = 3;

/// Bytes of a file, and their digest.
struct Part {
    from: u64,
    size: u64,
    sha256: String,
}

/// How fast something went, in MiB or files a second, in each round.
#[derive(Default)]
struct Rates(Vec<f64>);

impl Rates {
    fn take(&mut self, amount: f64, time: Duration) {
        self.0.push(amount / time.as_secs_f64());
    }

    /// The one in the middle.
    fn median(&self) -> f64 {
        let mut rates = self.0.clone();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or_default()
    }
}

struct Caller {
    address: SocketAddr,
    authorization: String,
    workspace: String,
    made: Mutex<Vec<String>>,
    keys: AtomicUsize,
}

pub(crate) fn run(bench: &Bench, _: &Runtime) -> Outcome<()> {
    let Some(purvey) = &bench.serve else {
        return Ok(());
    };
    let work = bench.work.join("artifacts");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    fs::create_dir_all(&work)?;
    let file = work.join("bytes");
    fill(&file)?;
    let data = work.join("data");
    let server = Server::start(
        purvey,
        &data,
        &[
            "--uploads-per-minute",
            "1000000",
            "--storage-quota",
            "1024GiB",
        ],
    )?;
    let caller = Caller::new(&server, &data)?;
    let idle = server.peak()?;
    one(&caller, bench.s3.as_deref(), &work, &file)?;
    let one_peak = server.peak()?;
    several(&caller, &work, &file)?;
    let several_peak = server.peak()?;
    small(&caller, &work)?;
    let small_peak = server.peak()?;
    println!(
        "\n| peak memory of the server, MiB | idle | 1 upload of 1 GiB | 32 of 64 MiB | {SMALL} of 1 KiB by {AT_ONCE} |\n|---|---|---|---|---|"
    );
    println!("| so far | {idle} | {one_peak} | {several_peak} | {small_peak} |");
    drop(server);
    fs::remove_dir_all(&work)?;
    Ok(())
}

/// Bytes that nothing can make fewer of.
fn fill(path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut piece = vec![0; 1 << 20];
    for _ in 0..LARGE / MIB {
        for word in piece.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        file.write_all(&piece)?;
    }
    file.sync_all()
}

/// One large upload, and its download.
fn one(caller: &Caller, s3: Option<&str>, work: &Path, file: &Path) -> Outcome<()> {
    let mut rates: [Rates; 5] = Default::default();
    let mut peer = Rates::default();
    let part = part(file, 0, LARGE)?;
    let mib = (LARGE / MIB) as f64;
    for _ in 0..ROUNDS {
        let [hashed, copied, uploaded, read, downloaded] = &mut rates;
        hashed.take(mib, timed(|| sha256sum(&[file.to_owned()]))?);
        copied.take(mib, timed(|| copy(file, &work.join("copy"), 0, LARGE))?);
        uploaded.take(mib, timed(|| caller.upload(file, &part))?);
        if let Some(s3) = s3 {
            peer.take(mib, timed(|| put(s3, file, &part))?);
        }
        read.take(mib, timed(|| copy(file, Path::new("/dev/null"), 0, LARGE))?);
        downloaded.take(mib, timed(|| caller.download(LARGE))?);
        fs::remove_file(work.join("copy"))?;
        caller.forget()?;
    }
    let [hashed, copied, uploaded, read, downloaded] = rates.each_ref().map(Rates::median);
    println!(
        "\n| 1 GiB, MiB/s | sha256sum | copy and fsync | purvey upload | ÷ the slower | S3 peer | read | purvey download |\n|{}",
        "---|".repeat(8)
    );
    println!(
        "| median of {ROUNDS} | {hashed:.0} | {copied:.0} | {uploaded:.0} | **{:.2}** | {:.0} | {read:.0} | {downloaded:.0} |",
        uploaded / hashed.min(copied),
        peer.median(),
    );
    Ok(())
}

/// Several at once.
fn several(caller: &Caller, work: &Path, file: &Path) -> Outcome<()> {
    let mut rates: [Rates; 3] = Default::default();
    // Each begins elsewhere in the file.
    let parts: Vec<_> = (0..AT_ONCE as u64)
        .map(|number| part(file, number * 30 * MIB, MEDIUM))
        .collect::<io::Result<_>>()?;
    let mib = (MEDIUM / MIB) as f64 * AT_ONCE as f64;
    let name = |number: usize| work.join(format!("copy-{number}"));
    let names: Vec<_> = (0..AT_ONCE).map(name).collect();
    for _ in 0..ROUNDS {
        let [hashed, copied, uploaded] = &mut rates;
        copied.take(
            mib,
            timed(|| {
                all(AT_ONCE, AT_ONCE, |number| {
                    copy(file, &name(number), parts[number].from, MEDIUM)
                })
            })?,
        );
        hashed.take(mib, timed(|| sha256sum(&names))?);
        uploaded.take(
            mib,
            timed(|| {
                all(AT_ONCE, AT_ONCE, |number| {
                    caller.upload(file, &parts[number])
                })
            })?,
        );
        for name in &names {
            fs::remove_file(name)?;
        }
        caller.forget()?;
    }
    let [hashed, copied, uploaded] = rates.each_ref().map(Rates::median);
    println!(
        "\n| 32 × 64 MiB at once, MiB/s | sha256sum | copies and fsync | purvey uploads | ÷ the slower |\n|---|---|---|---|---|"
    );
    println!(
        "| median of {ROUNDS} | {hashed:.0} | {copied:.0} | {uploaded:.0} | **{:.2}** |",
        uploaded / hashed.min(copied)
    );
    Ok(())
}

/// Many small ones.
fn small(caller: &Caller, work: &Path) -> Outcome<()> {
    let mut rates: [Rates; 2] = Default::default();
    let bytes = vec![7; 1_024];
    let source = work.join("small");
    fs::write(&source, &bytes)?;
    let part = part(&source, 0, 1_024)?;
    for _ in 0..ROUNDS {
        let [written, uploaded] = &mut rates;
        let plain = work.join("plain");
        fs::create_dir_all(&plain)?;
        let write = |number: usize| {
            let mut file = File::create(plain.join(number.to_string()))?;
            file.write_all(&bytes)?;
            file.sync_all()
        };
        written.take(SMALL as f64, timed(|| all(SMALL, AT_ONCE, write))?);
        fs::remove_dir_all(&plain)?;
        let connections: Vec<_> = (0..AT_ONCE).map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        let upload = |_: usize| {
            let place = next.fetch_add(1, Ordering::Relaxed) % AT_ONCE;
            let mut kept = connections[place]
                .lock()
                .map_err(|_| io::Error::other("a caller failed"))?;
            let connection = match &mut *kept {
                Some(connection) => connection,
                kept => kept.insert(Connection::open(caller.address)?),
            };
            let text = std::str::from_utf8(&bytes).map_err(io::Error::other)?;
            let (status, answer) = connection.send(&(caller.request(&part) + text))?;
            caller.take(status, answer)
        };
        uploaded.take(SMALL as f64, timed(|| all(SMALL, AT_ONCE, upload))?);
        caller.forget()?;
    }
    let [written, uploaded] = rates.each_ref().map(Rates::median);
    println!(
        "\n| {SMALL} × 1 KiB by {AT_ONCE} threads, files/s | written and fsynced | purvey uploads | ratio |\n|---|---|---|---|"
    );
    println!(
        "| median of {ROUNDS} | {written:.0} | {uploaded:.0} | **{:.2}** |",
        uploaded / written
    );
    Ok(())
}

fn timed(work: impl FnOnce() -> io::Result<()>) -> io::Result<Duration> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed())
}

/// So many jobs by so many threads.
fn all(
    jobs: usize,
    threads: usize,
    job: impl Fn(usize) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= jobs {
                return Ok(());
            }
            job(number)?;
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .map_err(|_| io::Error::other("a thread panicked"))?
        })
    })
}

/// One process for each file.
fn sha256sum(files: &[PathBuf]) -> io::Result<()> {
    let start = |file: &PathBuf| {
        Command::new("sha256sum")
            .arg(file)
            .stdout(Stdio::null())
            .spawn()
    };
    let started: Vec<_> = files.iter().map(start).collect::<io::Result<_>>()?;
    for mut child in started {
        if !child.wait()?.success() {
            return Err(io::Error::other("sha256sum failed"));
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path, start: u64, size: u64) -> io::Result<()> {
    let mut from = File::open(from)?;
    from.seek(SeekFrom::Start(start))?;
    let mut to = File::create(to)?;
    let mut buffer = vec![0; 1 << 20];
    let mut left = from.take(size);
    loop {
        match left.read(&mut buffer)? {
            0 => break,
            read => to.write_all(buffer.get(..read).unwrap_or_default())?,
        }
    }
    // Not every file can be synced.
    to.sync_all().or_else(|error| match error.kind() {
        io::ErrorKind::InvalidInput => Ok(()),
        _ => Err(error),
    })
}

fn part(file: &Path, from: u64, size: u64) -> io::Result<Part> {
    let mut file = File::open(file)?;
    file.seek(SeekFrom::Start(from))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut left = file.take(size);
    loop {
        match left.read(&mut buffer)? {
            0 => break,
            read => hash.update(buffer.get(..read).unwrap_or_default()),
        }
    }
    let sha256 = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    Ok(Part { from, size, sha256 })
}

/// Sends a head and the bytes of a part; the status and body of what is answered.
fn send(address: SocketAddr, head: &str, file: &Path, part: &Part) -> io::Result<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(head.as_bytes())?;
    let mut file = File::open(file)?;
    file.seek(SeekFrom::Start(part.from))?;
    io::copy(&mut file.take(part.size), &mut stream)?;
    answer(stream)
}

fn answer(stream: TcpStream) -> io::Result<(u16, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|text| text.parse().ok());
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            None => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().map_err(io::Error::other)?;
            }
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((status.unwrap_or(0), body))
}

/// The same bytes to a peer, `http://HOST:PORT/BUCKET`.
fn put(url: &str, file: &Path, part: &Part) -> io::Result<()> {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let (host, bucket) = rest
        .split_once('/')
        .ok_or_else(|| io::Error::other("the S3 peer is http://HOST:PORT/BUCKET"))?;
    let head = format!(
        "PUT /{bucket}/bytes HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\nx-amz-content-sha256: {}\r\nConnection: close\r\n\r\n",
        part.size, part.sha256
    );
    let address = host.parse().map_err(io::Error::other)?;
    match send(address, &head, file, part)? {
        (200, _) => Ok(()),
        (status, _) => Err(io::Error::other(format!("the S3 peer answered {status}"))),
    }
}

impl Caller {
    fn new(server: &Server, data: &Path) -> Outcome<Self> {
        let token = fs::read_to_string(data.join("owner-token"))?;
        let authorization = format!("Authorization: Bearer {}\r\n", token.trim());
        let mut connection = Connection::open(server.address)?;
        let (_, answer) = connection.json("GET", "/v1/workspaces", &authorization, "")?;
        let listed: Value = serde_json::from_slice(answer)?;
        let workspace = listed.pointer("/items/0/id").and_then(Value::as_str);
        Ok(Self {
            address: server.address,
            authorization,
            workspace: workspace.ok_or("no workspace")?.to_owned(),
            made: Mutex::default(),
            keys: AtomicUsize::new(0),
        })
    }

    /// An upload's request up to its body.
    fn request(&self, part: &Part) -> String {
        let key = self.keys.fetch_add(1, Ordering::Relaxed);
        format!(
            "POST /v1/workspaces/{}/artifacts HTTP/1.1\r\nHost: bench\r\nContent-Length: {}\r\n{}Content-Type: application/octet-stream\r\nIdempotency-Key: bench-{key}\r\nX-Upload-Size: {}\r\nX-Content-SHA256: {}\r\nX-Filename: bytes\r\n\r\n",
            self.workspace, part.size, self.authorization, part.size, part.sha256
        )
    }

    fn upload(&self, file: &Path, part: &Part) -> io::Result<()> {
        let (status, body) = send(self.address, &self.request(part), file, part)?;
        self.take(status, &body)
    }

    fn take(&self, status: u16, body: &[u8]) -> io::Result<()> {
        let made: Value = serde_json::from_slice(body).unwrap_or_default();
        match made.get("id").and_then(Value::as_str) {
            Some(id) if status == 201 => {
                let made = self.made.lock();
                made.map_err(|_| io::Error::other("a caller failed"))?
                    .push(id.to_owned());
                Ok(())
            }
            _ => Err(io::Error::other(format!(
                "an upload was answered {status}: {made}"
            ))),
        }
    }

    /// Reads what was uploaded last.
    fn download(&self, size: u64) -> io::Result<()> {
        let made = self
            .made
            .lock()
            .map_err(|_| io::Error::other("a caller failed"))?;
        let id = made.last().cloned().unwrap_or_default();
        drop(made);
        let mut stream = TcpStream::connect(self.address)?;
        let head = format!(
            "GET /v1/artifacts/{id}/content HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n{}\r\n",
            self.authorization
        );
        stream.write_all(head.as_bytes())?;
        let mut buffer = vec![0; 1 << 20];
        let mut bytes = 0;
        loop {
            match stream.read(&mut buffer)? {
                0 => break,
                read => bytes += read as u64,
            }
        }
        if bytes < size {
            return Err(io::Error::other(format!(
                "{bytes} bytes came instead of {size}"
            )));
        }
        Ok(())
    }

    /// Deletes everything that was made.
    fn forget(&self) -> io::Result<()> {
        let mut made = self
            .made
            .lock()
            .map_err(|_| io::Error::other("a caller failed"))?;
        let made = std::mem::take(&mut *made);
        let delete = |number: usize| {
            let id = made.get(number).map_or("", String::as_str);
            let mut stream = TcpStream::connect(self.address)?;
            let request = format!(
                "DELETE /v1/artifacts/{id} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n{}\r\n",
                self.authorization
            );
            stream.write_all(request.as_bytes())?;
            match answer(stream)? {
                (204, _) => Ok(()),
                (status, _) => Err(io::Error::other(format!(
                    "a deletion was answered {status}"
                ))),
            }
        };
        all(made.len(), AT_ONCE, delete)
    }
}
