//! Where bytes are kept.

use super::local::{self, Local};
use crate::{error::Error, id::ArtifactId};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use std::{io, ops::Range, path::Path, pin::Pin, sync::Arc};

/// The bytes of an artifact as they are read.
pub type Bytewise = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// A place for the bytes of artifacts. Clones share it.
#[derive(Clone, Debug)]
pub struct Blobs(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Nowhere,
    Local(Arc<Local>),
}

/// Bytes on their way in: counted and hashed, and nowhere to be found until [`Sink::keep`].
pub(super) struct Sink {
    to: local::Sink,
    hash: Sha256,
    bytes: u64,
}

impl Blobs {
    /// No place: every upload fails.
    #[must_use]
    pub fn nowhere() -> Self {
        Self(Kind::Nowhere)
    }

    /// Files below a directory, which is made if it is not there.
    ///
    /// # Errors
    /// [`Error::Store`] when it cannot be made.
    pub fn local(directory: &Path) -> Result<Self, Error> {
        let local = Local::open(directory).map_err(|error| failed(&error))?;
        Ok(Self(Kind::Local(Arc::new(local))))
    }

    fn place(&self) -> Result<&Arc<Local>, Error> {
        match &self.0 {
            Kind::Local(local) => Ok(local),
            Kind::Nowhere => Err(Error::Store {
                detail: "there is no place for artifacts".into(),
            }),
        }
    }

    /// Begins to take the bytes of an artifact.
    pub(super) async fn begin(&self, id: ArtifactId) -> Result<Sink, Error> {
        let place = Arc::clone(self.place()?);
        let to = blocking(move || place.begin(id)).await?;
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
        let place = Arc::clone(self.place()?);
        let file = blocking(move || place.open_at(id, size, range.start)).await?;
        Ok(local::pieces(file, range.end - range.start).boxed())
    }

    /// Throws away whatever there is of an artifact; it need not be there.
    pub(crate) async fn remove(&self, id: ArtifactId) -> Result<(), Error> {
        let place = Arc::clone(self.place()?);
        blocking(move || place.remove(id)).await
    }
}

impl Sink {
    /// Takes these pieces.
    pub(super) async fn write(mut self, pieces: Vec<Bytes>) -> Result<Self, Error> {
        blocking(move || {
            for piece in &pieces {
                self.hash.update(piece);
                self.bytes += piece.len() as u64;
            }
            self.to.write(&pieces)?;
            Ok(self)
        })
        .await
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
        blocking(move || self.to.keep()).await
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
