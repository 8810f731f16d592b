//! Artifacts.

use super::Platform;
use crate::{
    access::Principal,
    artifacts::{self, Bytewise, Left, Piece, Receiving, UploadHead, UploadLimits, Verdict},
    code::Code,
    error::{Error, Fault, Place, Refusal},
    model::{Artifact, ArtifactStatus},
    paging::{Listing, PageRequest},
};
use futures_util::Stream;
use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

/// What came of an upload.
#[derive(Clone, Debug)]
pub struct Uploaded {
    /// The artifact, which is ready.
    pub artifact: Artifact,
    /// Whether it was ready before and nothing was read.
    pub replayed: bool,
}

impl Platform {
    /// Finds out whether the bytes of artifacts can be kept.
    ///
    /// # Errors
    /// [`Error::Store`] says why they cannot.
    pub async fn probe_artifacts(&self) -> Result<(), Error> {
        self.0.blobs.probe().await
    }

    /// What bounds uploads.
    #[must_use]
    pub fn upload_limits(&self) -> &UploadLimits {
        &self.0.uploads
    }

    /// `POST /v1/workspaces/{ws}/artifacts`. Nothing of `body` is polled before the head was judged. Once it is received, the attempt is
    /// finished whatever becomes of the caller; `length` is how many bytes the body has, if that is known beforehand.
    ///
    /// # Errors
    /// The refusals of Work §7; [`Error::Unavailable`] when it is not known what came of it: the same request with the same key tells.
    pub async fn upload(
        &self,
        caller: Principal,
        workspace: String,
        head: UploadHead,
        length: Option<u64>,
        body: impl Stream<Item = Piece> + Send + 'static,
    ) -> Result<Uploaded, Error> {
        let inner = Arc::clone(&self.0);
        let declared = head.clone();
        let verdict = self.write(move |session, cx| {
            artifacts::judge(session, cx, &inner.uploads, &caller, &workspace, &declared)
        });
        let artifact = match verdict.await? {
            Verdict::Replay(artifact) => {
                return Ok(Uploaded {
                    artifact,
                    replayed: true,
                });
            }
            Verdict::Receive(artifact) => artifact,
        };
        let inner = &self.0;
        let receiving = Receiving {
            artifact,
            limits: inner.uploads.clone(),
            blobs: inner.blobs.clone(),
            store: inner.store.clone(),
            clock: Arc::clone(&inner.clock),
            chance: Arc::clone(&inner.chance),
            upload: OnceLock::new(),
        };
        // A caller who goes away takes nothing with them: the attempt is then written down as failed.
        let received = tokio::spawn(async move {
            match length {
                Some(length) if length != head.size() => {
                    Err(receiving.refuse(Code::SizeMismatch).await)
                }
                _ => receiving.receive(body).await,
            }
        });
        let artifact = received.await.map_err(|ended| Error::Store {
            detail: ended.to_string(),
        })??;
        Ok(Uploaded {
            artifact,
            replayed: false,
        })
    }

    /// `GET /v1/artifacts/{id}`.
    ///
    /// # Errors
    /// Any refusal of Work §2; failures of the store.
    pub async fn artifact(&self, caller: Principal, id: String) -> Result<Artifact, Error> {
        self.read(move |session, _| artifacts::get(session, &caller, &id))
            .await
    }

    /// The same, of which the bytes can be read.
    ///
    /// # Errors
    /// `artifact.upload_active`, `artifact.upload_failed` or `artifact.deleted` when it is not ready; as [`Self::artifact`].
    pub async fn artifact_content(&self, caller: Principal, id: String) -> Result<Artifact, Error> {
        self.read(move |session, _| artifacts::find_content(session, &caller, &id))
            .await
    }

    /// The bytes of a ready artifact from `range.start` to before `range.end`, which must lie within its size.
    ///
    /// # Errors
    /// [`Error::Store`] when they are not there.
    pub async fn artifact_bytes(
        &self,
        artifact: &Artifact,
        range: Range<u64>,
    ) -> Result<Bytewise, Error> {
        self.0.blobs.read(artifact.id, artifact.size, range).await
    }

    /// `GET /v1/workspaces/{ws}/artifacts`, of one status if `status` is given.
    ///
    /// # Errors
    /// `request.invalid` for what is no status; as [`Self::artifact`].
    pub async fn artifacts(
        &self,
        caller: Principal,
        workspace: String,
        status: Option<String>,
        page: PageRequest,
    ) -> Result<Listing<Artifact>, Error> {
        let status = status.map(|text| text.parse::<ArtifactStatus>());
        let status = status.transpose().map_err(|()| {
            Error::from(Refusal::invalid(vec![Fault {
                place: Place::Query("status"),
                reason: "Must be uploading, ready, failed or deleted.".into(),
            }]))
        })?;
        self.read(move |session, _| artifacts::list(session, &caller, &workspace, status, &page))
            .await
    }

    /// `DELETE /v1/artifacts/{id}`. Its room is free at once; bytes that cannot be removed now are removed later.
    ///
    /// # Errors
    /// `artifact.upload_active` while it is uploading; as [`Self::artifact`].
    pub async fn delete_artifact(&self, caller: Principal, id: String) -> Result<(), Error> {
        let deleted = self
            .write(move |session, cx| artifacts::delete(session, cx, &caller, &id))
            .await?;
        if let Some(left) = deleted {
            self.collect(left).await;
        }
        Ok(())
    }

    async fn collect(&self, Left { id, upload }: Left) {
        let collected = async {
            self.0.blobs.remove(id, upload.as_deref()).await?;
            self.write(move |session, _| artifacts::collected(session, id))
                .await
        };
        if let Err(error) = collected.await {
            tracing::warn!(%error, artifact = %id, "what is left of an artifact could not be removed; trying again later");
        }
    }

    /// Writes down as failed whatever nobody receives any more, and throws away the bytes of what failed or was deleted. To be called every
    /// few seconds; with `all` at the start of a process that is alone with its store: whatever was uploading then ended with the process before.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn tend_artifacts(&self, all: bool) -> Result<(), Error> {
        while self
            .write(move |session, cx| artifacts::abandoned(session, cx, all))
            .await?
        {}
        for left in self
            .read(|session, cx| artifacts::collectable(session, cx))
            .await?
        {
            self.collect(left).await;
        }
        Ok(())
    }
}
