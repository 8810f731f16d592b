//! A program for the fault tests to catch: it keeps numbered values in files, in ways that are right or wrong in a known
//! respect. Each line of its input asks for one more value; it answers with the number once that is "durable".
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "test support: a failure here is a failing test"
)]

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, Write as _};
use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (way, root) = (arguments[1].as_str(), Path::new(&arguments[2]));
    let mut keep = keeper(way, root);
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        line.unwrap();
        keep(number);
        println!("{number}");
        std::io::stdout().flush().unwrap();
    }
}

fn keeper(way: &str, root: &Path) -> Box<dyn FnMut(usize)> {
    let root = root.to_owned();
    match way {
        "replace" => Box::new(move |n| replace(&root, n, true, true)),
        "replace-without-data-sync" => Box::new(move |n| replace(&root, n, false, true)),
        "replace-without-name-sync" => Box::new(move |n| replace(&root, n, true, false)),
        "append" | "append-without-sync" => {
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(root.join("value"))
                .unwrap();
            File::open(&root).unwrap().sync_all().unwrap();
            let sync = way == "append";
            Box::new(move |n| {
                file.write_all(format!("{n:04}").repeat(256).as_bytes())
                    .unwrap();
                if sync {
                    file.sync_data().unwrap();
                }
            })
        }
        "sqlite" => sqlite(&root, "FULL"),
        "sqlite-without-sync" => sqlite(&root, "NORMAL"),
        _ => panic!("no such way: {way}"),
    }
}

fn replace(root: &Path, number: usize, sync_data: bool, sync_name: bool) {
    let temporary = root.join("value.tmp");
    let mut file = File::create(&temporary).unwrap();
    file.write_all(format!("{number:04}").repeat(256).as_bytes())
        .unwrap();
    if sync_data {
        file.sync_all().unwrap();
    }
    fs::rename(&temporary, root.join("value")).unwrap();
    if sync_name {
        File::open(root).unwrap().sync_all().unwrap();
    }
}

fn sqlite(root: &Path, synchronous: &str) -> Box<dyn FnMut(usize)> {
    let database = rusqlite::Connection::open(root.join("value.db")).unwrap();
    // A few pages to a checkpoint, so that the database file itself changes too.
    database
        .execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA wal_autocheckpoint = 8;
             CREATE TABLE value (number INTEGER PRIMARY KEY, filler TEXT);"
        ))
        .unwrap();
    Box::new(move |number| {
        let filler = format!("{number:04}").repeat(256);
        database
            .execute(
                "INSERT INTO value VALUES (?1, ?2)",
                (i64::try_from(number).unwrap(), filler),
            )
            .unwrap();
    })
}
