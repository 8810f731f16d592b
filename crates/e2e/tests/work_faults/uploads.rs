//! Servers killed at random under concurrent uploads: what was answered 201 is there byte for byte, and of everything else nothing is left,
//! neither bytes nor room.

use crate::{
    house::{House, Owner, Place, wait_for},
    model::{Act, Model},
    postgres::Schema,
};
use e2e::{
    objects::Bucket,
    random::{self, Random},
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

const UPLOADERS: usize = 32;

pub(crate) fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Bytes that differ from upload to upload: a few, or several pieces, or, with `parts`, also so many that S3 gets them in parts.
fn bytes(random: &mut Random, parts: bool) -> Vec<u8> {
    let size = match random.within(0..12) {
        0 if parts => random.within(5_300_000..6_000_000),
        0..3 => random.within(0..600_000),
        _ => random.within(0..3_000),
    };
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        bytes.extend_from_slice(&random.bits().to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}

/// Uploads one thing after the other until told to stop, each until it is known what became of it; digests by identifier.
fn upload(
    owner: &Owner,
    mut random: Random,
    parts: bool,
    stop: &AtomicBool,
) -> BTreeMap<String, String> {
    let mut made = BTreeMap::new();
    while !stop.load(Ordering::Relaxed) {
        let bytes = bytes(&mut random, parts);
        let sha256 = hex(&bytes);
        let mut key = format!("{:016x}", random.bits());
        loop {
            let answer = owner.upload(&key, &sha256, &bytes);
            let code = answer.as_ref().map(|answer| answer.body["code"].clone());
            match answer.map_or(0, |answer| {
                if answer.status < 300 {
                    let id = answer.body["id"].as_str().unwrap().to_owned();
                    assert_eq!(answer.body["status"], "ready", "{}", answer.body);
                    made.insert(id, sha256.clone());
                }
                answer.status
            }) {
                200 | 201 => break,
                // The server went down, or has no place while those of the last one's uploads are held.
                0 | 429 | 503 => {}
                // The connection broke and the server has lived to write it down.
                400 if code == Some("request.broken".into()) => {}
                409 if code == Some("artifact.upload_active".into()) => {}
                409 if code == Some("artifact.upload_failed".into()) => {
                    key = format!("{:016x}", random.bits());
                }
                status => panic!("{status} {code:?}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    made
}

pub(crate) fn files(root: &Path) -> usize {
    let entries = std::fs::read_dir(root).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => files(&entry.path()),
            false => 1,
        })
        .sum()
}

fn killed(place: Place, bucket: Option<&Bucket>) {
    let seed = random::seed();
    let mut random = seed.random();
    let rounds = random::rounds(6);
    let mut house = House::new(place, Model::start(1, |_: &str, _| Act::Wait));
    let mut more = vec!["--uploads-per-minute".to_owned(), "1000000".to_owned()];
    if let Some(bucket) = bucket {
        house.environment = bucket.variables();
        more.push(format!("--objects=s3://{}/of/uploads", bucket.name));
    }
    let house = house;
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let start = || house.start_with("one", house.database().as_deref(), &more);
    let left = || match bucket {
        Some(bucket) => bucket.count(),
        None => (files(&house.data("one").join("artifacts")), 0),
    };
    let mut server = start();
    let owner = Owner::of(&house, "one", &[&server]);
    let stop = AtomicBool::new(false);
    let made: BTreeMap<String, String> = std::thread::scope(|scope| {
        let uploaders: Vec<_> = (0..UPLOADERS)
            .map(|_| {
                let (owner, stop, random) = (&owner, &stop, random.fork());
                scope.spawn(move || upload(owner, random, bucket.is_some(), stop))
            })
            .collect();
        for _ in 0..rounds {
            std::thread::sleep(
                Duration::from_millis(200) + random.below(Duration::from_millis(700)),
            );
            server.kill_now();
            *owner.urls.lock().unwrap() = vec![None];
            server = start();
            *owner.urls.lock().unwrap() = vec![Some(server.url.clone())];
        }
        std::thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
        uploaders
            .into_iter()
            .flat_map(|uploader| uploader.join().unwrap())
            .collect()
    });
    println!("{rounds} kills, {} artifacts", made.len());
    assert!(!made.is_empty());

    let ready = house.rows("SELECT id, sha256 FROM artifacts WHERE status = 'ready'");
    let ready: BTreeMap<String, String> = ready
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    assert_eq!(ready, made, "what is ready is what was answered so");
    for (id, sha256) in &made {
        let bytes = owner.download(id).unwrap();
        assert_eq!(&hex(&bytes), sha256, "{id}");
    }
    // Leases lapse, what they left is collected.
    wait_for("the end of every upload", || {
        house.number("SELECT CAST(COUNT(*) AS TEXT) FROM artifacts WHERE status = 'uploading'") == 0
    });
    wait_for("the collection of what is left", || {
        left() == (made.len(), 0)
    });
    let size = "SELECT CAST(COALESCE(SUM(size), 0) AS TEXT) FROM artifacts WHERE status = 'ready'";
    assert_eq!(
        house.rows("SELECT CAST(bytes AS TEXT), CAST(uploads AS TEXT) FROM storage"),
        [[house.number(size).to_string(), "0".into()]]
    );
    // Freed, all of it.
    for id in made.keys() {
        let path = format!("/v1/artifacts/{id}");
        assert_eq!(owner.until("DELETE", &path, None, None).status, 204);
    }
    assert_eq!(house.number("SELECT CAST(bytes AS TEXT) FROM storage"), 0);
    assert_eq!(left(), (0, 0));
    drop::<Value>(owner.must("GET", &owner.workspace, None));
}

#[test]
fn killed_under_uploads_on_sqlite() {
    killed(Place::Sqlite, None);
}

#[test]
fn killed_under_uploads_on_postgresql() {
    if let Some(schema) = Schema::fresh() {
        killed(Place::Schema(schema), None);
    }
}

#[test]
fn killed_under_uploads_to_objects() {
    if let Some(bucket) = Bucket::new("killed") {
        killed(Place::Sqlite, Some(&bucket));
    }
}
