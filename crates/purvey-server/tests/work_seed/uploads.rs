//! Artifact upload failures, row by row and sentence by sentence, and what an artifact is good for.

use crate::stage::{Answer, Person, Stage};
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, header::HeaderName};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};
use tokio::sync::mpsc;

on_each_store_of_bytes! {
    an_artifact_becomes_reusable_once_the_upload_answers_201,
    a_400_is_a_count_that_differs,
    a_400_is_a_checksum_that_differs,
    a_400_consumes_its_key,
    a_409_is_other_metadata_under_the_key,
    a_409_is_an_upload_that_is_still_active,
    a_409_is_an_original_that_failed,
    a_409_is_an_original_that_was_deleted,
    a_413_is_declared_or_streamed_bytes_over_the_limit,
    a_415_is_any_other_media_type,
    a_422_names_every_header_that_is_wrong,
    a_429_is_the_rate,
    a_429_is_the_capacity,
    a_429_without_retry_after_is_the_organizations_storage,
    what_is_refused_early_is_not_read_and_consumes_no_key,
    a_connection_that_disappears_is_recorded_as_failed,
    a_caller_who_goes_away_is_recorded_as_failed,
    an_upload_that_stalls_is_recorded_as_failed,
    an_upload_whose_server_is_gone_is_recorded_as_failed,
    a_completed_upload_replays_without_its_body,
    of_two_racing_uploads_with_one_key_one_is_received,
    racing_uploads_never_pass_the_quota,
    a_run_takes_artifacts_of_its_workspace_that_are_ready,
    artifacts_are_absent_across_organizations_and_judged_by_role_within,
    artifacts_are_listed_newest_first_and_by_status,
    bytes_come_whole_in_ranges_or_not_at_all,
}

const PLENTY: &[u8] = b"plenty of bytes";
const DIGEST: &str = "sha-256=:CqFNDaB5gSqXEytlL9qcY3GS40uZvnLXBBsaKJ3ETQs=:";

pub(crate) fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// An upload: right in everything unless a test changes it.
pub(crate) struct Upload {
    path: String,
    fields: HeaderMap,
}

impl Upload {
    pub(crate) fn of(stage: &Stage, who: &Person, key: &str, bytes: &[u8]) -> Self {
        let mut upload = Self {
            path: format!("/v1/workspaces/{}/artifacts", stage.workspace),
            fields: HeaderMap::new(),
        };
        for (name, value) in [
            ("authorization", format!("Bearer {}", who.token)),
            ("content-type", "application/octet-stream".into()),
            ("idempotency-key", key.into()),
            ("x-upload-size", bytes.len().to_string()),
            ("x-content-sha256", hex(bytes)),
            ("x-filename", "r%C3%A9sum%C3%A9.txt".into()),
        ] {
            upload = upload.with(name, &value);
        }
        upload
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).unwrap();
        self.fields.insert(HeaderName::from_static(name), value);
        self
    }

    fn without(mut self, name: &'static str) -> Self {
        self.fields.remove(name);
        self
    }

    pub(crate) async fn send(&self, stage: &Stage, body: impl Into<Body>) -> Answer {
        let mut request = Request::post(&self.path).body(body.into()).unwrap();
        *request.headers_mut() = self.fields.clone();
        stage.raw(request).await
    }
}

impl Upload {
    /// Sends the head alone, as who expects to be asked for the body, which must not come about.
    async fn refused_unread(&self, stage: &Stage) -> Answer {
        let read = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&read);
        let body = Body::from_stream(futures_util::stream::poll_fn(move |_| {
            seen.store(true, Ordering::Relaxed);
            Poll::Ready(None::<io::Result<Bytes>>)
        }));
        let mut request = Request::post(&self.path).body(body).unwrap();
        *request.headers_mut() = self.fields.clone();
        request
            .headers_mut()
            .insert("expect", HeaderValue::from_static("100-continue"));
        let answer = stage.raw(request).await;
        assert!(!read.load(Ordering::Relaxed), "the body was read");
        answer
    }
}

pub(crate) async fn upload(stage: &Stage, who: &Person, key: &str, bytes: &[u8]) -> Answer {
    let body = Body::from(bytes.to_vec());
    Upload::of(stage, who, key, bytes).send(stage, body).await
}

