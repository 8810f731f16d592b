//! Uploads and downloads: how each failure is met, and that no file is ever half or wrong.

use crate::script::{Act, Script, client, status, told};
use purvey_client::{Download, Error, Upload, Uploaded};
use serde_json::{Value, json};
use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
};
use tempfile::TempDir;

const PLENTY: &[u8] = b"plenty of bytes";
const SHA256: &str = "0aa14d0da079812a97132b652fda9c637192e34b99be72d7041b1a289dc44d0b";

fn file(directory: &TempDir) -> PathBuf {
    let path = directory.path().join("résumé 1.txt");
    fs::write(&path, PLENTY).unwrap();
    path
}

fn made(status: u16) -> Act {
    let headers = match status {
        200 => vec![("idempotent-replayed", "true".to_owned())],
        _ => Vec::new(),
    };
    Act::Answer(status, headers, r#"{"id":"art_1"}"#.into())
}

fn refused(status: u16, code: &str, retry_after: Option<&str>) -> Act {
    let told = retry_after.map(|wait| ("retry-after", wait.to_owned()));
    let body = json!({"code": code, "detail": "No."}).to_string();
    Act::Answer(status, told.into_iter().collect(), body)
}

async fn upload(
    acts: Vec<Act>,
    key: Option<&str>,
) -> (Script, Vec<u64>, Result<Uploaded<Value>, Error>) {
    let directory = TempDir::new().unwrap();
    let (script, origin) = Script::serve(acts).await;
    let (client, time) = client(&origin);
    let upload = Upload {
        path: file(&directory),
        key: key.map(str::to_owned),
        ..Upload::default()
    };
    let uploaded = client.upload("ws_1", &upload).await;
    (script, time.waits(), uploaded)
}

#[tokio::test]
async fn an_upload_declares_what_it_sends_from_the_start_in_each_attempt() {
    let acts = vec![Act::Cut, status(503), made(201)];
    let (script, waits, uploaded) = upload(acts, None).await;
    let uploaded = uploaded.unwrap();
    assert_eq!(uploaded.artifact, json!({"id": "art_1"}));
    assert!(!uploaded.replayed);
    assert_eq!(waits, [500, 1_000]);
    let seen = script.seen.lock().unwrap();
    for seen in seen.iter() {
        assert_eq!(seen.uri, "/v1/workspaces/ws_1/artifacts");
        for (name, value) in [
            ("content-type", "application/octet-stream"),
            ("content-length", "15"),
            ("x-upload-size", "15"),
            ("x-content-sha256", SHA256),
            ("x-filename", "r%C3%A9sum%C3%A9%201%2Etxt"),
            ("idempotency-key", uploaded.key.as_str()),
            ("authorization", "Bearer pvy_planted-secret"),
        ] {
            assert_eq!(seen.headers[name], value, "{name}");
        }
        assert!(!seen.headers.contains_key("transfer-encoding"));
    }
    assert_eq!([&seen[1].body[..], &seen[2].body[..]], [PLENTY, PLENTY]);
}

#[tokio::test]
async fn each_refusal_of_an_upload_is_met_as_the_seed_says() {
    let date = "Thu, 01 Jan 2026 00:00:09 GMT";
    // acts; waits in milliseconds; whether it succeeds
    let rows: Vec<(&str, Vec<Act>, Vec<u64>, bool)> = vec![
        ("201", vec![made(201)], vec![], true),
        ("a replay", vec![made(200)], vec![], true),
        (
            "400 size",
            vec![refused(400, "artifact.size_mismatch", None)],
            vec![],
            false,
        ),
        (
            "400 checksum",
            vec![refused(400, "artifact.checksum_mismatch", None)],
            vec![],
            false,
        ),
        (
            "409 other metadata",
            vec![refused(409, "artifact.metadata_mismatch", Some("1"))],
            vec![],
            false,
        ),
        (
            "409 active, in seconds and as a date",
            vec![
                refused(409, "artifact.upload_active", Some("2")),
                refused(409, "artifact.upload_active", Some(date)),
                made(200),
            ],
            vec![2_000, 7_000],
            true,
        ),
        (
            "409 active without a time",
            vec![refused(409, "artifact.upload_active", None)],
            vec![],
            false,
        ),
        (
            "409 active for too long",
            vec![
                refused(409, "artifact.upload_active", Some("50")),
                refused(409, "artifact.upload_active", Some("50")),
            ],
            vec![50_000],
            false,
        ),
        (
            "413",
            vec![refused(413, "request.too_large", None)],
            vec![],
            false,
        ),
        ("415", vec![status(415)], vec![], false),
        ("422", vec![status(422)], vec![], false),
        (
            "429 rate",
            vec![refused(429, "rate.limited", Some("3")), made(201)],
            vec![3_000],
            true,
        ),
        (
            "429 capacity",
            vec![refused(429, "artifact.capacity", Some("5")), made(201)],
            vec![5_000],
            true,
        ),
        (
            "429 storage",
            vec![refused(429, "artifact.storage_quota", None)],
            vec![],
            false,
        ),
        (
            "5xx",
            vec![status(500), status(502), made(201)],
            vec![500, 1_000],
            true,
        ),
        (
            "five attempts",
            vec![status(500); 5],
            vec![500, 1_000, 2_000, 4_000],
            false,
        ),
        ("an unknown status", vec![told(418, "1")], vec![], false),
    ];
    for (name, acts, expected, succeeds) in rows {
        let attempts = acts.len();
        let (script, waits, uploaded) = upload(acts, Some("my-key")).await;
        assert_eq!(uploaded.is_ok(), succeeds, "{name}: {uploaded:?}");
        assert_eq!((script.requests(), waits), (attempts, expected), "{name}");
        let seen = script.seen.lock().unwrap();
        assert!(
            seen.iter()
                .all(|seen| seen.headers["idempotency-key"] == "my-key"),
            "{name}"
        );
    }
}

#[tokio::test]
async fn what_failed_or_was_deleted_is_uploaded_under_another_key_unless_the_key_was_given() {
    for code in ["artifact.upload_failed", "artifact.deleted"] {
        let acts = vec![Act::Cut, refused(409, code, None), made(201)];
        let (script, _, uploaded) = upload(acts, None).await;
        let keys: Vec<_> = {
            let seen = script.seen.lock().unwrap();
            let key = |at: usize| {
                seen[at].headers["idempotency-key"]
                    .to_str()
                    .unwrap()
                    .to_owned()
            };
            (0..3).map(key).collect()
        };
        assert_eq!(keys[0], keys[1]);
        assert_ne!(keys[1], keys[2]);
        assert_eq!(uploaded.unwrap().key, keys[2]);

        let (script, _, uploaded) = upload(vec![refused(409, code, None)], Some("k")).await;
        assert!(matches!(uploaded, Err(Error::Problem(problem)) if problem.code == code));
        assert_eq!(script.requests(), 1);
    }
}

#[tokio::test]
async fn the_same_upload_has_the_same_key_and_another_one_another() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory);
    let plain = Upload {
        path: path.clone(),
        ..Upload::default()
    };
    let described = Upload {
        description: Some("It says what it is.".into()),
        ..plain.clone()
    };
    let named = Upload {
        filename: Some("other".into()),
        ..plain.clone()
    };
    let mut keys = Vec::new();
    for (workspace, upload) in [
        ("ws_1", &plain),
        ("ws_1", &plain),
        ("ws_2", &plain),
        ("ws_1", &described),
        ("ws_1", &named),
    ] {
        let (_, origin) = Script::serve(vec![made(201)]).await;
        let (client, _) = client(&origin);
        let uploaded: Uploaded<Value> = client.upload(workspace, upload).await.unwrap();
        keys.push(uploaded.key);
    }
    assert_eq!(keys[0], keys[1]);
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 4);
}

