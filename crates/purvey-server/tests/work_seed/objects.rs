//! Where the bytes of artifacts are kept, and what becomes of uploads when a store of objects fails in the midst of them.

use crate::{
    stage::{self, Stage},
    uploads::{Upload, artifacts, id, upload},
};
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use e2e::objects::Bucket;
use http::{Method, StatusCode};
use purvey_work::{Blobs, UploadLimits};
use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;

/// What a store of objects is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Create,
    Part,
    Complete,
    Abort,
    Put,
    Head,
    Get,
    Delete,
}

impl Call {
    fn of(request: &Request) -> Self {
        let query = request.uri().query().unwrap_or_default();
        let parts = query.contains("uploadId=");
        match *request.method() {
            Method::POST if parts => Self::Complete,
            Method::POST => Self::Create,
            Method::PUT if parts => Self::Part,
            Method::PUT => Self::Put,
            Method::DELETE if parts => Self::Abort,
            Method::DELETE => Self::Delete,
            Method::HEAD => Self::Head,
            _ => Self::Get,
        }
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
struct Fault {
    call: Call,
    status: u16,
    /// How often.
    times: usize,
}

/// What stands between a server and its store of objects.
#[derive(Default)]
pub(crate) struct Between {
    endpoint: String,
    fault: Mutex<Option<Fault>>,
    calls: Mutex<Vec<Call>>,
}

impl Between {
    fn fails(&self, call: Call) -> Option<StatusCode> {
        let mut fault = self.fault.lock().unwrap();
        let found = fault.as_mut().filter(|fault| fault.call == call)?;
        found.times = found.times.checked_sub(1)?;
        Some(StatusCode::from_u16(found.status).unwrap())
    }
}

async fn pass(
    State((between, http)): State<(Arc<Between>, reqwest::Client)>,
    request: Request,
) -> Response {
    let call = Call::of(&request);
    between.calls.lock().unwrap().push(call);
    if let Some(status) = between.fails(call) {
        return (status, "<Error><Code>AccessDenied</Code></Error>").into_response();
    }
    let (head, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let url = format!("{}{}", between.endpoint, head.uri);
    let sent = http
        .request(head.method, url)
        .headers(head.headers)
        .body(body);
    let answer: http::Response<reqwest::Body> = sent.send().await.unwrap().into();
    answer.map(Body::new)
}

/// A place for the bytes of artifacts.
pub(crate) enum Objects {
    Directory(TempDir),
    Bucket(Bucket, Arc<Between>),
}

impl Objects {
    pub(crate) fn directory() -> Self {
        Self::Directory(tempfile::tempdir().unwrap())
    }

    /// None where there is no server for it, which the test says and ends.
    pub(crate) fn bucket() -> Option<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let bucket = Bucket::new(&format!("bucket-{number}"))?;
        let between = Between {
            endpoint: bucket.endpoint.to_owned(),
            ..Between::default()
        };
        Some(Self::Bucket(bucket, Arc::new(between)))
    }

    pub(crate) async fn blobs(&self) -> Blobs {
        match self {
            Self::Directory(directory) => {
                Blobs::at(directory.path().to_str().unwrap(), &[]).unwrap()
            }
            Self::Bucket(bucket, between) => {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                let mut variables = bucket.variables();
                variables.retain(|(name, _)| name != "AWS_ENDPOINT");
                let endpoint = format!("http://{}", listener.local_addr().unwrap());
                variables.push(("AWS_ENDPOINT".into(), endpoint));
                let url = format!("s3://{}/kept/here", bucket.name);
                let blobs = Blobs::at(&url, &variables).unwrap();
                let state = (Arc::clone(between), reqwest::Client::new());
                let proxy = Router::new().fallback(pass).with_state(state);
                tokio::spawn(async move { axum::serve(listener, proxy).await });
                blobs.probe().await.unwrap();
                blobs
            }
        }
    }

    /// Artifacts of which there are bytes, whole or coming.
    pub(crate) async fn count(&self) -> usize {
        match self {
            Self::Directory(directory) => {
                let directories = std::fs::read_dir(directory.path()).unwrap();
                directories.map(|entry| files(entry.unwrap().path())).sum()
            }
            Self::Bucket(bucket, _) => {
                let bucket = bucket.clone();
                let counted = tokio::task::spawn_blocking(move || bucket.count());
                let (objects, uploads) = counted.await.unwrap();
                objects + uploads
            }
        }
    }

    fn fault(&self, fault: Option<Fault>) {
        *self.between().fault.lock().unwrap() = fault;
    }

    /// What was asked since the last look.
    fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut *self.between().calls.lock().unwrap())
    }