/// A body of which the test sends the pieces; it breaks with an `Err`.
fn pieces() -> (mpsc::UnboundedSender<io::Result<Bytes>>, Body) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let pieces = futures_util::stream::unfold(receiver, async |mut receiver| {
        Some((receiver.recv().await?, receiver))
    });
    (sender, Body::from_stream(pieces))
}

/// Begins an upload that gets no further than its first byte.
async fn begin<'a>(
    stage: &'a Stage,
    who: &Person,
    key: &str,
    bytes: &'a [u8],
) -> (
    mpsc::UnboundedSender<io::Result<Bytes>>,
    tokio::task::JoinHandle<Answer>,
) {
    let before = artifacts(stage, "uploading").await.len();
    let (sender, body) = pieces();
    sender
        .send(Ok(Bytes::copy_from_slice(&bytes[..1])))
        .unwrap();
    let upload = Upload::of(stage, who, key, bytes);
    let mut request = Request::post(&upload.path).body(body).unwrap();
    *request.headers_mut() = upload.fields;
    let sent = tokio::spawn(Answer::of(stage.router(), request));
    stage
        .until("the upload is under way", async || {
            artifacts(stage, "uploading").await.len() > before
        })
        .await;
    (sender, sent)
}

pub(crate) async fn artifacts(stage: &Stage, status: &str) -> Vec<Value> {
    let path = format!(
        "/v1/workspaces/{}/artifacts?limit=100&status={status}",
        stage.workspace
    );
    let page = stage.get(&path, &stage.owner.token).await.ok(200);
    page["items"].as_array().unwrap().clone()
}

pub(crate) fn id(artifact: &Value) -> &str {
    artifact["id"].as_str().unwrap()
}

async fn content(stage: &Stage, artifact: &Value) -> Answer {
    let path = format!("/v1/artifacts/{}/content", id(artifact));
    stage.get(&path, &stage.owner.token).await
}

async fn an_artifact_becomes_reusable_once_the_upload_answers_201(stage: Stage) {
    let owner = stage.owner.clone();
    let upload = Upload::of(&stage, &owner, "k", PLENTY).with("x-description", "what%20it%20is");
    let answer = upload.send(&stage, PLENTY).await;
    let made = answer.ok(201);
    assert_eq!(
        answer.header("location"),
        Some(format!("/v1/artifacts/{}", id(&made)).as_str())
    );
    assert_eq!(answer.header("idempotent-replayed"), None);
    assert_eq!(
        made,
        json!({
            "id": made["id"], "workspace_id": stage.workspace, "filename": "résumé.txt", "description": "what it is",
            "size": 15, "sha256": hex(PLENTY), "status": "ready", "created_at": made["created_at"],
        })
    );
    let at = made["created_at"].as_str().unwrap();
    assert!(
        at.starts_with("2026-01-01T12:0") && at.ends_with('Z'),
        "{at}"
    );
    let read = stage
        .get(answer.header("location").unwrap(), &owner.token)
        .await;
    assert_eq!(read.ok(200), made);
    assert_eq!(content(&stage, &made).await.body, PLENTY);
}

/// Nothing is ready, nothing is left behind, and room and place are given back.
pub(crate) async fn nothing_is_left(stage: &Stage) {
    assert_eq!(artifacts(stage, "ready").await, [Value::Null; 0]);
    assert_eq!(artifacts(stage, "uploading").await, [Value::Null; 0]);
    assert_eq!(stage.objects.count().await, 0);
    // As much as the organization may store at all.
    let owner = stage.owner.clone();
    for (key, size) in [
        ("room-1", 1_000_000),
        ("room-2", 1_000_000),
        ("room-3", 500_000),
    ] {
        upload(stage, &owner, key, &vec![7; size]).await.ok(201);
    }
}

async fn a_400_is_a_count_that_differs(stage: Stage) {
    let owner = stage.owner.clone();
    // More and fewer, with a length and without.
    for (key, bytes) in [
        ("more", &b"plenty of bytes and one more"[..]),
        ("fewer", b"plenty"),
    ] {
        let declared = Upload::of(&stage, &owner, key, PLENTY);
        let answer = declared.send(&stage, Body::from(bytes)).await;
        answer.refused(400, "artifact.size_mismatch");
        let streamed = Upload::of(&stage, &owner, &format!("{key}-streamed"), PLENTY);
        let (sender, body) = pieces();
        for piece in bytes.chunks(4) {
            sender.send(Ok(piece.into())).unwrap();
        }
        drop(sender);
        let answer = streamed.send(&stage, body).await;
        answer.refused(400, "artifact.size_mismatch");
    }
    assert_eq!(artifacts(&stage, "failed").await.len(), 4);
    nothing_is_left(&stage).await;
}