#[tokio::test]
async fn an_early_refusal_is_read_while_the_body_is_still_sent() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("large");
    fs::write(&path, vec![7; 40_000_000]).unwrap();
    let body = json!({"code": "request.too_large", "detail": "Too large."}).to_string();
    let (_, origin) = Script::serve(vec![Act::Early(413, Vec::new(), body)]).await;
    let (client, _) = client(&origin);
    let upload = Upload {
        path,
        ..Upload::default()
    };
    let failed = client.upload::<Value>("ws_1", &upload).await.unwrap_err();
    assert!(matches!(failed, Error::Problem(problem) if problem.code == "request.too_large"));
}

#[tokio::test]
async fn a_file_that_changes_or_is_none_is_not_uploaded() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory);
    // It changes once it is hashed.
    let changed = path.clone();
    let upload = Upload {
        path: path.clone(),
        hashed: Some(Arc::new(move |_| fs::write(&changed, "other").unwrap())),
        ..Upload::default()
    };
    let (script, origin) = Script::serve(Vec::new()).await;
    let (client, _) = client(&origin);
    for upload in [
        upload,
        Upload {
            path: directory.path().to_owned(),
            ..Upload::default()
        },
        Upload {
            path: directory.path().join("absent"),
            ..Upload::default()
        },
    ] {
        let failed = client.upload::<Value>("ws_1", &upload).await;
        assert!(matches!(failed, Err(Error::File { .. })), "{failed:?}");
    }
    assert_eq!(script.requests(), 0);
}

