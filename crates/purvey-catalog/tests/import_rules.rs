//! What an import holds records and manifests to beside their form, and that trying it out says the same.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod catalog_support;

use catalog_support::{all, offering, options, pointers};
use purvey_catalog::Error;
use purvey_catalog::catalog::{Catalog, Listing, Precondition};
use purvey_catalog::import::{ImportOptions, ImportReport, OnError, import};
use purvey_catalog::manifest::Manifest;
use purvey_catalog::reader::Source;
use purvey_catalog::store::Store;
use purvey_odp::identity::ResourceType::Offering;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const SERVICE: &str =
    "[service]\nname = \"Tools\"\ndescription = \"Things to work with.\"\nlanguage = \"en\"\n";

fn manifest(rest: &str) -> Manifest {
    Manifest::parse(&format!("{SERVICE}{rest}"), Path::new(".")).unwrap()
}

/// A manifest whose schema allows at most this weight.
fn weighing(most: u32) -> Manifest {
    manifest(&format!(
        "[schemas]\n\"/s.json\" = {{ inline = '''{{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\", \
         \"properties\": {{\"weight\": {{\"maximum\": {most}}}}}}}''' }}\n"
    ))
}

fn heavy(id: &str, weight: u32) -> Value {
    json!({"id": id, "name": id, "schema": {"url": "/s.json"}, "attributes": {"weight": weight}})
}

fn file(dir: &Path, name: &str, lines: &[Value]) -> Source {
    let path = dir.join(name);
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(&path, lines.join("\n")).unwrap();
    Source::File(path)
}

fn with(dry_run: bool, on_error: OnError) -> ImportOptions {
    ImportOptions {
        dry_run,
        on_error,
        catalog: options(),
        ..ImportOptions::default()
    }
}

fn run(
    data: &Path,
    manifest: &Manifest,
    sources: &[Source],
    options: &ImportOptions,
) -> Result<ImportReport, Error> {
    import(data, manifest, sources, options, &())
}

/// Where stored Offerings would no longer fit: what a dry run reports and an import fails with.
fn unfit(result: Result<ImportReport, Error>) -> Vec<String> {
    match result {
        Ok(report) => {
            assert!(!report.committed);
            let unfit = report.unfit.into_iter();
            unfit.map(|reason| reason.pointer).collect()
        }
        Err(error) => pointers(&error),
    }
}

#[test]
fn stored_offerings_are_held_to_a_stricter_schema_by_a_dry_run_too() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let records = [heavy("a", 5), heavy("b", 50), heavy("c", 60)];
    let stored = file(dir.path(), "stored.ndjson", &records);
    run(
        &data,
        &weighing(100),
        &[stored],
        &with(false, OnError::Stop),
    )
    .unwrap();
    let strict = weighing(10);
    for dry_run in [true, false] {
        let refused = run(&data, &strict, &[], &with(dry_run, OnError::Stop));
        assert_eq!(
            unfit(refused),
            [
                "/offerings/b/attributes/weight",
                "/offerings/c/attributes/weight"
            ],
            "dry run: {dry_run}"
        );
    }
    // What the import brings in place of a stored Offering counts, and only that.
    let light = file(dir.path(), "light.ndjson", &[heavy("b", 7)]);
    for dry_run in [true, false] {
        let options = with(dry_run, OnError::Stop);
        let refused = run(&data, &strict, std::slice::from_ref(&light), &options);
        assert_eq!(unfit(refused), ["/offerings/c/attributes/weight"]);
    }
    // A dry run says everything at once: what is bad, and what is stored and no longer fits.
    let mixed = file(
        dir.path(),
        "mixed.ndjson",
        &[heavy("b", 7), json!({"id": "d"})],
    );
    for on_error in [OnError::Stop, OnError::Skip] {
        let options = with(true, on_error);
        let report = run(&data, &strict, std::slice::from_ref(&mixed), &options).unwrap();
        assert_eq!((report.rejected, report.faults[0].line), (1, 2));
        assert_eq!(unfit(Ok(report)), ["/offerings/c/attributes/weight"]);
    }
    let both = file(dir.path(), "both.ndjson", &[heavy("b", 7), heavy("c", 8)]);
    for dry_run in [true, false] {
        let options = with(dry_run, OnError::Stop);
        let report = run(&data, &strict, std::slice::from_ref(&both), &options).unwrap();
        assert_eq!((report.offerings, report.committed), (2, !dry_run));
    }
}

