//! The file layer itself: it must find what a careless program loses, and nothing in a careful one.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failure in a test's helper is the test's failure"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use e2e::fault::{Disk, Log, Mark, Recorder, Style};
use e2e::random::{Random, seed};
use tempfile::TempDir;

const VALUES: usize = 12;

/// Lets the subject keep some values, with a mark after each acknowledgement.
fn record(way: &str) -> (Disk, Log) {
    let directory = TempDir::new().unwrap();
    let recorder = Recorder::start(directory.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_fault_subject"));
    command
        .arg(way)
        .arg(directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    recorder.attach(&mut command);
    let mut child = command.spawn().unwrap();
    let (mut input, mut output) = (
        child.stdin.take().unwrap(),
        BufReader::new(child.stdout.take().unwrap()),
    );
    for number in 0..VALUES {
        input.write_all(b"\n").unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        assert_eq!(answer.trim(), number.to_string());
        recorder.mark(Mark(number as u64));
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    recorder.finish()
}

/// What an image lacks of what was acknowledged, if anything.
fn fault_of(way: &str, image: &Path, acknowledged: usize) -> Option<String> {
    let part = |n: usize| format!("{n:04}").repeat(256);
    if way.starts_with("sqlite") {
        let held = rusqlite::Connection::open(image.join("value.db")).and_then(|database| {
            database.pragma_update(None, "synchronous", "OFF")?;
            let check: String =
                database.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
            assert_eq!(check, "ok");
            database.query_row("SELECT count(*), max(number) FROM value", [], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?))
            })
        });
        return match held {
            Ok((count, last)) if count >= i64::try_from(acknowledged).unwrap() => {
                assert_eq!(last.unwrap_or(-1), count - 1);
                None
            }
            Err(_) if acknowledged == 0 => None,
            other => Some(format!("{acknowledged} acknowledged, found {other:?}")),
        };
    }
    let content = std::fs::read_to_string(image.join("value")).unwrap_or_default();
    let good = if way.starts_with("append") {
        let whole: String = (0..acknowledged).map(part).collect();
        content.starts_with(&whole)
    } else {
        // The value acknowledged last, or the one after it; whole either way.
        acknowledged
            .checked_sub(1)
            .is_some_and(|n| content == part(n))
            || content == part(acknowledged)
            || (acknowledged == 0 && content.is_empty())
    };
    (!good).then(|| {
        format!(
            "{acknowledged} acknowledged, found {} bytes: {:.12}",
            content.len(),
            content
        )
    })
}

/// The first fault over every cut, in every style.
fn first_fault(way: &str, random: &mut Random) -> Option<String> {
    let (mut disk, log) = record(way);
    for cut in 0..log.cuts() {
        disk.replay(&log, cut);
        let acknowledged = log.marks_before(cut).count();
        for style in Style::ALL {
            let image = TempDir::new().unwrap();
            disk.after_power_cut(style, random, image.path());
            if let Some(fault) = fault_of(way, image.path(), acknowledged) {
                return Some(format!("cut {cut}, {style:?}: {fault}"));
            }
        }
    }
    None
}

#[test]
fn a_careful_program_loses_nothing() {
    let seed = seed();
    let mut random = seed.random();
    for way in ["replace", "append", "sqlite"] {
        assert_eq!(first_fault(way, &mut random), None, "{way}");
    }
}

#[test]
fn every_missing_sync_is_found() {
    let seed = seed();
    let mut random = seed.random();
    for way in [
        "replace-without-data-sync",
        "replace-without-name-sync",
        "append-without-sync",
        "sqlite-without-sync",
    ] {
        assert!(
            first_fault(way, &mut random).is_some(),
            "{way}: its loss was not found"
        );
    }
}

#[test]
#[should_panic(expected = "was written past the file layer")]
fn a_change_that_the_layer_did_not_see_is_noticed() {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("value"), "before").unwrap();
    let recorder = Recorder::start(directory.path());
    std::fs::write(directory.path().join("value"), "after").unwrap();
    let _ = recorder.finish();
}
