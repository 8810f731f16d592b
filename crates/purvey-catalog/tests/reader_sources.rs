//! Readers: every format, compression and way of being broken.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use purvey_catalog::manifest::Manifest;
use purvey_catalog::reader::{Format, Input, RECORD_BYTES, Raw, ReadError, Source, open};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> Source {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        Source::of(path)
    }
}

fn read(source: Source) -> Vec<Result<Raw, ReadError>> {
    open(vec![source], None).unwrap().collect()
}

/// Line and value of every record; a bad one gives its reason.
fn values(source: Source) -> Vec<(u64, Result<Value, String>)> {
    read(source)
        .into_iter()
        .map(|raw| {
            let raw = raw.unwrap();
            let value = match raw.input() {
                Ok(Input::Value(value)) => Ok(value),
                Ok(Input::Row(_)) => panic!("a row"),
                Err(invalid) => Err(invalid.to_string()),
            };
            (raw.line, value)
        })
        .collect()
}

fn cells(source: Source, columns: &[&str]) -> Vec<Result<Vec<Option<String>>, String>> {
    read(source)
        .into_iter()
        .map(|raw| {
            let raw = raw.unwrap();
            match raw.input() {
                Ok(Input::Row(row)) => Ok(columns
                    .iter()
                    .map(|column| row.get(column).map(str::to_owned))
                    .collect()),
                Ok(Input::Value(value)) => panic!("a value {value}"),
                Err(invalid) => Err(invalid.to_string()),
            }
        })
        .collect()
}

fn some(cells: &[&str]) -> Vec<Option<String>> {
    cells
        .iter()
        .map(|cell| (!cell.is_empty()).then(|| (*cell).to_owned()))
        .collect()
}

#[test]
fn ndjson_keeps_lines_and_judges_each_by_itself() {
    let folder = Folder::new();
    let source = folder.file(
        "a.ndjson",
        b"\xef\xbb\xbf{\"id\":\"a\"}\r\n\n{\"id\":\n{\"id\":\"\xff\"}\n[1.50]",
    );
    let found = values(source.clone());
    assert_eq!(found.len(), 4);
    assert_eq!(found[0], (1, Ok(json!({"id": "a"}))));
    assert_eq!((found[1].0, found[1].1.is_err()), (3, true));
    assert_eq!((found[2].0, found[2].1.is_err()), (4, true));
    assert_eq!(found[3].0, 5);
    assert_eq!(found[3].1.as_ref().unwrap().to_string(), "[1.50]");
    let raw = read(source).remove(2).unwrap();
    assert_eq!(raw.bytes, b"{\"id\":\"\xff\"}");
}

#[test]
fn an_overlong_line_is_one_bad_record() {
    let folder = Folder::new();
    let mut bytes = b"{\"id\":\"a\"}\n\"".to_vec();
    bytes.resize(bytes.len() + RECORD_BYTES, b'x');
    bytes.extend(b"\"\n{\"id\":\"b\"}\n");
    let found = values(folder.file("a.jsonl", &bytes));
    assert_eq!(found.len(), 3);
    assert!(found[1].1.as_ref().unwrap_err().contains("2097152 bytes"));
    assert_eq!(found[2], (3, Ok(json!({"id": "b"}))));
    // One that is exactly as long as allowed passes.
    let mut bytes = b"\"".to_vec();
    bytes.resize(RECORD_BYTES - 1, b'x');
    bytes.extend(b"\"\r\n");
    assert!(values(folder.file("b.ndjson", &bytes))[0].1.is_ok());
}

#[test]
fn json_is_an_array_of_records_or_one() {
    let folder = Folder::new();
    let one = folder.file("one.json", b" {\"id\": [\"}\", \"\\\"]\"]}\n ");
    assert_eq!(values(one), [(1, Ok(json!({"id": ["}", "\"]"]})))]);
    let many = folder.file(
        "many.json",
        b"[\n {\"id\":1},\n {\"id\":\n2} , 3, \"a,]\" ]\n",
    );
    assert_eq!(
        values(many),
        [
            (2, Ok(json!({"id": 1}))),
            (3, Ok(json!({"id": 2}))),
            (4, Ok(json!(3))),
            (4, Ok(json!("a,]"))),
        ]
    );
    assert_eq!(values(folder.file("none.json", b"[ ]")), []);
    let bad = values(folder.file("bad.json", b"[{\"a\":tru},{\"a\":1}]"));
    assert!(bad[0].1.is_err());
    assert_eq!(bad[1].1, Ok(json!({"a": 1})));
}

#[test]
fn a_broken_array_is_a_failure_of_the_source() {
    let folder = Folder::new();
    for (text, records, line) in [
        ("[{\"a\":1}\n", 1, 2),
        ("[{\"a\":1}\n{\"a\":2}]", 1, 2),
        ("[{\"a\":1},]", 1, 1),
        ("[,]", 0, 1),
        ("{\"a\":1}\n{\"a\":2}", 1, 2),
        ("", 0, 1),
    ] {
        let all = read(folder.file("x.json", text.as_bytes()));
        assert_eq!(all.len(), records + 1, "{text}");
        assert_eq!(
            all.last().unwrap().as_ref().unwrap_err().line,
            Some(line),
            "{text}"
        );
    }
}

