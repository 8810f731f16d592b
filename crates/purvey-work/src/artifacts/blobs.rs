//! Where bytes are kept.

use super::{
    local::{self, Local},
    remote::{self, Remote},
};
use crate::{error::Error, id::ArtifactId};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use std::{io, ops::Range, path::Path, pin::Pin, sync::Arc};
use url::Url;

/// The bytes of an artifact as they are read.
pub type Bytewise = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// A place for the bytes of artifacts. Clones share it.
#[derive(Clone, Debug)]
pub struct Blobs(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Nowhere,
    Local(Arc<Local>),
    Remote(Arc<Remote>),
}

/// Bytes on their way in: counted and hashed, and nowhere to be found until [`Sink::keep`].
pub(super) struct Sink {
    to: To,
    hash: Sha256,
    bytes: u64,
}

enum To {
    Local(local::Sink),
    Remote(remote::Sink),
}

impl Blobs {
    /// No place: every upload fails.
    #[must_use]
    pub fn nowhere() -> Self {
        Self(Kind::Nowhere)
    }

    /// What a setting names: `s3://BUCKET/PREFIX`, `file:///DIRECTORY`, or a directory.
    ///
    /// # Errors
    /// [`Error::Store`] for another URL; as [`Self::local`] and [`Self::s3`].
    pub fn at(place: &str, environment: &[(String, String)]) -> Result<Self, Error> {
        let other = || Error::Store {
            detail: format!(
                "{place:?} is neither s3://BUCKET/PREFIX nor file:///DIRECTORY nor a directory"
            ),
        };
        match Url::parse(place) {
            Ok(url) if url.scheme() == "s3" => Self::s3(&url, environment),
            Ok(url) if url.scheme() == "file" => {
                Self::local(&url.to_file_path().map_err(|()| other())?)
            }
            Ok(_) if place.contains("://") => Err(other()),
            _ => Self::local(Path::new(place)),
        }
    }

    /// Files below a directory, which is made if it is not there.
    ///
    /// # Errors
    /// [`Error::Store`] when it cannot be made.
    pub fn local(directory: &Path) -> Result<Self, Error> {
        let local = Local::open(directory).map_err(|error| failed(&error))?;
        Ok(Self(Kind::Local(Arc::new(local))))
    }

    /// Objects of an S3-speaking store, `s3://BUCKET/PREFIX`, with the credentials, region and endpoint of the `AWS_…` variables of
    /// `environment`. Nothing is asked of it before [`Self::probe`].
    ///
    /// # Errors
    /// [`Error::Store`] for a URL or variables that make no sense.
    pub fn s3(url: &Url, environment: &[(String, String)]) -> Result<Self, Error> {
        Ok(Self(Kind::Remote(Arc::new(Remote::open(
            url,
            environment,
        )?))))
    }

    /// Whether every server that is given the same place finds the same bytes.
    #[must_use]
    pub fn shared(&self) -> bool {
        matches!(self.0, Kind::Remote(_))
    }

    /// Finds out whether bytes can be kept there.
    ///
    /// # Errors
    /// [`Error::Store`] says why they cannot.
    pub async fn probe(&self) -> Result<(), Error> {
        match &self.0 {
            // Its directories were made when it was opened.
            Kind::Local(_) => Ok(()),
            Kind::Remote(remote) => remote.probe().await,
            Kind::Nowhere => Err(no_place()),
        }
    }

    /// Begins to take the bytes of an artifact, which are to be `size`.
    pub(super) async fn begin(&self, id: ArtifactId, size: u64) -> Result<Sink, Error> {
        let to = match &self.0 {
            Kind::Local(local) => {
                let local = Arc::clone(local);
                To::Local(blocking(move || local.begin(id)).await?)
            }
            Kind::Remote(remote) => To::Remote(Arc::clone(remote).begin(id, size).await?),
            Kind::Nowhere => return Err(no_place()),
        };
        Ok(Sink {
            to,
            hash: Sha256::new(),
            bytes: 0,
        })
    }

    /// The bytes of an artifact from `range.start` to before `range.end`, which must lie within it.
    ///
    /// # Errors
    /// [`Error::Store`] when they are not there or fewer.
    pub async fn read(
        &self,
        id: ArtifactId,
        size: u64,
        range: Range<u64>,
    ) -> Result<Bytewise, Error> {
        match &self.0 {
            Kind::Local(local) => {
                let local = Arc::clone(local);
                let file = blocking(move || local.open_at(id, size, range.start)).await?;
                Ok(local::pieces(file, range.end - range.start).boxed())
            }
            Kind::Remote(remote) => remote.read(id, size, range).await,
            Kind::Nowhere => Err(no_place()),
        }
    }

    /// Throws away whatever there is of an artifact, also the parts of what the store calls `upload`; it need not be there.
    pub(crate) async fn remove(&self, id: ArtifactId, upload: Option<&str>) -> Result<(), Error> {
        match &self.0 {
            Kind::Local(local) => {
                let local = Arc::clone(local);
                blocking(move || local.remove(id)).await
            }
            Kind::Remote(remote) => remote.remove(id, upload).await,
            Kind::Nowhere => Err(no_place()),
        }
    }
}

impl Sink {
    /// What has to be known to throw away parts that were not put together.
    pub(super) fn upload(&self) -> Option<&str> {
        match &self.to {
            To::Local(_) => None,
            To::Remote(sink) => sink.upload(),
        }
    }

    /// Takes these pieces.
    pub(super) async fn write(mut self, pieces: Vec<Bytes>) -> Result<Self, Error> {
        // Hashing is as much work as writing a file.
        let (mut sink, pieces) = blocking(move || {
            for piece in &pieces {
                self.hash.update(piece);
                self.bytes += piece.len() as u64;
            }
            if let To::Local(file) = &mut self.to {
                file.write(&pieces)?;
            }
            Ok((self, pieces))
        })
        .await?;
        if let To::Remote(object) = &mut sink.to {
            object.write(pieces).await?;
        }
        Ok(sink)
    }

    /// How many bytes it took, and their SHA-256 in lower-case hexadecimal.
    pub(super) fn sum(&self) -> (u64, String) {
        let digest = self.hash.clone().finalize();
        (
            self.bytes,
            digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        )
    }

    /// Makes the bytes durable and lets them be found.
    pub(super) async fn keep(self) -> Result<(), Error> {
        match self.to {
            To::Local(file) => blocking(move || file.keep()).await,
            To::Remote(object) => object.keep().await,
        }
    }
}

fn no_place() -> Error {
    Error::Store {
        detail: "there is no place for artifacts".into(),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| failed(&error)),
        Err(ended) => Err(Error::Store {
            detail: ended.to_string(),
        }),
    }
}

fn failed(error: &io::Error) -> Error {
    Error::Store {
        detail: format!("artifacts: {error}"),
    }
}