#[test]
fn an_openapi_action_needs_a_document() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut booking = offering("a", &[]);
    booking["actions"] = json!([
        {"id": "h", "rel": "quote", "authentication": "not-required", "http": {"href": "/q", "method": "GET"}},
        {"id": "b", "rel": "reserve", "authentication": "not-required", "openapi": {"operation_id": "book"}},
    ]);
    let source = [file(dir.path(), "a.ndjson", std::slice::from_ref(&booking))];
    let without = manifest("");
    let with_openapi = manifest("openapi = { url = \"https://tools.example.com/openapi.json\" }\n");

    let report = run(&data, &without, &source, &with(false, OnError::Skip)).unwrap();
    assert_eq!(report.faults[0].violations[0].pointer, "/actions/1/openapi");
    let catalog = Catalog::open(&data, options()).unwrap();
    let refused = catalog.put(Offering, "a", booking.clone(), Precondition::None);
    assert_eq!(pointers(&refused.unwrap_err()), ["/actions/1/openapi"]);

    catalog.set_manifest(&with_openapi).unwrap();
    catalog
        .put(Offering, "a", booking, Precondition::None)
        .unwrap();
    let dropped = catalog.set_manifest(&without).unwrap_err();
    assert_eq!(pointers(&dropped), ["/offerings/a/actions/1/openapi"]);
    for dry_run in [true, false] {
        let refused = run(&data, &without, &[], &with(dry_run, OnError::Stop));
        assert_eq!(unfit(refused), ["/offerings/a/actions/1/openapi"]);
    }
}

#[test]
fn members_that_nobody_knows_are_kept_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let records = [
        offering("a", &[]),
        json!({"id": "b", "name": "B", "descripton": "x", "price": {"type": "quote", "a/b": 1}}),
        json!({"collection": {"id": "c", "name": "C", "parents": ["d"]}}),
        // Objects that the protocol closes refuse what they do not know.
        json!({"id": "e", "name": "E", "images": [{"src": "/i.svg", "alternative": "x"}]}),
    ];
    let source = [file(dir.path(), "r.ndjson", &records)];
    for dry_run in [true, false] {
        let report = run(&data, &manifest(""), &source, &with(dry_run, OnError::Skip)).unwrap();
        let found: Vec<(u64, Vec<&str>)> = report
            .warnings
            .iter()
            .map(|w| {
                (
                    w.line,
                    w.violations.iter().map(|v| v.pointer.as_str()).collect(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                (2, vec!["/descripton", "/price/a~1b"]),
                (3, vec!["/parents"])
            ]
        );
        assert_eq!((report.doubtful, report.rejected), (2, 1));
        assert_eq!(
            report.faults[0].violations[0].pointer,
            "/images/0/alternative"
        );
        assert_eq!((report.offerings, report.collections), (2, 1));
    }
    let catalog = Catalog::open(&data, options()).unwrap();
    let kept = catalog.record(Offering, "b").unwrap().unwrap();
    let kept: Value = serde_json::from_slice(&kept.bytes).unwrap();
    assert_eq!(kept["descripton"], "x");
}

#[test]
fn a_header_without_rows_has_its_columns_checked() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let table = manifest("[records]\nid = \"sku\"\nname = \"title\"\n");
    let source = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        [Source::File(path)]
    };
    let wrong = source("wrong.csv", "sku,name\n");
    for dry_run in [true, false] {
        let refused = run(&data, &table, &wrong, &with(dry_run, OnError::Skip)).unwrap_err();
        assert!(matches!(refused, Error::Manifest(_)), "{refused}");
        assert_eq!(pointers(&refused), ["/records/name"]);
    }
    let right = source("right.csv", "title,sku\n");
    assert!(
        run(&data, &table, &right, &with(false, OnError::Stop))
            .unwrap()
            .committed
    );
}

