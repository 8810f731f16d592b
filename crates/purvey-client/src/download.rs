//! Downloads: artifacts that become files (Work §7, §8).

use crate::{
    attempt::{Body, Call, Failed, Repeat, said, text},
    client::{Client, PATIENCE},
    error::Error,
    upload::{Progress, hex, unusable},
};
use futures_util::StreamExt;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{CONTENT_RANGE, ETAG, IF_RANGE, RANGE},
};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::{
    fmt,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::sync::Mutex;

/// Bytes of an earlier download that are read at once.
const PIECE: usize = 256 * 1_024;
/// How often it begins anew after bytes that were none of the artifact's.
const ANEW: u32 = 1;

/// Where an artifact goes.
#[derive(Clone, Default)]
pub struct Download {
    /// The file. Its bytes come beside it first, where a later download goes on from.
    pub to: PathBuf,
    /// Whether a file that is there may be replaced.
    pub replace: bool,
    /// Told of the bytes that are there.
    pub progress: Option<Progress>,
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download")
            .field("to", &self.to)
            .field("replace", &self.replace)
            .finish_non_exhaustive()
    }
}

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Downloaded {
    /// The file.
    pub path: PathBuf,
    /// Its bytes.
    pub size: u64,
    /// Their SHA-256, which is the one that was declared at the upload, in lower-case hexadecimal.
    pub sha256: String,
    /// Bytes that an earlier download had brought.
    pub resumed: u64,
}

#[derive(Deserialize)]
struct Artifact {
    size: u64,
    sha256: String,
}

/// A file that grows to an artifact.
pub(crate) struct Sink {
    path: PathBuf,
    size: u64,
    progress: Option<Progress>,
    growing: Mutex<Growing>,
}

struct Growing {
    file: File,
    hash: Sha256,
    bytes: u64,
    /// What the bytes were called when they came.
    etag: Option<HeaderValue>,
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").field("path", &self.path).finish()
    }
}

impl Sink {
    /// Goes on with what an earlier download left.
    fn open(path: PathBuf, size: u64, progress: Option<Progress>) -> io::Result<Self> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another download writes it"));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if file.metadata()?.len() > size {
            file.set_len(0)?;
        }
        let mut hash = Sha256::new();
        let mut piece = vec![0; PIECE];
        let mut bytes = 0;
        loop {
            match file.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => {
                    hash.update(piece.get(..read).unwrap_or_default());
                    bytes += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            path,
            size,
            progress,
            growing: Mutex::new(Growing {
                file,
                hash,
                bytes,
                etag: None,
            }),
        })
    }

    async fn bytes(&self) -> u64 {
        self.growing.lock().await.bytes
    }

    /// The fields that ask for what is missing.
    pub(crate) async fn range(&self) -> Vec<(HeaderName, HeaderValue)> {
        let growing = self.growing.lock().await;
        let from = HeaderValue::try_from(format!("bytes={}-", growing.bytes)).ok();
        let from = from.filter(|_| growing.bytes > 0);
        let mut fields: Vec<_> = from.map(|from| (RANGE, from)).into_iter().collect();
        if let Some(etag) = growing.etag.as_ref().filter(|_| growing.bytes > 0) {
            fields.push((IF_RANGE, etag.clone()));
        }
        fields
    }

    /// Takes the bytes of an answer.
    pub(crate) async fn take(
        &self,
        call: &Call,
        response: reqwest::Response,
    ) -> Result<(), Failed> {
        let mut growing = self.growing.lock().await;
        let local = |error: io::Error| Failed::Local(Box::new(unusable(&self.path, &error)));
        let headers = response.headers();
        if response.status() == StatusCode::PARTIAL_CONTENT {
            let from = format!("bytes {}-", growing.bytes);
            if !text(headers, CONTENT_RANGE.as_str()).is_some_and(|range| range.starts_with(&from))
            {
                return Err(Failed::Local(Box::new(Error::Answer {
                    endpoint: call.endpoint(),
                    detail: format!("it is not the part that was asked for, {from}…"),
                })));
            }
        } else {
            growing.clear().map_err(local)?;
        }
        growing.etag = headers.get(ETAG).cloned();
        let mut pieces = response.bytes_stream();
        loop {
            let piece = match tokio::time::timeout(call.patience, pieces.next()).await {
                Ok(None) => break,
                Ok(Some(Ok(piece))) => piece,
                Ok(Some(Err(error))) => return Err(Failed::Lost(said(&error))),
                Err(_) => return Err(Failed::Lost("the answer stands still".into())),
            };
            if growing.bytes + piece.len() as u64 > self.size {
                return Err(Failed::Local(Box::new(Error::Answer {
                    endpoint: call.endpoint(),
                    detail: format!("it has more than the {} bytes of the artifact", self.size),
                })));
            }
            growing.file.write_all(&piece).map_err(local)?;
            growing.hash.update(&piece);
            growing.bytes += piece.len() as u64;
            if let Some(progress) = &self.progress {
                progress(growing.bytes);
            }
        }
        if growing.bytes < self.size {
            return Err(Failed::Lost("the answer ended early".into()));
        }
        Ok(())
    }

    /// Gives the file its name if its bytes have this digest; whether they have.
    async fn finish(&self, sha256: &str, download: &Download) -> io::Result<bool> {
        let mut growing = self.growing.lock().await;
        if hex(&growing.hash.clone().finalize()) != sha256 {
            growing.clear()?;
            return Ok(false);
        }
        growing.file.sync_all()?;
        if !download.replace && download.to.try_exists()? {
            return Err(exists());
        }
        fs::rename(&self.path, &download.to)?;
        if let Some(directory) = download.to.parent() {
            let here = directory.as_os_str().is_empty();
            File::open(if here { Path::new(".") } else { directory })?.sync_all()?;
        }
        Ok(true)
    }
}