async fn a_400_is_a_checksum_that_differs(stage: Stage) {
    let owner = stage.owner.clone();
    let declared = Upload::of(&stage, &owner, "k", PLENTY);
    let answer = declared.send(&stage, &b"plenty of BYTES"[..]).await;
    answer.refused(400, "artifact.checksum_mismatch");
    let failed = artifacts(&stage, "failed").await;
    content(&stage, &failed[0])
        .await
        .refused(409, "artifact.upload_failed");
    nothing_is_left(&stage).await;
}

async fn a_400_consumes_its_key(stage: Stage) {
    let owner = stage.owner.clone();
    let declared = Upload::of(&stage, &owner, "k", PLENTY);
    declared
        .send(&stage, &b"plenty"[..])
        .await
        .refused(400, "artifact.size_mismatch");
    let again = declared.send(&stage, PLENTY).await;
    again.refused(409, "artifact.upload_failed");
    assert_eq!(again.header("retry-after"), None);
    upload(&stage, &owner, "a new key", PLENTY).await.places();
    upload(&stage, &owner, "a-new-key", PLENTY).await.ok(201);
}

async fn a_409_is_other_metadata_under_the_key(stage: Stage) {
    let owner = stage.owner.clone();
    upload(&stage, &owner, "k", PLENTY).await.ok(201);
    let other = b"other bytes";
    for changed in [
        Upload::of(&stage, &owner, "k", PLENTY).with("x-filename", "other.txt"),
        Upload::of(&stage, &owner, "k", PLENTY).with("x-description", "other"),
        Upload::of(&stage, &owner, "k", PLENTY).with("x-upload-size", "16"),
        Upload::of(&stage, &owner, "k", PLENTY).with("x-content-sha256", &hex(other)),
        Upload::of(&stage, &owner, "k", other),
    ] {
        let answer = changed.refused_unread(&stage).await;
        answer.refused(409, "artifact.metadata_mismatch");
        let said = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(
            !said.contains("r\u{e9}sum\u{e9}") && !said.contains(&hex(PLENTY)),
            "{said}"
        );
    }
    // A key belongs to who uses it.
    let member = stage.member("member").await;
    upload(&stage, &member, "k", other).await.ok(201);
}

async fn a_409_is_an_upload_that_is_still_active(stage: Stage) {
    let owner = stage.owner.clone();
    let (sender, sent) = begin(&stage, &owner, "k", PLENTY).await;
    let second = Upload::of(&stage, &owner, "k", PLENTY)
        .refused_unread(&stage)
        .await;
    second.refused(409, "artifact.upload_active");
    let wait: u64 = second.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=15).contains(&wait), "{wait}");
    let uploading = artifacts(&stage, "uploading").await.remove(0);
    let early = content(&stage, &uploading).await;
    early.refused(409, "artifact.upload_active");
    assert!(early.header("retry-after").is_some());
    let place = format!("/v1/artifacts/{}", id(&uploading));
    stage
        .delete(&place, &owner.token)
        .await
        .refused(409, "artifact.upload_active");
    // Nothing of that has hurt the first.
    sender.send(Ok(Bytes::from_static(&PLENTY[1..]))).unwrap();
    drop(sender);
    let made = sent.await.unwrap().ok(201);
    assert_eq!(id(&made), id(&uploading));
    assert_eq!(content(&stage, &made).await.body, PLENTY);
}

async fn a_409_is_an_original_that_failed(stage: Stage) {
    let owner = stage.owner.clone();
    let (sender, sent) = begin(&stage, &owner, "k", PLENTY).await;
    sender.send(Err(io::Error::other("gone"))).unwrap();
    sent.await.unwrap().refused(400, "request.broken");
    let again = Upload::of(&stage, &owner, "k", PLENTY)
        .refused_unread(&stage)
        .await;
    again.refused(409, "artifact.upload_failed");
    assert_eq!(again.header("retry-after"), None);
}