#[test]
fn a_first_import_that_fails_leaves_no_catalog() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let bad = [file(
        dir.path(),
        "bad.ndjson",
        &[offering("a", &["nowhere"])],
    )];
    let report = run(&data, &manifest(""), &bad, &with(false, OnError::Stop)).unwrap();
    assert!(!report.committed);
    assert!(Store::open_existing(&data).unwrap().is_none());
    let missing = [Source::of(dir.path().join("missing.ndjson"))];
    run(&data, &manifest(""), &missing, &with(false, OnError::Stop)).unwrap_err();
    assert!(Store::open_existing(&data).unwrap().is_none());
    // It is no obstacle to the next one, nor to a server.
    let good = [file(dir.path(), "good.ndjson", &[offering("a", &[])])];
    run(&data, &manifest(""), &good, &with(false, OnError::Stop)).unwrap();
    let catalog = Catalog::open(&data, options()).unwrap();
    assert_eq!(all(&catalog, &Listing::Offerings), ["a"]);
}

#[test]
fn hierarchy_faults_of_a_manifest_name_the_collection_and_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path(), options()).unwrap();
    let collection = |id: &str, parent: &str| {
        format!("\n[[collections]]\nid = \"{id}\"\nname = \"N\"\nparent_ids = [\"{parent}\"]\n")
    };
    let text = [
        collection("a", "b"),
        collection("b", "a"),
        collection("orphan", "nowhere"),
    ]
    .concat();
    // Each table takes five lines, after the four of the service.
    let refused = catalog.set_manifest(&manifest(&text)).unwrap_err();
    let imported = import(
        dir.path(),
        &manifest(&text),
        &[],
        &with(false, OnError::Stop),
        &(),
    );
    for error in [refused, imported.unwrap_err()] {
        let Error::Manifest(invalid) = error else {
            panic!("not a refusal: {error}")
        };
        let found: Vec<(&str, &str)> = invalid
            .violations()
            .iter()
            .map(|v| (v.pointer.as_str(), v.reason.as_str()))
            .collect();
        let (pointer, reason) = found[0];
        assert_eq!(pointer, "/collections/2/parent_ids/0");
        assert!(
            reason.contains("orphan") && reason.ends_with("(line 19)"),
            "{reason}"
        );
        assert_eq!(
            found[1..]
                .iter()
                .map(|(pointer, _)| *pointer)
                .collect::<Vec<_>>(),
            ["/collections/0/parent_ids", "/collections/1/parent_ids"]
        );
        assert!(found[1].1.ends_with("(line 9)"), "{}", found[1].1);
        assert!(found[2].1.ends_with("(line 14)"), "{}", found[2].1);
    }
}

#[test]
fn values_that_hardly_anybody_means_are_taken_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let action = |rel: &str| json!({"id": "a", "rel": rel, "authentication": "not-required", "http": {"href": "/q", "method": "GET"}});
    let with_price = |price: Value| json!({"id": "p", "name": "P", "price": price});
    let cases = [
        (
            with_price(json!({"type": "fixd", "amount": "1", "currency": "EUR"})),
            vec!["/price/type"],
        ),
        (
            with_price(json!({"type": "free", "amount": "1"})),
            vec!["/price/amount"],
        ),
        (
            with_price(json!({"type": "fixed", "amount": "1", "currency": "EUR", "unit": "h"})),
            vec!["/price/unit"],
        ),
        (
            json!({"id": "r", "name": "R", "actions": [action("buy")]}),
            vec!["/actions/0/rel"],
        ),
        (
            with_price(json!({"type": "metered", "amount": "1", "currency": "EUR", "unit": "h"})),
            vec![],
        ),
        (
            json!({"id": "r", "name": "R", "actions": [action("purchase")]}),
            vec![],
        ),
    ];
    for (record, expected) in cases {
        let source = [file(
            dir.path(),
            "one.ndjson",
            std::slice::from_ref(&record),
        )];
        let report = run(&data, &manifest(""), &source, &with(true, OnError::Stop)).unwrap();
        let found: Vec<&str> = report
            .warnings
            .iter()
            .flat_map(|warning| &warning.violations)
            .map(|violation| violation.pointer.as_str())
            .collect();
        assert_eq!(found, expected, "{record}");
        assert_eq!(report.rejected, 0, "{record}");
    }
}

