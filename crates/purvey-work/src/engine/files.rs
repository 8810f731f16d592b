//! Files of a run: what a provider that works on files is given, and what becomes an artifact of what it leaves (Work §7).
//!
//! A provider's call has a directory of its own: `in/` holds the run's artifacts, what is in `out/` when the call succeeds is taken. What was
//! taken becomes ready in the transaction that ends the run, so a run that ends otherwise has made nothing, however often it was tried.

use super::Node;
use crate::{
    artifacts::{self, Blobs, NewFile, Receiving},
    clock::Cx,
    code::Code,
    error::Error,
    id::ArtifactId,
    model::Artifact,
    provider::{FileLimits, Given, Place},
    runs::{Claim, Outcome},
    sql::Session,
};
use futures_util::{StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};
use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio_util::io::ReaderStream;

/// Bytes read at once.
const PIECE: usize = 256 * 1_024;
/// How often a sign is given that what was taken is still wanted.
const RENEW: Duration = Duration::from_secs(5);

/// The directory of a call; it is gone with this.
pub(super) struct Workplace {
    directory: TempDir,
    limits: FileLimits,
    given: Vec<Given>,
}

/// A file that was left.
struct Left {
    path: PathBuf,
    name: String,
    size: u64,
}

impl Workplace {
    /// Lays out the run's artifacts.
    ///
    /// # Errors
    /// How the run ends if one of them is no longer there; failures of the stores.
    pub(super) async fn lay_out(
        node: &Node,
        claim: &Claim,
        limits: FileLimits,
    ) -> Result<Result<Self, Outcome>, Error> {
        let run = claim.lease.run;
        let of = move |session: &mut dyn Session| artifacts::inputs(session, run);
        let wanted = node.parts.store.read(of).await?;
        let directory = tokio::task::spawn_blocking(|| {
            let directory = tempfile::Builder::new().prefix("purvey-run-").tempdir()?;
            fs::create_dir(directory.path().join("in"))?;
            fs::create_dir(directory.path().join("out"))?;
            Ok(directory)
        });
        let directory = joined(directory.await)?;
        let mut given = Vec::new();
        for (number, artifact) in wanted.into_iter().enumerate() {
            let artifact = match artifact {
                Ok(artifact) => artifact,
                Err(refusal) => {
                    return Ok(Err(Outcome::Failed {
                        code: refusal.code,
                        detail: refusal.detail.into_owned(),
                        limit: None,
                    }));
                }
            };
            // Names may be alike, and may be paths.
            let path = format!("in/{number:03}-{}", safe(&artifact.filename));
            fetch(&node.parts.blobs, &artifact, &directory.path().join(&path)).await?;
            given.push(Given {
                id: artifact.id,
                filename: artifact.filename,
                description: artifact.description,
                size: artifact.size,
                sha256: artifact.sha256,
                path,
            });
        }
        Ok(Ok(Self {
            directory,
            limits,
            given,
        }))
    }

    /// What the provider is told.
    pub(super) fn place(&self) -> Place {
        Place {
            directory: self.directory.path().to_owned(),
            given: self.given.clone(),
        }
    }