#[test]
fn tsv_has_no_quoting_and_empty_cells_are_absent() {
    let folder = Folder::new();
    let source = folder.file(
        "a.tsv",
        b"id\tname\r\n1\t\"quoted\r\n2\t\n3\n4\ta\tb\n5\t\xff\n",
    );
    let found = cells(source, &["id", "name", "none"]);
    assert_eq!(found[0], Ok(some(&["1", "\"quoted", ""])));
    assert_eq!(found[1], Ok(some(&["2", "", ""])));
    assert!(found[2].as_ref().unwrap_err().contains("2 cells"));
    assert!(found[3].is_err());
    assert!(found[4].as_ref().unwrap_err().contains("UTF-8"));
    assert_eq!(found.len(), 5);
}

#[test]
fn csv_quotes_follow_rfc_4180() {
    let folder = Folder::new();
    let source = folder.file(
        "a.csv",
        b"id,\"the \"\"name\"\"\"\n1,\"two\nlines, one cell\"\n2,in\"side\n\"3\",\"\"\n4,\"x\"y\n5,\"open\n6,b\n",
    );
    let found = cells(source.clone(), &["id", "the \"name\""]);
    assert_eq!(found[0], Ok(some(&["1", "two\nlines, one cell"])));
    assert_eq!(found[1], Ok(some(&["2", "in\"side"])));
    assert_eq!(found[2], Ok(some(&["3", ""])));
    assert!(found[3].is_err());
    assert!(found[4].is_err());
    assert_eq!(found.len(), 5);
    let lines: Vec<u64> = read(source)
        .into_iter()
        .map(|raw| raw.unwrap().line)
        .collect();
    assert_eq!(lines, [2, 4, 5, 6, 7]);
}