#[test]
fn a_schema_that_takes_for_ever_is_refused_before_anything_is_held_to_it() {
    let with_schema = |schema: &Value| {
        let text = schema.to_string();
        let toml = format!("{SERVICE}[schemas]\n\"/s.json\" = \"s.json\"\n");
        Manifest::parse_embedded(&toml, &[("s.json", &text)])
    };
    let dialect = "https://json-schema.org/draft/2020-12/schema";
    // Each of 60 levels refers twice to the next: 2^60 steps.
    let mut levels = serde_json::Map::new();
    for level in 0..60 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        levels.insert(format!("l{level}"), json!({"allOf": [next, next]}));
    }
    levels.insert("l60".to_owned(), json!({"type": "object"}));
    let doubling = json!({"$schema": dialect, "$ref": "#/$defs/l0", "$defs": levels});
    // Each value asks twice for the whole of what is below it, sixteen levels deep and ten times wide.
    let below = json!({"additionalProperties": {"$ref": "#"}});
    let deep = json!({"$schema": dialect, "allOf": vec![below; 10]});
    let endless = json!({"$schema": dialect, "anyOf": [{"$ref": "#"}, {"type": "string"}]});
    // A child is met by its name and by the pattern: twice on each of sixteen levels.
    let again = json!({"$ref": "#"});
    let twice = |pattern: &str, name: &str| json!({"$schema": dialect, "properties": {(name): again}, "patternProperties": {(pattern): again}});
    let patterns = |one: &str, other: &str| json!({"$schema": dialect, "patternProperties": {(one): again, (other): again}});
    let met_twice = [
        twice("^c", "child"),
        twice("", "child"),
        twice("d$", "child"),
        // Whatever this engine cannot read may match.
        twice("^(?=x)", "child"),
        twice("^x", "\u{e4}"),
        patterns("^a", "^ab"),
        patterns("a", "b"),
        patterns("^a|c", "^b"),
        patterns("^ab?", "^ac"),
        patterns("^a{0}", "^b"),
    ];
    for schema in [doubling, deep, endless].into_iter().chain(met_twice) {
        let refused = with_schema(&schema).unwrap_err();
        assert_eq!(pointers(&refused), ["/schemas/~1s.json"], "{schema}");
    }
    // Recursion that goes on to what is within ends with the value.
    let tree = json!({"$schema": dialect, "$id": "https://x.example/tree", "$ref": "#node", "$defs": {"node": {
        "$anchor": "node",
        "properties": {"children": {"items": {"$ref": "#node"}}, "left": {"$ref": "tree"}, "right": {"$ref": "#/$defs/node"}},
        "anyOf": [{"type": "object", "patternProperties": {"^x-": {"type": "string"}}}, {"type": "array"}],
    }}});
    let manifest = with_schema(&tree).unwrap();
    assert!(manifest.schemas().contains("/s.json"));
    // So does recursion in several ways of which a member is met by one.
    let met_once = [
        twice("^x-", "child"),
        twice("^[0-9]+$", "child"),
        patterns("^a", "^b"),
        patterns("^ab+", "^ac"),
        json!({
            "$schema": dialect,
            "properties": {"left": again, "right": again},
            "patternProperties": {"^x-": again, "^y-": again},
            "additionalProperties": again,
            "propertyNames": {"maxLength": 40},
        }),
    ];
    for schema in met_once {
        assert!(with_schema(&schema).is_ok(), "{schema}");
    }
}
