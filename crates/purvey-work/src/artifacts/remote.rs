//! Artifacts as objects of an S3-speaking store: `PREFIX/ID`, in one request or in parts.

use super::blobs::Bytewise;
use crate::{error::Error, id::ArtifactId};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::{
    ClientConfigKey, ClientOptions, Error as Failed, GetOptions, GetRange, ObjectStore,
    ObjectStoreExt, PutPayload, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, Checksum},
    multipart::{MultipartStore, PartId},
    path::Path,
};
use std::{io, ops::Range, sync::Arc, time::Duration};
use url::Url;

/// Bytes of a part but the last: the least that S3 takes, all of one size as some of its kin want.
const PART: u64 = 5 * 1_024 * 1_024;
/// The most parts of an object.
const MOST_PARTS: u64 = 10_000;
/// How long a request may go on without an answer, or an answer without a byte.
const SILENCE: Duration = Duration::from_secs(30);
/// How often one call is tried again, and for how long.
const RETRIES: usize = 6;
const PERSISTENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Remote {
    store: AmazonS3,
    prefix: Path,
}

/// An object that is being written. What is not kept is thrown away by [`Remote::remove`].
pub(super) struct Sink {
    remote: Arc<Remote>,
    path: Path,
    size: u64,
    parts: Option<Parts>,
    /// What came since the last part.
    pieces: Vec<Bytes>,
    waiting: usize,
}

struct Parts {
    upload: String,
    each: usize,
    done: Vec<PartId>,
}

impl Remote {
    /// A bucket and a prefix in it, with the credentials, region and endpoint of the `AWS_…` variables.
    pub(super) fn open(url: &Url, environment: &[(String, String)]) -> Result<Self, Error> {
        // Whoever installed one before has decided.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = ClientOptions::new()
            .with_timeout_disabled()
            .with_read_timeout(SILENCE)
            .with_connect_timeout(SILENCE);
        let retry = RetryConfig {
            max_retries: RETRIES,
            retry_timeout: PERSISTENCE,
            ..RetryConfig::default()
        };
        let mut builder = AmazonS3Builder::new()
            .with_client_options(client)
            .with_retry(retry);
        for (name, value) in environment {
            if name.starts_with("AWS_")
                && let Ok(key) = name.to_ascii_lowercase().parse()
            {
                builder = builder.with_config(key, value);
            }
        }
        // S3 compares what it received with a digest of each request.
        builder = builder
            .with_url(url.as_str())
            .with_checksum_algorithm(Checksum::SHA256)
            // One object at a time is deleted, and not all kin of S3 delete several.
            .with_disable_bulk_delete(true);
        let is_http = builder
            .get_config_value(&AmazonS3ConfigKey::Endpoint)
            .is_some_and(|endpoint| endpoint.starts_with("http://"));
        let allowed = AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp);
        if is_http && builder.get_config_value(&allowed).as_deref() != Some("true") {
            return Err(Error::Store {
                detail: "artifacts: AWS_ENDPOINT is not encrypted; use https://, or set AWS_ALLOW_HTTP=true".into(),
            });
        }
        let prefix = Path::from_url_path(url.path()).map_err(|error| failed(&error.into()))?;
        Ok(Self {
            store: builder.build().map_err(|error| failed(&error))?,
            prefix,
        })
    }

    fn place(&self, id: ArtifactId) -> Path {
        self.prefix.clone().join(id.to_string())
    }

    /// Finds out whether objects can be written and thrown away.
    pub(super) async fn probe(&self) -> Result<(), Error> {
        let place = self.prefix.clone().join("probe");
        let put = self.store.put(&place, PutPayload::new()).await;
        put.map_err(|error| failed(&error))?;
        self.delete(&place).await
    }

    pub(super) async fn begin(self: Arc<Self>, id: ArtifactId, size: u64) -> Result<Sink, Error> {
        let path = self.place(id);
        let parts = if size > PART {
            let each = PART.max(size.div_ceil(MOST_PARTS));
            let upload = self.store.create_multipart(&path).await;
            Some(Parts {
                upload: upload.map_err(|error| failed(&error))?,
                each: usize::try_from(each).unwrap_or(usize::MAX),
                done: Vec::new(),
            })
        } else {
            None
        };
        Ok(Sink {
            remote: self,
            path,
            size,
            parts,
            pieces: Vec::new(),
            waiting: 0,
        })
    }

    pub(super) async fn read(
        &self,
        id: ArtifactId,
        size: u64,
        range: Range<u64>,
    ) -> Result<Bytewise, Error> {
        let place = self.place(id);
        let (found, bytes) = if range.is_empty() {
            let head = self.store.head(&place).await;
            let head = head.map_err(|error| failed(&error))?;
            (head.size, futures_util::stream::empty().boxed())
        } else {
            let options = GetOptions {
                range: Some(GetRange::Bounded(range)),
                ..GetOptions::default()
            };
            let got = self.store.get_opts(&place, options).await;
            let got = got.map_err(|error| failed(&error))?;
            let found = got.meta.size;
            (found, got.into_stream().map_err(io::Error::from).boxed())
        };
        whole(found, size)?;
        Ok(bytes)
    }

    /// Throws away an object and, if `upload` names one, the parts of an upload that was not completed.
    pub(super) async fn remove(&self, id: ArtifactId, upload: Option<&str>) -> Result<(), Error> {
        let place = self.place(id);
        if let Some(upload) = upload {
            let aborted = self.store.abort_multipart(&place, &upload.to_owned()).await;
            gone(aborted)?;
        }
        self.delete(&place).await
    }

    async fn delete(&self, place: &Path) -> Result<(), Error> {
        gone(self.store.delete(place).await)
    }
}