async fn a_409_is_an_original_that_was_deleted(stage: Stage) {
    let owner = stage.owner.clone();
    let made = upload(&stage, &owner, "k", PLENTY).await.ok(201);
    let place = format!("/v1/artifacts/{}", id(&made));
    assert_eq!(stage.delete(&place, &owner.token).await.status, 204);
    assert_eq!(stage.delete(&place, &owner.token).await.status, 204);
    let again = Upload::of(&stage, &owner, "k", PLENTY)
        .refused_unread(&stage)
        .await;
    again.refused(409, "artifact.deleted");
    assert_eq!(again.header("retry-after"), None);
    content(&stage, &made)
        .await
        .refused(409, "artifact.deleted");
    assert_eq!(
        stage.get(&place, &owner.token).await.ok(200)["status"],
        "deleted"
    );
    nothing_is_left(&stage).await;
}

async fn a_413_is_declared_or_streamed_bytes_over_the_limit(stage: Stage) {
    let owner = stage.owner.clone();
    let limit = vec![7; 1_000_000];
    let declared = Upload::of(&stage, &owner, "k", &limit).with("x-upload-size", "1000001");
    declared
        .refused_unread(&stage)
        .await
        .refused(413, "request.too_large");
    // The declaration was judged and no key consumed.
    let exact = Upload::of(&stage, &owner, "k", &limit);
    exact.send(&stage, limit.clone()).await.ok(201);
    // A length of the body is a declaration too.
    let mut longer = limit.clone();
    longer.push(7);
    let lied = Upload::of(&stage, &owner, "lied", &limit);
    lied.send(&stage, longer.clone())
        .await
        .refused(413, "request.too_large");
    lied.send(&stage, limit.clone()).await.ok(201);
    let place = format!("/v1/artifacts/{}", id(&artifacts(&stage, "ready").await[0]));
    assert_eq!(stage.delete(&place, &owner.token).await.status, 204);
    // Streamed, the attempt is recorded.
    let streamed = Upload::of(&stage, &owner, "streamed", &limit);
    let (sender, body) = pieces();
    for piece in longer.chunks(100_000) {
        sender.send(Ok(Bytes::copy_from_slice(piece))).unwrap();
    }
    drop(sender);
    streamed
        .send(&stage, body)
        .await
        .refused(413, "request.too_large");
    streamed
        .refused_unread(&stage)
        .await
        .refused(409, "artifact.upload_failed");
}

async fn a_415_is_any_other_media_type(stage: Stage) {
    let owner = stage.owner.clone();
    let of = || Upload::of(&stage, &owner, "k", PLENTY);
    for other in [
        of().with("content-type", "application/octet-stream; charset=binary"),
        of().with("content-type", "application/octet-stream;"),
        of().with("content-type", "text/plain"),
        of().with("content-type", ""),
        of().without("content-type"),
        of().with("content-encoding", "gzip"),
        // Before everything else that is wrong with it.
        of().with("content-type", "image/png")
            .without("idempotency-key")
            .with("x-upload-size", "9999999999"),
    ] {
        let answer = other.refused_unread(&stage).await;
        answer.refused(415, "request.unsupported_media_type");
    }
    assert_eq!(artifacts(&stage, "failed").await.len(), 0);
    of().send(&stage, PLENTY).await.ok(201);
}

async fn a_422_names_every_header_that_is_wrong(stage: Stage) {
    let owner = stage.owner.clone();
    let of = || Upload::of(&stage, &owner, "k", PLENTY);
    of().without("idempotency-key")
        .refused_unread(&stage)
        .await
        .refused(422, "idempotency.key_missing");
    let upper = hex(PLENTY).to_uppercase();
    for (name, reported, bad) in [
        ("x-content-sha256", "X-Content-SHA256", upper.as_str()),
        ("x-content-sha256", "X-Content-SHA256", "abc"),
        ("x-upload-size", "X-Upload-Size", "-1"),
        ("x-upload-size", "X-Upload-Size", "+1"),
        ("x-upload-size", "X-Upload-Size", "1.5"),
        ("x-filename", "X-Filename", ""),
        ("x-filename", "X-Filename", "%zz"),
        ("x-filename", "X-Filename", "%ff"),
        ("x-filename", "X-Filename", "a%00b"),
        ("x-filename", "X-Filename", "a%0Ab"),
        ("x-description", "X-Description", "%E9"),
        ("idempotency-key", "Idempotency-Key", "a b"),
    ] {
        let answer = of().with(name, bad).refused_unread(&stage).await;
        assert_eq!(answer.places(), [format!("header {reported}")], "{bad}");
    }
    let nothing = of()
        .without("x-upload-size")
        .without("x-content-sha256")
        .without("x-filename");
    assert_eq!(
        nothing.refused_unread(&stage).await.places(),
        [
            "header X-Upload-Size",
            "header X-Content-SHA256",
            "header X-Filename"
        ]
    );
    of().send(&stage, PLENTY).await.ok(201);
}

