//! Artifacts: each that was acknowledged is ready and whole, and none is ready that is not.

use crate::cuts::each_cut;
use e2e::{
    fault::{Mark, Recorder},
    random::{Random, rounds, seed},
    server::{Server, serve},
};
use reqwest::blocking::Client as Http;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

const UPLOADERS: usize = 4;

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Artifacts in the order of their acknowledgement, which is the number of the mark.
type Made = Mutex<Vec<String>>;

/// Uploads for a while, each noted once it is answered.
fn upload(url: &str, token: &str, recorder: &Recorder, made: &Made, mut random: Random) {
    let http = Http::new();
    let listed = http.get(format!("{url}/v1/workspaces")).bearer_auth(token);
    let listed: Value = serde_json::from_str(&listed.send().unwrap().text().unwrap()).unwrap();
    let workspace = listed["items"][0]["id"].as_str().unwrap().to_owned();
    let until = Instant::now() + Duration::from_millis(700);
    while Instant::now() < until {
        let bytes: Vec<u8> = (0..random.within(0..200))
            .flat_map(|_| random.bits().to_le_bytes().repeat(100))
            .collect();
        let answer = http
            .post(format!("{url}/v1/workspaces/{workspace}/artifacts"))
            .bearer_auth(token)
            .header("content-type", "application/octet-stream")
            .header("idempotency-key", format!("{:016x}", random.bits()))
            .header("x-upload-size", bytes.len())
            .header("x-content-sha256", hex(&bytes))
            .header("x-filename", "f")
            .body(bytes)
            .send()
            .unwrap();
        assert_eq!(answer.status(), 201);
        let answer: Value = serde_json::from_str(&answer.text().unwrap()).unwrap();
        let mut made = made.lock().unwrap();
        made.push(answer["id"].as_str().unwrap().to_owned());
        recorder.mark(Mark(made.len() as u64 - 1));
    }
}

/// What is ready in a store, with its digest.
fn ready(data: &Path) -> BTreeMap<String, String> {
    let store = rusqlite::Connection::open(data.join("work.db")).unwrap();
    let mut ready = store
        .prepare("SELECT id, sha256 FROM artifacts WHERE status = 'ready'")
        .unwrap();
    let rows = ready.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

#[test]
fn power_cut_while_uploading() {
    let seed = seed();
    let mut random = seed.random();
    for _ in 0..rounds(1) {
        let home = TempDir::new().unwrap();
        let root = home.path().join("disk");
        let data = root.join("data");
        std::fs::create_dir(&root).unwrap();
        // The first workspace is there before the recording.
        Server::start(&data).terminate();
        let token = std::fs::read_to_string(data.join("owner-token")).unwrap();
        let recorder = Recorder::start(&root).slow(Duration::from_millis(4));
        let made = Made::default();
        for _ in 0..2 {
            let mut command = serve(&data);
            recorder.attach(&mut command);
            let server = Server::run(command).unwrap();
            thread::scope(|scope| {
                for _ in 0..UPLOADERS {
                    let (url, token, random) = (&server.url, token.trim(), random.fork());
                    let (recorder, made) = (&recorder, &made);
                    scope.spawn(move || upload(url, token, recorder, made, random));
                }
            });
            recorder.killing(|| server.kill());
        }
        let (start, log) = recorder.finish();
        let made = made.into_inner().unwrap();
        assert!(made.len() > 20, "{} artifacts", made.len());
        assert!(log.syncs() > made.len(), "what is acknowledged is synced");
        each_cut(&start, &log, (60, &[]), &mut random, |cut, image, _| {
            let data = image.join("data");
            let ready = ready(&data);
            for Mark(number) in log.marks_before(cut) {
                let id = &made[usize::try_from(number).unwrap()];
                assert!(ready.contains_key(id), "{id} was acknowledged");
            }
            for (id, sha256) in &ready {
                let path = data.join("artifacts").join(&id[id.len() - 2..]).join(id);
                let bytes = std::fs::read(&path)
                    .unwrap_or_else(|error| panic!("{id} is ready and has no bytes: {error}"));
                assert_eq!(&hex(&bytes), sha256, "{id} is ready and not whole");
            }
        });
    }
}