impl Growing {
    fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.hash = Sha256::new();
        self.bytes = 0;
        self.etag = None;
        Ok(())
    }
}

fn exists() -> io::Error {
    io::Error::new(
        io::ErrorKind::AlreadyExists,
        "it is there already; name another file, or let it be replaced",
    )
}

impl Client {
    /// Downloads an artifact. Over lost connections it goes on with what is missing for as long as bytes come, and so does the same download
    /// made again later. The file has its name only once all of its bytes are there, are those that were uploaded, and are durable.
    ///
    /// # Errors
    /// [`Error::File`] when the file cannot be written or is there already; [`Error::Answer`] when the bytes are others than were uploaded;
    /// any other [`Error`].
    pub async fn download(&self, id: &str, download: &Download) -> Result<Downloaded, Error> {
        if id.is_empty()
            || !id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return Err(Error::Usage(format!(
                "{id:?} is no identifier of an artifact"
            )));
        }
        let unable = |error: io::Error| unusable(&download.to, &error);
        if !download.replace && download.to.try_exists().map_err(unable)? {
            return Err(unable(exists()));
        }
        let artifact: Artifact = self.get(&format!("/v1/artifacts/{id}")).await?;
        let name = download.to.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| unable(io::Error::other("it names no file")))?;
        let part = download.to.with_file_name(format!(".{name}.{id}.part"));
        let (at, size, progress) = (part.clone(), artifact.size, download.progress.clone());
        let open = tokio::task::spawn_blocking(move || Sink::open(at, size, progress));
        let sink = open.await.map_err(io::Error::other).flatten();
        let sink = Arc::new(sink.map_err(|error| unusable(&part, &error))?);
        let resumed = sink.bytes().await;
        let call = Call {
            method: Method::GET,
            path: format!("/v1/artifacts/{id}/content"),
            headers: HeaderMap::new(),
            body: Body::None,
            repeat: Repeat::Safe,
            patience: PATIENCE,
            more_time: Duration::ZERO,
            sink: Some(Arc::clone(&sink)),
        };
        for _ in 0..=ANEW {
            while sink.bytes().await < artifact.size {
                let before = sink.bytes().await;
                match self.0.call(&call).await {
                    // As long as something comes, it is not given up.
                    Err(Error::Connection { .. }) if sink.bytes().await > before => {}
                    Err(error) => return Err(error),
                    Ok(_) => {}
                }
            }
            let finished = sink.finish(&artifact.sha256, download).await;
            if finished.map_err(unable)? {
                return Ok(Downloaded {
                    path: download.to.clone(),
                    size: artifact.size,
                    sha256: artifact.sha256,
                    resumed,
                });
            }
        }
        // Nothing of it is of use.
        let _ = fs::remove_file(&part);
        Err(Error::Answer {
            endpoint: call.endpoint(),
            detail: "the bytes are others than were uploaded".into(),
        })
    }
}
