//! Uploads: files that become artifacts (Work §7, §8).

use crate::{
    attempt::{Body, Call, Repeat},
    client::{self, Client, KEY, REPLAYED},
    error::Error,
};
use futures_util::StreamExt;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::{
    fmt,
    fs::{File, Metadata},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};
use tokio_util::io::ReaderStream;

const SIZE: HeaderName = HeaderName::from_static("x-upload-size");
const SHA256: HeaderName = HeaderName::from_static("x-content-sha256");
const FILENAME: HeaderName = HeaderName::from_static("x-filename");
const DESCRIPTION: HeaderName = HeaderName::from_static("x-description");
/// Bytes read at once.
const PIECE: usize = 256 * 1_024;
/// Bytes a second of the slowest connection that is worth waiting for.
const SLOWEST: u64 = 64 * 1_024;
/// How long bytes may stand still, and how long the server may take to make the last of them durable.
const STANDSTILL: Duration = Duration::from_secs(120);
/// Most keys tried, each after an upload that failed or whose artifact was deleted.
const KEYS: u32 = 100;

/// Told how many bytes are through; the count begins anew with each attempt.
pub type Progress = Arc<dyn Fn(u64) + Send + Sync>;

/// A file to upload.
#[derive(Clone, Default)]
pub struct Upload {
    /// The file, which must not change meanwhile.
    pub path: PathBuf,
    /// What the artifact is called; the file's name unless set.
    pub filename: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// The idempotency key; one that is made of the workspace, names, size and digest unless set.
    pub key: Option<String>,
    /// Told of the bytes that were read to be hashed, which comes first.
    pub hashed: Option<Progress>,
    /// Told of the bytes that were sent.
    pub sent: Option<Progress>,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload")
            .field("path", &self.path)
            .field("filename", &self.filename)
            .finish_non_exhaustive()
    }
}

/// What an upload made, or had made before.
#[derive(Clone, Debug, PartialEq)]
pub struct Uploaded<T> {
    /// The artifact, which is ready.
    pub artifact: T,
    /// Whether an earlier upload under the same key made it.
    pub replayed: bool,
    /// The key; the same upload may be sent again under it.
    pub key: String,
}

/// A file as it was when it was hashed.
pub(crate) struct Source {
    path: PathBuf,
    size: u64,
    modified: Option<SystemTime>,
    sha256: String,
    sent: AtomicU64,
    progress: Option<Progress>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("path", &self.path).finish()
    }
}