async fn a_429_is_the_rate(stage: Stage) {
    let owner = stage.owner.clone();
    for number in 0..20 {
        upload(&stage, &owner, &number.to_string(), PLENTY)
            .await
            .ok(201);
    }
    stage.time.pass(Duration::from_secs(20));
    let refused = Upload::of(&stage, &owner, "more", PLENTY);
    let answer = refused.refused_unread(&stage).await;
    answer.refused(429, "rate.limited");
    assert_eq!(answer.header("retry-after"), Some("40"));
    // A replay begins nothing.
    assert_eq!(upload(&stage, &owner, "7", PLENTY).await.status, 200);
    stage.time.pass(Duration::from_secs(40));
    refused.send(&stage, PLENTY).await.ok(201);
}

async fn a_429_is_the_capacity(stage: Stage) {
    let owner = stage.owner.clone();
    let mut held = Vec::new();
    for key in ["a", "b", "c"] {
        held.push(begin(&stage, &owner, key, PLENTY).await);
    }
    let refused = Upload::of(&stage, &owner, "d", PLENTY);
    let answer = refused.refused_unread(&stage).await;
    answer.refused(429, "artifact.capacity");
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    for (sender, sent) in held {
        sender.send(Ok(Bytes::from_static(&PLENTY[1..]))).unwrap();
        drop(sender);
        sent.await.unwrap().ok(201);
    }
    refused.send(&stage, PLENTY).await.ok(201);
}

async fn a_429_without_retry_after_is_the_organizations_storage(stage: Stage) {
    let owner = stage.owner.clone();
    for key in ["a", "b"] {
        upload(&stage, &owner, key, &vec![7; 1_000_000])
            .await
            .ok(201);
    }
    // Another workspace of the organization draws on the same room.
    let workspace = stage.new_workspace(&owner).await;
    let large = vec![8; 500_001];
    let mut refused = Upload::of(&stage, &owner, "c", &large);
    refused.path = format!("/v1/workspaces/{workspace}/artifacts");
    let answer = refused.refused_unread(&stage).await;
    answer.refused(429, "artifact.storage_quota");
    assert_eq!(answer.header("retry-after"), None);
    upload(&stage, &owner, "d", &large[1..]).await.ok(201);
    // Freed storage can be used again, under the same key.
    for artifact in artifacts(&stage, "ready").await {
        let place = format!("/v1/artifacts/{}", id(&artifact));
        assert_eq!(stage.delete(&place, &owner.token).await.status, 204);
    }
    refused.send(&stage, large).await.ok(201);
}

async fn what_is_refused_early_is_not_read_and_consumes_no_key(stage: Stage) {
    let viewer = stage.member("viewer").await;
    let nobody = Person {
        id: String::new(),
        token: "pvy_nobodys".into(),
    };
    let refused = Upload::of(&stage, &nobody, "k", PLENTY);
    refused
        .refused_unread(&stage)
        .await
        .refused(401, "auth.invalid");
    let refused = Upload::of(&stage, &viewer, "k", PLENTY);
    refused
        .refused_unread(&stage)
        .await
        .refused(403, "permission.role");
    let mut absent = Upload::of(&stage, &stage.owner.clone(), "k", PLENTY);
    absent.path = "/v1/workspaces/ws_none/artifacts".into();
    absent
        .refused_unread(&stage)
        .await
        .refused(404, "resource.not_found");
    let operator = Person {
        id: String::new(),
        token: crate::stage::OPERATOR.into(),
    };
    let refused = Upload::of(&stage, &operator, "k", PLENTY);
    refused
        .refused_unread(&stage)
        .await
        .refused(403, "permission.role");
    stage
        .set_role(&stage.workspace, &viewer, Some("member"))
        .await;
    upload(&stage, &viewer, "k", PLENTY).await.ok(201);
}