#[tokio::test]
async fn progress_is_told_and_begins_anew_with_each_attempt() {
    let directory = TempDir::new().unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let sent = Arc::clone(&told);
    let upload = Upload {
        path: file(&directory),
        sent: Some(Arc::new(move |bytes| sent.lock().unwrap().push(bytes))),
        ..Upload::default()
    };
    let (_, origin) = Script::serve(vec![status(500), made(201)]).await;
    let (client, _) = client(&origin);
    client.upload::<Value>("ws_1", &upload).await.unwrap();
    assert_eq!(*told.lock().unwrap(), [15, 15]);
}

fn artifact() -> Act {
    let artifact = json!({"id": "art_1", "size": 15, "sha256": SHA256, "filename": "r.txt"});
    Act::Answer(200, Vec::new(), artifact.to_string())
}

fn bytes(from: usize, to: usize, cut: bool) -> Act {
    let tag = ("etag", "\"t\"".to_owned());
    if from == 0 {
        return Act::Send(200, vec![tag], PLENTY[..to].to_vec(), cut);
    }
    let range = ("content-range", format!("bytes {from}-14/15"));
    Act::Send(206, vec![tag, range], PLENTY[from..to].to_vec(), cut)
}

struct Place {
    directory: TempDir,
    download: Download,
}

impl Place {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let download = Download {
            to: directory.path().join("got"),
            ..Download::default()
        };
        Self {
            directory,
            download,
        }
    }

    fn files(&self) -> Vec<String> {
        let files = fs::read_dir(self.directory.path()).unwrap();
        files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    fn got(&self) -> Vec<u8> {
        fs::read(&self.download.to).unwrap()
    }
}

#[tokio::test]
async fn a_download_goes_on_with_what_is_missing() {
    let place = Place::new();
    let acts = vec![
        artifact(),
        bytes(0, 6, true),
        status(503),
        bytes(6, 15, false),
    ];
    let (script, origin) = Script::serve(acts).await;
    let (client, time) = client(&origin);
    let got = client.download("art_1", &place.download).await.unwrap();
    assert_eq!(
        (got.size, got.sha256.as_str(), got.resumed),
        (15, SHA256, 0)
    );
    assert_eq!(place.got(), PLENTY);
    assert_eq!(place.files(), ["got"]);
    assert_eq!(time.waits(), [500, 1_000]);
    let seen = script.seen.lock().unwrap();
    assert_eq!(seen[1].uri, "/v1/artifacts/art_1/content");
    assert!(!seen[1].headers.contains_key("range"));
    for seen in &seen[2..] {
        assert_eq!(seen.headers["range"], "bytes=6-");
        assert_eq!(seen.headers["if-range"], "\"t\"");
    }
}

#[tokio::test]
async fn a_download_that_was_given_up_goes_on_in_the_next() {
    let place = Place::new();
    let mut acts = vec![artifact(), bytes(0, 6, true)];
    acts.extend(vec![status(500); 4]);
    let (_, origin) = Script::serve(acts).await;
    let (first, _) = client(&origin);
    let failed = first.download("art_1", &place.download).await;
    assert!(matches!(failed, Err(Error::Problem(_))), "{failed:?}");
    assert_eq!(place.files(), [".got.art_1.part"]);
    let (script, origin) = Script::serve(vec![artifact(), bytes(6, 15, false)]).await;
    let (second, _) = client(&origin);
    let got = second.download("art_1", &place.download).await.unwrap();
    assert_eq!(got.resumed, 6);
    assert_eq!(place.got(), PLENTY);
    assert_eq!(place.files(), ["got"]);
    assert_eq!(script.seen.lock().unwrap()[1].headers["range"], "bytes=6-");
}