    /// Keeps what was left, not yet ready.
    ///
    /// # Errors
    /// How the run ends if it cannot be taken; failures of the stores.
    pub(super) async fn take(
        &self,
        node: &Arc<Node>,
        claim: &Claim,
    ) -> Result<Result<Vec<ArtifactId>, Outcome>, Error> {
        let (out, limits) = (self.directory.path().join("out"), self.limits);
        let left = tokio::task::spawn_blocking(move || left(&out, limits));
        let left = match joined(left.await)? {
            Ok(left) => left,
            Err(detail) => {
                return Ok(Err(Outcome::Failed {
                    code: Code::ProviderFailed,
                    detail,
                    limit: None,
                }));
            }
        };
        if left.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let run = claim.lease.run;
        // Of an attempt that came as far as this.
        node.persist(claim.lease.workspace, move |session, cx| {
            artifacts::forsake(session, cx, run)
        })
        .await?;
        let take = async {
            let mut taken = Vec::new();
            for left in left {
                match keep(node, claim, left).await {
                    Ok(id) => taken.push(id),
                    Err(Error::Refused(refusal)) => {
                        return Ok(Err(Outcome::Failed {
                            code: refusal.code,
                            detail: refusal.detail.into_owned(),
                            limit: refusal.limit_detail,
                        }));
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(Ok(taken))
        };
        let renew = async {
            loop {
                node.sleep(RENEW).await;
                let renewed = node.write(None, move |session, cx| {
                    artifacts::renew_of(session, cx, run)
                });
                if let Err(error) = renewed.await {
                    tracing::warn!(%error, %run, "what a run has made could not be held; trying again");
                }
            }
        };
        tokio::select! {
            biased;
            taken = take => taken,
            () = renew => Ok(Ok(Vec::new())),
        }
    }
}

/// What is in a directory, in the order of the names, if it can become artifacts.
fn left(out: &Path, limits: FileLimits) -> io::Result<Result<Vec<Left>, String>> {
    let mut left = Vec::new();
    let mut bytes = 0_u64;
    for entry in fs::read_dir(out)? {
        let entry = entry?;
        let name = entry.file_name();
        let shown = name.to_string_lossy().escape_default().to_string();
        let metadata = entry.metadata()?;
        if !metadata.is_file() {
            return Ok(Err(format!(
                "It left {shown}, which is no file; only files become artifacts."
            )));
        }
        let Some(name) = name.to_str().filter(|name| artifacts::is_filename(name)) else {
            return Ok(Err(format!(
                "It left {shown}, which is no name of an artifact: UTF-8 without control characters."
            )));
        };
        bytes = bytes.saturating_add(metadata.len());
        left.push(Left {
            path: entry.path(),
            name: name.to_owned(),
            size: metadata.len(),
        });
        if left.len() > limits.most {
            return Ok(Err(format!("It left more than {} files.", limits.most)));
        }
    }
    if bytes > limits.bytes {
        return Ok(Err(format!(
            "It left {bytes} bytes in files, and {} are the most.",
            limits.bytes
        )));
    }
    left.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Ok(left))
}

/// Makes the bytes of a file those of an artifact, not yet ready.
async fn keep(node: &Arc<Node>, claim: &Claim, left: Left) -> Result<ArtifactId, Error> {
    let path = left.path.clone();
    let sha256 = joined(tokio::task::spawn_blocking(move || hash(&path)).await)?;
    let file = NewFile {
        filename: left.name,
        size: left.size,
        sha256,
    };
    let (run, limits) = (claim.lease.run, node.parts.uploads.clone());
    let place = move |session: &mut dyn Session, cx: Cx<'_>| {
        artifacts::place(session, cx, &limits, run, &file)
    };
    let artifact = node.persist(claim.lease.workspace, place).await?;
    let id = artifact.id;
    let receiving = Receiving {
        artifact,
        limits: node.parts.uploads.clone(),
        blobs: node.parts.blobs.clone(),
        store: node.parts.store.clone(),
        clock: node.parts.time.clone(),
        chance: Arc::clone(&node.parts.chance),
        upload: OnceLock::new(),
    };
    let file = tokio::fs::File::open(&left.path)
        .await
        .map_err(|error| failed(&error))?;
    let pieces = ReaderStream::with_capacity(file, PIECE).map(Result::ok);
    receiving.keep(pieces).await?;
    Ok(id)
}

fn hash(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(piece.get(..read).unwrap_or_default()),
        }
    }
}

/// Puts an artifact's bytes into a file.
async fn fetch(blobs: &Blobs, artifact: &Artifact, path: &Path) -> Result<(), Error> {
    let mut bytes = blobs
        .read(artifact.id, artifact.size, 0..artifact.size)
        .await?;
    let mut file = tokio::fs::File::create_new(path)
        .await
        .map_err(|error| failed(&error))?;
    let mut hash = Sha256::new();
    while let Some(piece) = bytes.try_next().await.map_err(|error| failed(&error))? {
        hash.update(&piece);
        file.write_all(&piece)
            .await
            .map_err(|error| failed(&error))?;
    }
    file.flush().await.map_err(|error| failed(&error))?;
    if hex(&hash.finalize()) == artifact.sha256 {
        Ok(())
    } else {
        Err(Error::Store {
            detail: format!(
                "the bytes of {} are not those that were uploaded",
                artifact.id
            ),
        })
    }
}

/// A name without what could lead out of its directory or hide it.
fn safe(filename: &str) -> String {
    let kept = |c: char| match c {
        '/' | '\\' | '\0' => '_',
        c if c.is_control() => '_',
        c => c,
    };
    let mut name: String = filename.chars().map(kept).collect();
    // With its number before it no name passes the 255 bytes that a file's may have.
    while name.len() > 240 {
        name.pop();
    }
    name
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn joined<T>(ended: Result<io::Result<T>, tokio::task::JoinError>) -> Result<T, Error> {
    ended
        .map_err(io::Error::other)
        .flatten()
        .map_err(|error| failed(&error))
}

fn failed(error: &io::Error) -> Error {
    Error::Store {
        detail: format!("files of a run: {error}"),
    }
}
