//! Records in every format, packed or not, from files and from a pipe: the same catalog.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test's helper is the test's failure"
)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use e2e::binary::{exported, fail, feed, import, offerings, succeed};
use serde_json::json;
use tempfile::TempDir;

/// A table as it is written in each format: an absent cell, quotes and commas, numbers, a date.
fn table() -> [(&'static str, &'static str); 4] {
    [
        (
            "csv",
            "id,name,summary,count,day,shelf\r\na,Anvil,\"Heavy, \"\"very\"\"\",3,2026-01-02,metal\r\nb,\"Bell\",,,,\r\nc,Crème brûlée,Sweet,-7,,food\r\n",
        ),
        (
            "tsv",
            "id\tname\tsummary\tcount\tday\tshelf\na\tAnvil\tHeavy, \"very\"\t3\t2026-01-02\tmetal\nb\tBell\t\t\t\t\nc\tCrème brûlée\tSweet\t-7\t\tfood\n",
        ),
        (
            "ndjson",
            "{\"id\":\"a\",\"name\":\"Anvil\",\"summary\":\"Heavy, \\\"very\\\"\",\"count\":3,\"day\":\"2026-01-02\",\"shelf\":\"metal\"}\n{\"id\":\"b\",\"name\":\"Bell\"}\n\n{\"id\":\"c\",\"name\":\"Crème brûlée\",\"summary\":\"Sweet\",\"count\":-7,\"shelf\":\"food\"}",
        ),
        (
            "json",
            "[ {\"id\":\"a\",\"name\":\"Anvil\",\"summary\":\"Heavy, \\\"very\\\"\",\"count\":3,\"day\":\"2026-01-02\",\"shelf\":\"metal\"},\n {\"id\":\"b\",\"name\":\"Bell\"},{\"id\":\"c\",\"name\":\"Cr\\u00e8me br\\u00fbl\\u00e9e\",\"summary\":\"Sweet\",\"count\":-7,\"shelf\":\"food\"}]",
        ),
    ]
}

fn table_manifest(home: &Path) -> PathBuf {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"count": {"type": "integer"}, "day": {"type": "string"}},
        "additionalProperties": false,
    });
    fs::write(home.join("thing.json"), schema.to_string()).unwrap();
    let manifest = home.join("catalog.toml");
    fs::write(
        &manifest,
        r#"
        [service]
        name = "A table"
        description = "Rows."
        language = "en"
        [records]
        id = "id"
        name = "name"
        description = "summary"
        collection_ids = ["{shelf}"]
        schema = "/schemas/thing.json"
        attributes = { count = { column = "count", type = "integer" }, day = { column = "day", type = "date" } }
        [schemas]
        "/schemas/thing.json" = "thing.json"
        [[collections]]
        id = "metal"
        name = "Metal"
        [[collections]]
        id = "food"
        name = "Food"
        "#,
    )
    .unwrap();
    manifest
}

#[test]
fn every_format_packing_and_standard_input_give_the_same_catalog() {
    let home = TempDir::new().unwrap();
    let manifest = table_manifest(home.path());
    let mut catalogs = Vec::new();
    let mut data = || {
        let data = home.path().join(format!("data-{}", catalogs.len()));
        catalogs.push(data.clone());
        data
    };
    for (format, text) in table() {
        let text = text.as_bytes();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        for (suffix, bytes) in [
            ("", text.to_vec()),
            (".gz", gzip.finish().unwrap()),
            (".zst", zstd::encode_all(text, 1).unwrap()),
        ] {
            let records = home.path().join(format!("things.{format}{suffix}"));
            fs::write(&records, bytes).unwrap();
            succeed(import(&data(), &manifest, &[&records]));
        }
        let mut from_pipe = import(&data(), &manifest, &[Path::new("-")]);
        from_pipe.args(["--format", format]);
        feed(from_pipe, text);
    }
    let expected = [
        json!({
            "id": "a", "name": "Anvil", "description": "Heavy, \"very\"", "collection_ids": ["metal"],
            "schema": {"url": "/schemas/thing.json"}, "attributes": {"count": 3, "day": "2026-01-02"},
        }),
        json!({"id": "b", "name": "Bell"}),
        json!({
            "id": "c", "name": "Crème brûlée", "description": "Sweet", "collection_ids": ["food"],
            "schema": {"url": "/schemas/thing.json"}, "attributes": {"count": -7},
        }),
    ];
    assert_eq!(offerings(&catalogs[0]), expected);
    let first = exported(&catalogs[0]);
    for data in &catalogs[1..] {
        assert_eq!(exported(data), first, "{}", data.display());
    }
    assert_eq!(catalogs.len(), 16);
}

#[test]
fn a_name_without_a_format_or_a_table_without_a_column_is_refused() {
    let home = TempDir::new().unwrap();
    let manifest = table_manifest(home.path());
    let data = home.path().join("data");
    let records = home.path().join("things.txt");
    fs::write(&records, "id,name\na,A\n").unwrap();
    fail(
        import(&data, &manifest, &[&records]),
        2,
        &["things.txt", "--format"],
    );
    let records = home.path().join("things.csv");
    fs::write(&records, "id,name\na,A\n").unwrap();
    fail(import(&data, &manifest, &[&records]), 2, &["summary"]);
    // Wire-form records are no table; the words come without escapes that the input did not ask for.
    let wire = home.path().join("wire");
    fs::create_dir(&wire).unwrap();
    fail(
        import(&data, &e2e::sample::manifest(&wire), &[&records]),
        1,
        &["things.csv:2: record: A table's rows need [records] in the manifest."],
    );
    // What is cut off was not imported in part.
    let whole = zstd::encode_all(table()[0].1.as_bytes(), 1).unwrap();
    let records = home.path().join("things.csv.zst");
    fs::write(&records, &whole[..whole.len() / 2]).unwrap();
    fail(
        import(&data, &manifest, &[&records]),
        1,
        &["things.csv.zst"],
    );
    assert!(!data.join("CURRENT").exists(), "nothing was published");
}