#[tokio::test]
async fn bytes_of_something_else_begin_anew_once() {
    // What was there is of something else.
    let place = Place::new();
    fs::write(place.directory.path().join(".got.art_1.part"), "other").unwrap();
    let acts = vec![artifact(), bytes(5, 15, false), bytes(0, 15, false)];
    let (_, origin) = Script::serve(acts).await;
    let (once, _) = client(&origin);
    once.download("art_1", &place.download).await.unwrap();
    assert_eq!(place.got(), PLENTY);

    // The server does not know what it has.
    let place = Place::new();
    let other = || Act::Send(200, Vec::new(), b"plenty of lies!".to_vec(), false);
    let (_, origin) = Script::serve(vec![artifact(), other(), other()]).await;
    let (twice, _) = client(&origin);
    let failed = twice.download("art_1", &place.download).await;
    assert!(matches!(failed, Err(Error::Answer { .. })), "{failed:?}");
    assert_eq!(place.files(), [""; 0]);
}

#[tokio::test]
async fn an_answer_that_is_not_the_part_is_refused() {
    let place = Place::new();
    fs::write(place.directory.path().join(".got.art_1.part"), "plen").unwrap();
    let (_, origin) = Script::serve(vec![artifact(), bytes(6, 15, false)]).await;
    let (client_of, _) = client(&origin);
    let failed = client_of.download("art_1", &place.download).await;
    assert!(matches!(failed, Err(Error::Answer { .. })), "{failed:?}");
    // One that is the whole begins anew.
    let (_, origin) = Script::serve(vec![artifact(), bytes(0, 15, false)]).await;
    let (client_of, _) = client(&origin);
    client_of.download("art_1", &place.download).await.unwrap();
    assert_eq!(place.got(), PLENTY);

    let place = Place::new();
    let more = Act::Send(200, Vec::new(), b"plenty of bytes and more".to_vec(), false);
    let (_, origin) = Script::serve(vec![artifact(), more]).await;
    let (client_of, _) = client(&origin);
    let failed = client_of.download("art_1", &place.download).await;
    assert!(matches!(failed, Err(Error::Answer { .. })), "{failed:?}");
    assert!(!place.download.to.exists());
}

#[tokio::test]
async fn a_file_that_is_there_is_replaced_only_if_told_so() {
    let mut place = Place::new();
    fs::write(&place.download.to, "mine").unwrap();
    let (script, origin) = Script::serve(vec![artifact(), bytes(0, 15, false)]).await;
    let (client, _) = client(&origin);
    let failed = client.download("art_1", &place.download).await;
    assert!(matches!(failed, Err(Error::File { .. })), "{failed:?}");
    assert_eq!((place.got(), script.requests()), (b"mine".to_vec(), 0));
    place.download.replace = true;
    client.download("art_1", &place.download).await.unwrap();
    assert_eq!(place.got(), PLENTY);
}

#[tokio::test]
async fn starting_and_waiting_again_under_a_key_is_one_run() {
    let run = |finished: &str, status: u16| {
        let body = format!(r#"{{"id":"run_1","finished_at":{finished}}}"#);
        Act::Answer(status, Vec::new(), body)
    };
    let acts = vec![
        Act::Cut,
        run("null", 202),
        Act::Cut,
        run("null", 200),
        run("\"x\"", 200),
    ];
    let (script, origin) = Script::serve(acts).await;
    let (client, _) = client(&origin);
    let started = client
        .start_and_wait::<Value>("/v1/agents/agt_1/runs", &json!({"input": 1}), "k", None)
        .await
        .unwrap();
    assert_eq!(started.run, json!({"id": "run_1", "finished_at": "x"}));
    let seen = script.seen.lock().unwrap();
    let uris: Vec<_> = seen.iter().map(|seen| seen.uri.as_str()).collect();
    let (start, wait) = ("/v1/agents/agt_1/runs", "/v1/runs/run_1?wait=60");
    assert_eq!(uris, [start, start, wait, wait, wait]);
    assert!(
        seen[..2]
            .iter()
            .all(|seen| seen.headers["idempotency-key"] == "k")
    );
}