impl Sink {
    /// What the store calls the upload of the parts, if it comes in parts.
    pub(super) fn upload(&self) -> Option<&str> {
        self.parts.as_ref().map(|parts| parts.upload.as_str())
    }

    pub(super) async fn write(&mut self, pieces: Vec<Bytes>) -> Result<(), Error> {
        for piece in pieces {
            self.waiting += piece.len();
            self.pieces.push(piece);
        }
        while let Some(each) = self.parts.as_ref().map(|parts| parts.each)
            && self.waiting >= each
        {
            self.part(each).await?;
        }
        Ok(())
    }

    /// Sends the next `bytes` bytes, all of which have come.
    async fn part(&mut self, bytes: usize) -> Result<(), Error> {
        let payload = self.take(bytes);
        let Some(parts) = &mut self.parts else {
            return Ok(());
        };
        let number = parts.done.len();
        let part = self
            .remote
            .store
            .put_part(&self.path, &parts.upload, number, payload);
        parts.done.push(part.await.map_err(|error| failed(&error))?);
        Ok(())
    }

    fn take(&mut self, bytes: usize) -> PutPayload {
        let mut taken = 0;
        let mut payload = Vec::new();
        let mut pieces = std::mem::take(&mut self.pieces).into_iter();
        while taken < bytes
            && let Some(mut piece) = pieces.next()
        {
            let rest = piece.split_off(piece.len().min(bytes - taken));
            taken += piece.len();
            payload.push(piece);
            if !rest.is_empty() {
                self.pieces.push(rest);
            }
        }
        self.pieces.extend(pieces);
        self.waiting -= taken;
        payload.into_iter().collect()
    }

    /// Puts the object together and looks that it is there.
    pub(super) async fn keep(mut self) -> Result<(), Error> {
        let store = &Arc::clone(&self.remote).store;
        if self.waiting > 0 && self.parts.is_some() {
            self.part(self.waiting).await?;
        }
        let put = if let Some(parts) = self.parts.take() {
            store
                .complete_multipart(&self.path, &parts.upload, parts.done)
                .await
        } else {
            let payload = self.take(self.waiting);
            store.put(&self.path, payload).await
        };
        put.map_err(|error| failed(&error))?;
        let head = store.head(&self.path).await;
        whole(head.map_err(|error| failed(&error))?.size, self.size)
    }
}

fn whole(found: u64, size: u64) -> Result<(), Error> {
    if found == size {
        Ok(())
    } else {
        Err(Error::Store {
            detail: format!("artifacts: an object has {found} bytes instead of {size}"),
        })
    }
}

/// What is not there is gone as well.
fn gone(removed: Result<(), Failed>) -> Result<(), Error> {
    match removed {
        Ok(()) | Err(Failed::NotFound { .. }) => Ok(()),
        Err(error) => Err(failed(&error)),
    }
}

fn failed(error: &Failed) -> Error {
    Error::Store {
        detail: format!("artifacts: {error}"),
    }
}