async fn a_connection_that_disappears_is_recorded_as_failed(stage: Stage) {
    let owner = stage.owner.clone();
    let large = vec![7; 900_000];
    let (sender, sent) = begin(&stage, &owner, "k", &large).await;
    sender
        .send(Ok(Bytes::copy_from_slice(&large[1..700_000])))
        .unwrap();
    sender
        .send(Err(io::Error::other("the cable was pulled")))
        .unwrap();
    sent.await.unwrap().refused(400, "request.broken");
    assert_eq!(artifacts(&stage, "failed").await.len(), 1);
    nothing_is_left(&stage).await;
}

async fn a_caller_who_goes_away_is_recorded_as_failed(stage: Stage) {
    let owner = stage.owner.clone();
    let (sender, sent) = begin(&stage, &owner, "k", PLENTY).await;
    // The answer is awaited by nobody any more, and the body ends early.
    sent.abort();
    drop(sender);
    stage
        .until("it is recorded", async || {
            artifacts(&stage, "failed").await.len() == 1
        })
        .await;
    nothing_is_left(&stage).await;
}

async fn an_upload_that_stalls_is_recorded_as_failed(stage: Stage) {
    let owner = stage.owner.clone();
    let (sender, sent) = begin(&stage, &owner, "k", &[7; 100_000]).await;
    // One byte now and then is no upload.
    let drip = tokio::spawn(async move {
        while sender.send(Ok(Bytes::from_static(&[7]))).is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    sent.await.unwrap().refused(408, "request.timeout");
    drip.await.unwrap();
    assert_eq!(artifacts(&stage, "failed").await.len(), 1);
    nothing_is_left(&stage).await;
}

async fn an_upload_whose_server_is_gone_is_recorded_as_failed(stage: Stage) {
    let owner = stage.owner.clone();
    for (key, written_down) in [("a", false), ("b", true)] {
        let (sender, sent) = begin(&stage, &owner, key, PLENTY).await;
        // Its lease is over before it gives another sign, as if it were stopped.
        stage.time.pass(Duration::from_secs(16));
        let again = Upload::of(&stage, &owner, key, PLENTY)
            .refused_unread(&stage)
            .await;
        again.refused(409, "artifact.upload_failed");
        if written_down {
            stage.platform.tend_artifacts(false).await.unwrap();
            assert_eq!(artifacts(&stage, "uploading").await.len(), 0);
        }
        // It goes on after all, and is told the same.
        sender.send(Ok(Bytes::from_static(&PLENTY[1..]))).unwrap();
        drop(sender);
        sent.await.unwrap().refused(409, "artifact.upload_failed");
    }
    stage.platform.tend_artifacts(false).await.unwrap();
    assert_eq!(artifacts(&stage, "failed").await.len(), 2);
    stage.time.pass(Duration::from_secs(16));
    stage.platform.tend_artifacts(false).await.unwrap();
    nothing_is_left(&stage).await;
}

async fn a_completed_upload_replays_without_its_body(stage: Stage) {
    let owner = stage.owner.clone();
    let made = upload(&stage, &owner, "k", PLENTY).await.ok(201);
    // Another token of the same user, another spelling of the same name.
    let token = stage.token(&owner.id, &["artifacts:write"]).await;
    let again = Person { token, ..owner };
    let replay =
        Upload::of(&stage, &again, "k", PLENTY).with("x-filename", "%72%c3%a9sum%c3%a9.txt");
    let answer = replay.refused_unread(&stage).await;
    assert_eq!(answer.ok(200), made);
    assert_eq!(answer.header("idempotent-replayed"), Some("true"));
    assert_eq!(artifacts(&stage, "ready").await.len(), 1);
}

async fn of_two_racing_uploads_with_one_key_one_is_received(stage: Stage) {
    let owner = stage.owner.clone();
    for round in 0..6 {
        let key = format!("k{round}");
        let race = |_| {
            let upload = Upload::of(&stage, &owner, &key, PLENTY);
            let mut request = Request::post(&upload.path)
                .body(Body::from(PLENTY))
                .unwrap();
            *request.headers_mut() = upload.fields;
            tokio::spawn(Answer::of(stage.router(), request))
        };
        let mut made = 0;
        for sent in [0, 1, 2].map(race) {
            let answer = sent.await.unwrap();
            match answer.status {
                201 => made += 1,
                200 => {}
                _ => drop(answer.refused(409, "artifact.upload_active")),
            }
        }
        assert_eq!(made, 1);
        assert_eq!(artifacts(&stage, "ready").await.len(), round + 1);
        assert_eq!(stage.objects.count().await, round + 1);
    }
}

async fn racing_uploads_never_pass_the_quota(stage: Stage) {
    let owner = stage.owner.clone();
    upload(&stage, &owner, "first", &vec![7; 1_000_000])
        .await
        .ok(201);
    upload(&stage, &owner, "second", &vec![7; 1_000_000])
        .await
        .ok(201);
    // Room for one of these, and three places.
    let bytes = vec![8; 300_000];
    let race = |number: u32| {
        let upload = Upload::of(&stage, &owner, &number.to_string(), &bytes);
        let mut request = Request::post(&upload.path)
            .body(Body::from(bytes.clone()))
            .unwrap();
        *request.headers_mut() = upload.fields;
        tokio::spawn(Answer::of(stage.router(), request))
    };
    let mut made = 0;
    for sent in [0, 1, 2].map(race) {
        let answer = sent.await.unwrap();
        match answer.status {
            201 => made += 1,
            _ => drop(answer.refused(429, "artifact.storage_quota")),
        }
    }
    assert_eq!(made, 1);
}

async fn a_run_takes_artifacts_of_its_workspace_that_are_ready(stage: Stage) {
    let owner = stage.owner.clone();
    let agent = stage.agent(json!({})).await;
    let path = format!("/v1/agents/{agent}/runs");
    let start = async |artifacts: Value| {
        let body = json!({ "input": 1, "artifacts": artifacts });
        stage.post(&path, &owner.token, &body).await
    };
    let made = upload(&stage, &owner, "k", PLENTY).await.ok(201);
    let run = start(json!([made["id"]])).await.ok(202);
    assert_eq!(run["artifacts"], json!([made["id"]]));

    let workspace = stage.new_workspace(&owner).await;
    let mut elsewhere = Upload::of(&stage, &owner, "k", PLENTY);
    elsewhere.path = format!("/v1/workspaces/{workspace}/artifacts");
    let other = elsewhere.send(&stage, PLENTY).await.ok(201);
    start(json!([made["id"], other["id"]]))
        .await
        .refused(404, "resource.not_found");
    start(json!(["art_00000000000070008000000000000000"]))
        .await
        .refused(404, "resource.not_found");
    assert_eq!(
        start(json!(["art_1"])).await.places(),
        ["body /artifacts/0"]
    );

    let (sender, sent) = begin(&stage, &owner, "active", PLENTY).await;
    let active = artifacts(&stage, "uploading").await.remove(0);
    start(json!([active["id"]]))
        .await
        .refused(409, "artifact.upload_active");
    sender.send(Err(io::Error::other("gone"))).unwrap();
    sent.await.unwrap();
    start(json!([active["id"]]))
        .await
        .refused(409, "artifact.upload_failed");

    let place = format!("/v1/artifacts/{}", id(&made));
    assert_eq!(stage.delete(&place, &owner.token).await.status, 204);
    start(json!([made["id"]]))
        .await
        .refused(409, "artifact.deleted");
    // What ran with it still says so.
    assert_eq!(stage.ended(&run).await["artifacts"], json!([made["id"]]));
    assert_eq!(
        stage.get(&place, &owner.token).await.ok(200)["filename"],
        "résumé.txt"
    );
}

async fn artifacts_are_absent_across_organizations_and_judged_by_role_within(stage: Stage) {
    let (owner, member) = (stage.owner.clone(), stage.member("member").await);
    let viewer = stage.member("viewer").await;
    let outsider = stage.person().await;
    let elsewhere = stage.new_organization().await;
    let stranger = stage.person_of(&elsewhere, None).await;
    let made = upload(&stage, &owner, "k", PLENTY).await.ok(201);
    let place = format!("/v1/artifacts/{}", id(&made));
    let bytes = format!("{place}/content");
    for path in [&place, &bytes] {
        let hidden = stage.get(path, &stranger.token).await;
        hidden.refused(404, "resource.not_found");
        assert_eq!(stage.get(path, &viewer.token).await.status, 200);
        stage
            .get(path, &outsider.token)
            .await
            .refused(403, "permission.role");
    }
    stage
        .delete(&place, &stranger.token)
        .await
        .refused(404, "resource.not_found");
    stage
        .delete(&place, &viewer.token)
        .await
        .refused(403, "permission.role");
    stage
        .delete(&place, &member.token)
        .await
        .refused(403, "permission.role");
    let reader = stage.token(&owner.id, &["artifacts:read"]).await;
    stage
        .delete(&place, &reader)
        .await
        .refused(403, "permission.scope");
    // One's own.
    let own = upload(&stage, &member, "k", PLENTY).await.ok(201);
    let own = format!("/v1/artifacts/{}", id(&own));
    assert_eq!(stage.delete(&own, &member.token).await.status, 204);
    stage
        .get("/v1/artifacts/art_1", &owner.token)
        .await
        .refused(404, "resource.not_found");
}

async fn artifacts_are_listed_newest_first_and_by_status(stage: Stage) {
    let owner = stage.owner.clone();
    let mut made = Vec::new();
    for number in 0..5 {
        stage.time.pass(Duration::from_secs(1));
        made.push(
            upload(&stage, &owner, &number.to_string(), PLENTY)
                .await
                .ok(201)["id"]
                .clone(),
        );
    }
    made.reverse();
    let place = format!("/v1/artifacts/{}", made[2].as_str().unwrap());
    assert_eq!(stage.delete(&place, &owner.token).await.status, 204);
    let path = format!("/v1/workspaces/{}/artifacts", stage.workspace);
    let ids = |page: &Value| -> Vec<Value> {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].clone())
            .collect()
    };
    let first = stage
        .get(&format!("{path}?limit=2"), &owner.token)
        .await
        .ok(200);
    assert_eq!(ids(&first), made[..2]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = stage
        .get(&format!("{path}?cursor={cursor}"), &owner.token)
        .await
        .ok(200);
    assert_eq!(ids(&rest), made[2..]);
    let deleted = stage
        .get(&format!("{path}?status=deleted"), &owner.token)
        .await
        .ok(200);
    assert_eq!(ids(&deleted), made[2..3]);
    let answer = stage
        .get(&format!("{path}?status=gone"), &owner.token)
        .await;
    assert_eq!(answer.places(), ["query status"]);
}

async fn bytes_come_whole_in_ranges_or_not_at_all(stage: Stage) {
    let owner = stage.owner.clone();
    let made = upload(&stage, &owner, "k", PLENTY).await.ok(201);
    let path = format!("/v1/artifacts/{}/content", id(&made));
    let get =
        async |fields: &[(&str, &str)]| stage.send("GET", &path, &owner.token, None, fields).await;
    let whole = get(&[]).await;
    let tag = format!("\"{}\"", hex(PLENTY));
    assert_eq!((whole.status, &whole.body[..]), (200, PLENTY));
    for (name, value) in [
        ("etag", tag.as_str()),
        ("accept-ranges", "bytes"),
        ("content-length", "15"),
        ("content-type", "application/octet-stream"),
        ("x-content-type-options", "nosniff"),
        // Of the bytes above, by `openssl dgst -sha256 -binary | base64`.
        ("repr-digest", DIGEST),
        (
            "content-disposition",
            "attachment; filename=\"r_sum_.txt\"; filename*=UTF-8''r%C3%A9sum%C3%A9.txt",
        ),
    ] {
        assert_eq!(whole.header(name), Some(value), "{name}");
    }
    let part = get(&[("range", "bytes=7-8"), ("if-range", &tag)]).await;
    assert_eq!((part.status, &part.body[..]), (206, &b"of"[..]));
    assert_eq!(part.header("content-range"), Some("bytes 7-8/15"));
    assert_eq!(part.header("content-length"), Some("2"));
    assert_eq!(part.header("repr-digest"), Some(DIGEST));
    let other = get(&[("range", "bytes=7-8"), ("if-range", "\"another\"")]).await;
    assert_eq!((other.status, &other.body[..]), (200, PLENTY));
    let beyond = get(&[("range", "bytes=15-")]).await;
    beyond.refused(416, "request.range_not_satisfiable");
    assert_eq!(beyond.header("content-range"), Some("bytes */15"));
    let same = get(&[("if-none-match", &tag)]).await;
    assert_eq!((same.status, same.body.len()), (304, 0));
    assert_eq!(same.header("etag"), Some(tag.as_str()));
    let head = stage.send("HEAD", &path, &owner.token, None, &[]).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some("15"));
    // Nothing at all is something to keep, too.
    let nothing = upload(&stage, &owner, "nothing", b"").await.ok(201);
    let answer = content(&stage, &nothing).await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
}