    fn between(&self) -> &Between {
        match self {
            Self::Bucket(_, between) => between,
            Self::Directory(_) => panic!("a directory is not asked"),
        }
    }
}

fn files(path: PathBuf) -> usize {
    std::fs::read_dir(path).map_or(0, |entries| {
        entries
            .filter(|entry| !entry.as_ref().unwrap().path().is_dir())
            .count()
    })
}

/// More than is sent to S3 at once.
const LARGE: usize = 11 * 1_024 * 1_024 + 3;

fn bounds() -> UploadLimits {
    let mut limits = stage::uploads();
    limits.bytes = LARGE as u64;
    limits.organization_bytes = LARGE as u64 + 100;
    limits
}

macro_rules! on_objects {
    ($($test:ident),* $(,)?) => {
        mod s3 {
            $(#[test] fn $test() { crate::stage::on_objects(super::bounds(), super::$test); })*
        }
    };
}

on_objects! {
    what_is_large_comes_in_parts_and_is_read_in_ranges,
    a_call_that_fails_once_is_made_again,
    a_call_that_is_refused_leaves_no_artifact,
    bytes_that_could_not_be_removed_are_removed_later,
    what_is_not_as_declared_is_not_put_together,
    bytes_that_are_not_there_are_no_content,
}

/// Bytes of which each tells where it is, nearly.
fn large() -> Vec<u8> {
    (0..LARGE).map(|at| (at % 251) as u8).collect()
}

async fn what_is_large_comes_in_parts_and_is_read_in_ranges(stage: Stage) {
    let (owner, bytes) = (stage.owner.clone(), large());
    stage.objects.calls();
    let made = upload(&stage, &owner, "k", &bytes).await.ok(201);
    assert_eq!(
        stage.objects.calls(),
        [
            Call::Create,
            Call::Part,
            Call::Part,
            Call::Part,
            Call::Complete,
            Call::Head
        ]
    );
    let content = format!("/v1/artifacts/{}/content", id(&made));
    let all = stage.get(&content, &owner.token).await;
    assert_eq!(all.status, 200);
    assert!(all.body == bytes, "other bytes than were sent");
    for (range, part) in [
        ("bytes=5242870-5242889", 5_242_870..5_242_890),
        ("bytes=-4", LARGE - 4..LARGE),
    ] {
        let fields = [("range", range)];
        let got = stage
            .send("GET", &content, &owner.token, None, &fields)
            .await;
        assert_eq!(got.status, 206);
        assert_eq!(got.body, bytes[part]);
    }
    let place = format!("/v1/artifacts/{}", id(&made));
    assert_eq!(stage.delete(&place, &owner.token).await.status, 204);
    assert_eq!(stage.objects.count().await, 0);
}

/// Calls of an upload of which the size is either side of a part.
fn calls() -> Vec<(Call, Vec<u8>)> {
    let small = [Call::Put, Call::Head].map(|call| (call, b"few".to_vec()));
    let large = [Call::Create, Call::Part, Call::Complete, Call::Head].map(|call| (call, large()));
    small.into_iter().chain(large).collect()
}

async fn a_call_that_fails_once_is_made_again(stage: Stage) {
    let owner = stage.owner.clone();
    for (number, (call, bytes)) in calls().into_iter().enumerate() {
        stage.objects.fault(Some(Fault {
            call,
            status: 503,
            times: 1,
        }));
        let made = upload(&stage, &owner, &number.to_string(), &bytes).await;
        let path = format!("/v1/artifacts/{}", id(&made.ok(201)));
        assert_eq!(stage.delete(&path, &owner.token).await.status, 204);
        assert_eq!(stage.objects.count().await, 0, "{call:?}");
    }
}

async fn a_call_that_is_refused_leaves_no_artifact(stage: Stage) {
    let owner = stage.owner.clone();
    for (number, (call, bytes)) in calls().into_iter().enumerate() {
        stage.objects.fault(Some(Fault {
            call,
            status: 403,
            times: usize::MAX,
        }));
        let answer = upload(&stage, &owner, &number.to_string(), &bytes).await;
        answer.refused(500, "server.error");
        stage.objects.fault(None);
        assert_eq!(artifacts(&stage, "failed").await.len(), number + 1);
        // All the room there is.
        let key = format!("again-{number}");
        let made = upload(&stage, &owner, &key, &large()).await.ok(201);
        assert_eq!(stage.objects.count().await, 1, "{call:?}");
        let path = format!("/v1/artifacts/{}", id(&made));
        assert_eq!(stage.delete(&path, &owner.token).await.status, 204);
    }
    assert_eq!(stage.objects.count().await, 0);
}

async fn bytes_that_could_not_be_removed_are_removed_later(stage: Stage) {
    let owner = stage.owner.clone();
    let made = upload(&stage, &owner, "k", b"few").await.ok(201);
    let refuse = |call| {
        stage.objects.fault(Some(Fault {
            call,
            status: 403,
            times: usize::MAX,
        }));
    };
    refuse(Call::Delete);
    let path = format!("/v1/artifacts/{}", id(&made));
    assert_eq!(stage.delete(&path, &owner.token).await.status, 204);
    refuse(Call::Abort);
    let mut other = large();
    other[LARGE - 1] = 0;
    Upload::of(&stage, &owner, "other", &large())
        .send(&stage, other)
        .await
        .refused(400, "artifact.checksum_mismatch");
    assert_eq!(stage.objects.count().await, 2);
    stage.time.pass(Duration::from_secs(16));
    stage.platform.tend_artifacts(false).await.unwrap();
    assert_eq!(stage.objects.count().await, 1);
    stage.objects.fault(None);
    stage.platform.tend_artifacts(false).await.unwrap();
    assert_eq!(stage.objects.count().await, 0);
    // Nothing is asked for again.
    stage.objects.calls();
    stage.platform.tend_artifacts(false).await.unwrap();
    assert_eq!(stage.objects.calls(), []);
}

async fn what_is_not_as_declared_is_not_put_together(stage: Stage) {
    let owner = stage.owner.clone();
    let mut other = large();
    other[0] = 1;
    let declared = Upload::of(&stage, &owner, "k", &large());
    declared
        .send(&stage, other)
        .await
        .refused(400, "artifact.checksum_mismatch");
    assert!(!stage.objects.calls().contains(&Call::Complete));
    assert_eq!(stage.objects.count().await, 0);
}

async fn bytes_that_are_not_there_are_no_content(stage: Stage) {
    let owner = stage.owner.clone();
    let made = upload(&stage, &owner, "k", b"few").await.ok(201);
    stage.objects.fault(Some(Fault {
        call: Call::Get,
        status: 404,
        times: 1,
    }));
    let content = format!("/v1/artifacts/{}/content", id(&made));
    let answer = stage.get(&content, &owner.token).await;
    answer.refused(500, "server.error");
    assert_eq!(stage.get(&content, &owner.token).await.body, "few");
}