impl Source {
    fn hash(
        path: PathBuf,
        told: Option<&Progress>,
        progress: Option<Progress>,
    ) -> io::Result<Self> {
        let mut file = File::open(&path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("only a regular file can be uploaded"));
        }
        let mut hash = Sha256::new();
        let mut piece = vec![0; PIECE];
        let mut size = 0;
        loop {
            match file.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => {
                    hash.update(piece.get(..read).unwrap_or_default());
                    size += read as u64;
                    if let Some(told) = told {
                        told(size);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let source = Self {
            path,
            size,
            modified: metadata.modified().ok(),
            sha256: hex(&hash.finalize()),
            sent: AtomicU64::new(0),
            progress,
        };
        source.unchanged(&file.metadata()?)?;
        Ok(source)
    }

    fn unchanged(&self, metadata: &Metadata) -> io::Result<()> {
        if metadata.len() == self.size && metadata.modified().ok() == self.modified {
            Ok(())
        } else {
            Err(io::Error::other(
                "it changed while it was uploaded; upload it again once it is as it should be",
            ))
        }
    }

    /// Bytes given away in this attempt.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// The bytes from the start, if the file is still as it was.
    pub(crate) async fn body(self: &Arc<Self>) -> Result<reqwest::Body, Box<Error>> {
        self.sent.store(0, Ordering::Relaxed);
        let open = async {
            let file = tokio::fs::File::open(&self.path).await?;
            self.unchanged(&file.metadata().await?)?;
            Ok(file)
        };
        let mut file: tokio::fs::File = open
            .await
            .map_err(|error| Box::new(unusable(&self.path, &error)))?;
        file.set_max_buf_size(PIECE);
        let source = Arc::clone(self);
        let pieces = ReaderStream::with_capacity(file, PIECE).inspect(move |piece| {
            if let Ok(piece) = piece {
                let piece = piece.len() as u64;
                let sent = source.sent.fetch_add(piece, Ordering::Relaxed) + piece;
                if let Some(progress) = &source.progress {
                    progress(sent);
                }
            }
        });
        Ok(reqwest::Body::wrap_stream(pieces))
    }
}

impl Client {
    /// Uploads a file to a workspace. It is hashed first; every attempt sends it from its start. The same upload, made again by whatever
    /// process, makes no second artifact; one that is still under way is waited for, and one that failed or whose artifact was deleted is
    /// made under another key, unless the key was given.
    ///
    /// # Errors
    /// [`Error::File`] when the file cannot be read or changes; any other [`Error`].
    pub async fn upload<T: DeserializeOwned>(
        &self,
        workspace: &str,
        upload: &Upload,
    ) -> Result<Uploaded<T>, Error> {
        let filename = match &upload.filename {
            Some(name) => name.clone(),
            None => name(&upload.path)?,
        };
        let (path, hashed, sent) = (
            upload.path.clone(),
            upload.hashed.clone(),
            upload.sent.clone(),
        );
        let hash = tokio::task::spawn_blocking(move || Source::hash(path, hashed.as_ref(), sent));
        let source = hash.await.map_err(io::Error::other).flatten();
        let source = Arc::new(source.map_err(|error| unusable(&upload.path, &error))?);
        let description = upload
            .description
            .as_deref()
            .filter(|text| !text.is_empty());
        let named = json!([workspace, filename, description, source.size, source.sha256]);
        let named = hex(&Sha256::digest(named.to_string().as_bytes()));
        let mut headers = HeaderMap::new();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/octet-stream"),
        );
        headers.insert(CONTENT_LENGTH, source.size.into());
        headers.insert(SIZE, source.size.into());
        headers.insert(SHA256, value(&source.sha256)?);
        headers.insert(FILENAME, encoded(&filename)?);
        if let Some(description) = description {
            headers.insert(DESCRIPTION, encoded(description)?);
        }
        let mut call = Call {
            method: Method::POST,
            path: format!("/v1/workspaces/{workspace}/artifacts"),
            headers,
            body: Body::File(Arc::clone(&source)),
            repeat: Repeat::Safe,
            patience: STANDSTILL,
            more_time: Duration::from_secs(source.size / SLOWEST),
            sink: None,
        };
        let mut waited = Duration::ZERO;
        let mut number = 0;
        loop {
            let made = || format!("upload-{}-{number}", named.get(..40).unwrap_or(&named));
            let key = upload.key.clone().unwrap_or_else(made);
            call.headers.insert(KEY, client::key_value(&key)?);
            let problem = match self.0.call(&call).await {
                Ok(answer) => {
                    return Ok(Uploaded {
                        artifact: client::read(&call, &answer)?,
                        replayed: answer.headers.get(REPLAYED).is_some_and(|v| v == "true"),
                        key,
                    });
                }
                Err(Error::Problem(problem)) => problem,
                Err(error) => return Err(error),
            };
            match (problem.code.as_str(), problem.retry_after) {
                // Under this key it goes on, or has just ended.
                ("artifact.upload_active", Some(wait))
                    if waited + wait <= self.0.deadline + call.more_time =>
                {
                    waited += wait;
                    self.0.time.sleep(wait).await;
                }
                ("artifact.upload_failed" | "artifact.deleted", _)
                    if upload.key.is_none() && number < KEYS =>
                {
                    number += 1;
                }
                _ => return Err(Error::Problem(problem)),
            }
        }
    }
}

fn name(path: &Path) -> Result<String, Error> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned).ok_or_else(|| Error::File {
        path: path.to_owned(),
        detail: "its name is not UTF-8; give the artifact one".into(),
    })
}

fn value(text: &str) -> Result<HeaderValue, Error> {
    HeaderValue::from_str(text).map_err(|error| Error::Usage(error.to_string()))
}

fn encoded(text: &str) -> Result<HeaderValue, Error> {
    value(&utf8_percent_encode(text, NON_ALPHANUMERIC).to_string())
}

pub(crate) fn unusable(path: &Path, error: &io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        detail: error.to_string(),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
