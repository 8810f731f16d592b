//! A catalog whose files were written over while it is served: no damaged document is answered as if it were good.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use common::{Service, config, log::Log, search};
use serde_json::json;
use std::{fs, path::PathBuf};

/// The segments of a data directory.
fn segments(service: &Service) -> Vec<PathBuf> {
    let entries = fs::read_dir(service.directory.path().join("segments")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "seg"))
        .collect()
}

/// Everything in one test: the log is one for the whole process.
#[tokio::test]
async fn damaged_documents_are_an_internal_error_that_the_log_and_check_name() {
    let log = Log::install();
    let service = Service::searchable(config());
    let files = segments(&service);
    assert!(!files.is_empty());
    let paths = [
        "/odp/offerings/lamp-07",
        "/odp/offerings/lamp-07?representation=terse",
        "/odp/offerings?limit=50",
        "/odp/collections",
        "/odp/collections/lamps",
        "/odp/collections/lamps/offerings",
    ];
    for path in paths {
        assert_eq!(service.get(path).await.status, 200, "{path}");
    }
    let found = search::search(&service, json!({"query": "lamp"})).await;
    assert_eq!(found.status, 200);
    for byte in [0xff, 0] {
        for file in &files {
            let length = fs::metadata(file).unwrap().len() as usize;
            // In place: the server holds the file open.
            fs::write(file, vec![byte; length]).unwrap();
        }
        log.lines();
        for path in paths {
            let answer = service.get(path).await;
            answer.assert_problem(500, "INTERNAL_ERROR");
            let lines = log.lines();
            let failed = lines.iter().find(|line| line["level"] == "ERROR");
            let cause = failed.expect(path)["fields"]["error"].as_str().unwrap();
            let named = |file: &PathBuf| cause.contains(&file.display().to_string());
            assert!(files.iter().any(named), "{cause}");
        }
        let answer = search::search(&service, json!({"query": "lamp"})).await;
        answer.assert_problem(500, "INTERNAL_ERROR");
        let faults = service.catalog.check().unwrap().faults;
        for file in &files {
            let named = |fault: &String| fault.contains(&file.display().to_string());
            assert!(faults.iter().any(named), "{faults:?}");
        }
    }
}