#[test]
fn compression_is_told_by_the_bytes_and_progress_counts_them() {
    let folder = Folder::new();
    let text = "{\"id\":\"a\"}\n".repeat(1000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    // Two members make one file, as `cat a.gz b.gz` does.
    let twice = [gzip.clone(), gzip].concat();
    let zstd = zstd::encode_all(text.as_bytes(), 3).unwrap();
    let sources = vec![
        folder.file("a.ndjson.gz", &twice),
        folder.file("b.ndjson.zst", &zstd),
        folder.file("c.ndjson", text.as_bytes()),
    ];
    let total = (twice.len() + zstd.len() + text.len()) as u64;
    let mut reader = open(sources, None).unwrap();
    let progress = reader.progress();
    assert_eq!(progress.total(), Some(total));
    assert_eq!(progress.read(), 0);
    assert_eq!(
        reader
            .by_ref()
            .filter(|raw| raw.as_ref().unwrap().input().is_ok())
            .count(),
        4000
    );
    assert_eq!(progress.read(), total);
}

#[test]
fn damaged_compression_ends_the_source_but_not_the_next() {
    let folder = Folder::new();
    let mut zstd = zstd::encode_all("{}\n".repeat(50_000).as_bytes(), 3).unwrap();
    zstd.truncate(zstd.len() - 3);
    let sources = vec![
        folder.file("a.ndjson.zst", &zstd),
        folder.file("b.ndjson", b"{}\n"),
    ];
    let all: Vec<_> = open(sources, None).unwrap().collect();
    assert_eq!(all.iter().filter(|raw| raw.is_err()).count(), 1);
    assert_eq!(all.last().unwrap().as_ref().unwrap().source, 1);
}

#[test]
fn formats_come_from_names_or_are_said() {
    let name = |name: &str| Format::of(&PathBuf::from(name));
    assert_eq!(name("a.tsv.zst"), Some(Format::Tsv));
    assert_eq!(name("A.CSV.GZ"), Some(Format::Csv));
    assert_eq!(name("a.json"), Some(Format::Json));
    assert_eq!(name("x/a.jsonl"), Some(Format::Ndjson));
    assert_eq!(name("a.txt"), None);
    assert_eq!(name("gz"), None);
    assert_eq!(Source::of("-"), Source::Stdin);
    let folder = Folder::new();
    let source = folder.file("a.txt", b"{}");
    assert!(open(vec![source.clone()], None).is_err());
    assert_eq!(open(vec![source], Some(Format::Json)).unwrap().count(), 1);
    assert!(open(vec![Source::of("/nowhere/a.json")], None).is_err());
}

const MAPPED: &str = r#"
[service]
name = "S"
description = "D"
language = "en"
[records]
id = "{registry}.{id}"
name = "title"
web_url = "/p/{id}"
collection_ids = ["{registry}", "all", "{group}"]
schema = "/s.json"
price = { type = "fixed", amount = "{price}", currency = "EUR" }
images = [{ src = "/i/{image}.png", alt = "{{{title}}}" }]
[records.attributes]
version = "version"
stars = { column = "stars", type = "integer" }
score = { column = "score", type = "number" }
open = { column = "open", type = "boolean" }
day = { column = "day", type = "date" }
tags = { column = "tags", split = ";" }
inner = { a = "a", b = "b" }
[schemas]
"/s.json" = { inline = '{"$schema": "https://json-schema.org/draft/2020-12/schema"}' }
"#;

fn mapped(header: &str, row: &str) -> Result<Value, Vec<String>> {
    let folder = Folder::new();
    let manifest = Manifest::parse_embedded(MAPPED, &[]).unwrap();
    let source = folder.file("a.csv", format!("{header}\n{row}\n").as_bytes());
    let raw = read(source).remove(0).unwrap();
    manifest.map_row(raw.input().unwrap()).map_err(|invalid| {
        invalid
            .into_violations()
            .into_iter()
            .map(|v| v.pointer)
            .collect()
    })
}

const HEADER: &str = "registry,id,title,version,stars,score,open,day,tags,a,b,price,image,group";

#[test]
fn columns_become_members() {
    assert_eq!(
        mapped(
            HEADER,
            "node,x,X,1.0,12345678901234567890,1.50,true,2026-02-28,a; b;,A,B,9.90,pic,g"
        ),
        Ok(json!({
            "id": "node.x",
            "name": "X",
            "images": [{"src": "/i/pic.png", "alt": "{X}"}],
            "web_url": "/p/x",
            "collection_ids": ["node", "all", "g"],
            "price": {"type": "fixed", "amount": "9.90", "currency": "EUR"},
            "schema": {"url": "/s.json"},
            "attributes": {
                "version": "1.0",
                "stars": serde_json::from_str::<Value>("12345678901234567890").unwrap(),
                "score": serde_json::from_str::<Value>("1.50").unwrap(),
                "open": true,
                "day": "2026-02-28",
                "tags": ["a", "b"],
                "inner": {"a": "A", "b": "B"}
            }
        }))
    );
}

#[test]
fn absent_cells_leave_no_trace() {
    assert_eq!(
        mapped(HEADER, "node,x,X,,,,,,,,,,,"),
        Ok(
            json!({"id": "node.x", "name": "X", "web_url": "/p/x", "collection_ids": ["node", "all"]})
        )
    );
    assert_eq!(
        mapped(HEADER, "node,x,,,,,,,,,B,,,"),
        Ok(json!({
            "id": "node.x", "web_url": "/p/x", "collection_ids": ["node", "all"],
            "attributes": {"inner": {"b": "B"}}, "schema": {"url": "/s.json"}
        }))
    );
}

#[test]
fn cells_must_be_of_their_type() {
    assert_eq!(
        mapped(HEADER, "node,x,X,,1.5,abc,yes,2026-02-30,,,,,,"),
        Err(vec![
            "/attributes/stars".to_owned(),
            "/attributes/score".to_owned(),
            "/attributes/open".to_owned(),
            "/attributes/day".to_owned(),
        ])
    );
    assert_eq!(
        mapped(HEADER, "node,x,X,,007,,,,,,,,,"),
        Err(vec!["/attributes/stars".to_owned()])
    );
}

#[test]
fn a_table_without_a_column_is_noticed_at_once() {
    let folder = Folder::new();
    let manifest = Manifest::parse_embedded(MAPPED, &[]).unwrap();
    let raw = read(folder.file("a.tsv", b"registry\tid\n1\t2\n"))
        .remove(0)
        .unwrap();
    let mapping = manifest.mapping().unwrap();
    let missing = mapping.check_columns(raw.header().unwrap()).unwrap_err();
    assert!(
        missing
            .violations()
            .iter()
            .any(|v| v.pointer == "/records/name")
    );
    assert!(
        !missing
            .violations()
            .iter()
            .any(|v| v.pointer == "/records/id")
    );
}

#[test]
fn json_objects_are_mapped_too_and_tables_need_a_mapping() {
    let manifest = Manifest::parse_embedded(MAPPED, &[]).unwrap();
    let row =
        json!({"registry": "r", "id": 7, "title": "T", "stars": 3, "tags": ["x"], "open": null});
    assert_eq!(
        manifest.map_row(Input::Value(row)),
        Ok(json!({
            "id": "r.7", "name": "T", "web_url": "/p/7", "collection_ids": ["r", "all"],
            "attributes": {"stars": 3, "tags": ["x"]}, "schema": {"url": "/s.json"}
        }))
    );
    assert!(manifest.map_row(Input::Value(json!([1]))).is_err());
    let plain = Manifest::empty().unwrap();
    let folder = Folder::new();
    let raw = read(folder.file("a.tsv", b"id\n1\n")).remove(0).unwrap();
    assert!(plain.map_row(raw.input().unwrap()).is_err());
}
