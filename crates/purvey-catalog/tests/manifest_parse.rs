//! The manifest: what it accepts, what it refuses and where it says so.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use purvey_catalog::Error;
use purvey_catalog::manifest::Manifest;
use purvey_catalog::reader::Input;
use purvey_odp::language::LanguageTag;
use purvey_odp::service::Operation;
use serde_json::json;

const SERVICE: &str = r#"[service]
name = "Registry packages"
description = "Packages of two language registries."
language = "en"
"#;

const SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": { "downloads": { "type": "integer" }, "nothing": { "const": null } }
}"#;

const SKETCH: &str = r#"[service]
name = "Registry packages"
description = "Packages of two language registries."
language = "en"
[records]
id = "id"
name = "name"
description = "summary"
collection_ids = ["{registry}"]
schema = "/schemas/package.json"
attributes = { version = "version", updated = { column = "updated", type = "date" }, downloads = { column = "downloads", type = "integer" } }
[schemas]
"/schemas/package.json" = "schemas/package.json"
[[collections]]
id = "python"
name = "Python packages"
[search]
text = [{ path = "/name", weight = 3.0 }, { path = "/description" }]
terse = ["/description", "/collection_ids", "/attributes/version"]
[[filters]]
id = "downloads"
title = "Downloads"
description = "Downloads in the last month."
type = "integer"
operators = ["eq", "gte", "lte", "exists"]
path = "/attributes/downloads"
[[sorts]]
id = "most-downloaded"
title = "Most downloaded"
description = "Downloads, largest first."
keys = [{ filter_id = "downloads", direction = "descending", missing = "last" }]
"#;

fn parse(toml: &str) -> Result<Manifest, Error> {
    Manifest::parse_embedded(toml, &[("schemas/package.json", SCHEMA)])
}

/// Pointer and reason of every fault.
fn faults(toml: &str) -> Vec<(String, String)> {
    match parse(toml) {
        Err(Error::Invalid(invalid)) => invalid
            .into_violations()
            .into_iter()
            .map(|v| (v.pointer, v.reason))
            .collect(),
        other => panic!("must be refused, was {other:?}"),
    }
}

/// Whether a fault at `pointer` ends in this line.
#[track_caller]
fn assert_fault(faults: &[(String, String)], pointer: &str, line: usize) {
    let end = format!("(line {line})");
    assert!(
        faults
            .iter()
            .any(|(p, reason)| p == pointer && reason.ends_with(&end)),
        "no fault at {pointer} on line {line} in {faults:#?}"
    );
}

#[test]
fn the_sketch_is_a_manifest() {
    let manifest = parse(SKETCH).unwrap();
    assert_eq!(manifest.language().as_str(), "en");
    assert_eq!(manifest.endpoint_base(), "/odp");
    assert_eq!(manifest.collections().len(), 1);
    assert_eq!(manifest.collections()[0].id(), "python");
    assert_eq!(
        manifest.schemas().served("/schemas/package.json"),
        Some(SCHEMA)
    );
    assert_eq!(manifest.schemas().served("/schemas/other.json"), None);
    let text: Vec<_> = manifest
        .text()
        .iter()
        .map(|field| (field.path.as_str(), field.weight))
        .collect();
    assert_eq!(text, [("/name", 3.0), ("/description", 1.0)]);
    let filters = manifest.capabilities().filters();
    assert_eq!(filters[0].definition.id().as_str(), "downloads");
    assert_eq!(filters[0].paths[0].as_str(), "/attributes/downloads");
    assert_eq!(
        manifest.capabilities().sorts()[0].id().as_str(),
        "most-downloaded"
    );
}

#[test]
fn text_is_name_and_description_unless_said() {
    let manifest = parse(SERVICE).unwrap();
    let text: Vec<_> = manifest
        .text()
        .iter()
        .map(|field| (field.path.as_str(), field.weight))
        .collect();
    assert_eq!(text, [("/name", 3.0), ("/description", 1.0)]);
}

#[test]
fn the_stored_form_is_self_contained_and_stable() {
    let manifest = parse(SKETCH).unwrap();
    let stored = manifest.to_toml();
    let again = Manifest::parse_embedded(&stored, &[]).unwrap();
    assert_eq!(again.to_toml(), stored);
    assert_eq!(again.rendering_digest(), manifest.rendering_digest());
    assert_eq!(
        again.schemas().served("/schemas/package.json"),
        Some(SCHEMA)
    );
    assert!(again.mapping().is_some());
}

#[test]
fn an_openapi_document_is_part_of_the_manifest() {
    let document = r#"{"openapi": "3.1.0", "paths": {}}"#;
    let with = |openapi: &str| format!("{SERVICE}openapi = {openapi}\n");
    let files = [
        ("api.json", document),
        ("old.json", r#"{"openapi": "3.0.3"}"#),
    ];
    let text = with(r#"{ url = "/api", file = "api.json" }"#);
    let manifest = Manifest::parse_embedded(&text, &files).unwrap();
    assert_eq!(manifest.openapi("/api"), Some(document));
    assert_eq!(manifest.openapi("/other"), None);
    let again = Manifest::parse_embedded(&manifest.to_toml(), &[]).unwrap();
    assert_eq!(again.openapi("/api"), Some(document));
    assert_eq!(again.to_toml(), manifest.to_toml());
    let elsewhere = with(r#"{ url = "https://api.example.com/openapi.json" }"#);
    let elsewhere = Manifest::parse_embedded(&elsewhere, &[]).unwrap();
    assert!(elsewhere.service().has_openapi());
    for (openapi, pointer) in [
        (
            r#"{ url = "/api", file = "none.json" }"#,
            "/service/openapi/file",
        ),
        (r#"{ url = "/api", file = "old.json" }"#, "/service/openapi"),
        (r#"{ url = "/api", file = 7 }"#, "/service/openapi"),
        (
            r#"{ url = "/v1/api", file = "api.json" }"#,
            "/service/openapi/url",
        ),
        (
            r#"{ url = "https://a.example/api", file = "api.json" }"#,
            "/service/openapi/url",
        ),
        (
            r#"{ url = "/odp/filters/x", file = "api.json" }"#,
            "/service/openapi/url",
        ),
    ] {
        match Manifest::parse_embedded(&with(openapi), &files) {
            Err(Error::Invalid(invalid)) => {
                assert_eq!(invalid.violations()[0].pointer, pointer, "{openapi}");
            }
            other => panic!("{openapi}: {other:?}"),
        }
    }
}

#[test]
fn an_export_has_no_mapping_and_the_given_collections() {
    let toml = format!(
        "{SKETCH}[[collections]]\nid = \"node\"\nname = \"Node\"\n[[collections.sorts]]\nid = \"fewest\"\ntitle = \"Fewest\"\ndescription = \"Fewest downloads first.\"\nkeys = [{{ filter_id = \"downloads\", direction = \"ascending\", missing = \"first\" }}]\n"
    );
    let manifest = parse(&toml).unwrap();
    let node = serde_json::json!({"id": "node", "name": "Renamed", "translations": {"de": {"name": "Umbenannt"}}});
    let exported = manifest.to_export([node.clone()]);
    let again = Manifest::parse_embedded(&exported, &[]).unwrap();
    assert!(again.mapping().is_none());
    assert_eq!(again.collections().len(), 1);
    assert_eq!(again.collections()[0].to_stored(), node);
    assert_eq!(
        again.collection_capabilities("node").unwrap().sorts()[0]
            .id()
            .as_str(),
        "fewest"
    );
}

#[test]
fn every_fault_is_reported_with_its_place() {
    let toml = SKETCH
        .replace("language = \"en\"", "language = \"en\"\nweb_url = \"/x\"")
        .replace(
            "type = \"integer\"\noperators",
            "type = \"whole\"\noperators",
        )
        .replace("weight = 3.0", "weight = -1")
        .replace("id = \"python\"", "id = \"py/thon\"")
        .replace("{registry}", "{registry");
    let faults = faults(&toml);
    assert_fault(&faults, "/service/web_url", 5);
    assert_fault(&faults, "/records/collection_ids/0", 10);
    assert_fault(&faults, "/search/text/0/weight", 19);
    assert_fault(&faults, "/filters/0/type", 25);
    assert_fault(&faults, "/collections/0/id", 16);
}

#[test]
fn syntax_faults_have_lines() {
    let faults = faults("[service]\nname = \"a\"\nname = \n");
    assert!(
        faults
            .iter()
            .any(|(_, reason)| reason.ends_with("(line 3)")),
        "{faults:?}"
    );
}

#[test]
fn unknown_keys_are_refused_everywhere() {
    for (toml, pointer) in [
        ("extra = 1\n".to_owned() + SKETCH, "/extra"),
        (
            SKETCH.replace("[search]", "[search]\nfuzzy = true"),
            "/search/fuzzy",
        ),
        (
            SKETCH.replace(
                "path = \"/attributes/downloads\"",
                "path = \"/attributes/downloads\"\nboost = 2",
            ),
            "/filters/0/boost",
        ),
        (
            SKETCH.replace("missing = \"last\"", "missing = \"last\", nulls = 1"),
            "/sorts/0/keys/0/nulls",
        ),
        (
            SKETCH.replace("id = \"id\"", "id = \"id\"\ntitle = \"x\""),
            "/records/title",
        ),
        (
            SKETCH.replace(
                "column = \"updated\"",
                "column = \"updated\", format = \"x\"",
            ),
            "/records/attributes/updated/format",
        ),
    ] {
        let faults = faults(&toml);
        assert!(
            faults.iter().any(|(p, _)| p == pointer),
            "{pointer}: {faults:?}"
        );
    }
}

#[test]
fn capabilities_must_fit_together() {
    let twice = SKETCH.to_owned()
        + "[[sorts]]\nid = \"most-downloaded\"\ntitle = \"T\"\ndescription = \"D\"\nkeys = [{ filter_id = \"stars\", direction = \"ascending\", missing = \"last\" }]\n";
    let found = faults(&twice);
    assert_fault(&found, "/sorts/1/id", 33);
    assert_fault(&found, "/sorts/1/keys/0/filter_id", 36);

    let both = SKETCH.replace(
        "name = \"Python packages\"",
        "name = \"Python packages\"\n[[collections.filters]]\nid = \"downloads\"\ntitle = \"T\"\ndescription = \"D\"\ntype = \"string\"\noperators = [\"eq\"]\npath = \"/name\"",
    );
    assert_fault(&faults(&both), "/collections/0/filters/0/id", 18);

    let sort = SKETCH.replace("[search]", "[search]\ndefault_sort = \"newest\"");
    assert_fault(&faults(&sort), "/search/default_sort", 18);
    let path = SKETCH.replace("path = \"/attributes/downloads\"", "");
    assert_fault(&faults(&path), "/filters/0", 20);
}

#[test]
fn terse_members_are_those_that_a_terse_representation_can_have() {
    for (pointer, ok) in [
        ("/images", true),
        ("/images/0", true),
        ("/price", true),
        ("/attributes/a/b", true),
        ("/actions", false),
        ("/images/1", false),
        ("/price/amount", false),
        ("/stars", false),
        ("description", false),
        ("", false),
    ] {
        let toml = format!("{SERVICE}[search]\nterse = [\"{pointer}\"]\n");
        assert_eq!(parse(&toml).is_ok(), ok, "{pointer}");
    }
}

#[test]
fn schemas_are_draft_2020_12_and_resolve_only_each_other() {
    let schema = |text: &str| {
        format!(
            "{SERVICE}[schemas]\n\"/a.json\" = {{ inline = '''{text}''' }}\n\"https://x.example/b.json\" = {{ inline = '''{{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\", \"type\": \"string\"}}''' }}\n"
        )
    };
    let dialect = r#""$schema": "https://json-schema.org/draft/2020-12/schema""#;
    let manifest = parse(&schema(&format!(
        r#"{{{dialect}, "properties": {{"b": {{"$ref": "https://x.example/b.json"}}, "self": {{"$ref": "a.json"}}}}}}"#
    )))
    .unwrap();
    assert!(manifest.schemas().contains("https://x.example/b.json"));
    assert_eq!(manifest.schemas().served("https://x.example/b.json"), None);
    for bad in [
        r#"{"type": "object"}"#.to_owned(),
        r#"{"$schema": "http://json-schema.org/draft-07/schema#"}"#.to_owned(),
        format!(r#"{{{dialect}, "type": "thing"}}"#),
        format!(r#"{{{dialect}, "$ref": "https://elsewhere.example/s.json"}}"#),
        format!(r##"{{{dialect}, "$ref": "#/$defs/none"}}"##),
        format!("{{{dialect}, }}"),
        format!(r#"{{{dialect}, "a": 1, "a": 2}}"#),
    ] {
        let faults = faults(&schema(&bad));
        assert!(
            faults.iter().all(|(p, _)| p.starts_with("/schemas")),
            "{bad}: {faults:?}"
        );
    }
    let missing = faults(&format!(
        "{SERVICE}[schemas]\n\"/a.json\" = \"none.json\"\n"
    ));
    assert_fault(&missing, "/schemas/~1a.json", 6);
    let unknown = faults(&SKETCH.replace(
        "schema = \"/schemas/package.json\"",
        "schema = \"/schemas/other.json\"",
    ));
    assert_fault(&unknown, "/records/schema", 10);
}

#[test]
fn the_service_document_speaks_every_language_of_the_manifest() {
    let toml = format!(
        "{SERVICE}endpoint_base = \"/shop/\"\nkeywords = [\"a\"]\n[service.translations.de]\nname = \"Pakete\"\nkeywords = [\"b\"]\n"
    );
    let manifest = parse(&toml).unwrap();
    let operations = [
        Operation::ListOfferings,
        Operation::GetOffering,
        Operation::ListCollections,
    ];
    let german = LanguageTag::parse("de").unwrap();
    let document = manifest
        .service_document(&german, &operations)
        .unwrap()
        .to_value();
    let expected = serde_json::json!({
        "odp_version": "1.0",
        "name": "Pakete",
        "description": "Packages of two language registries.",
        "language": "de",
        "localizations": ["en", "de"],
        "keywords": ["b"],
        "http": {"endpoint_base": "/shop/"},
        "operations": [
            {"name": "list-offerings", "authentication": "not-required"},
            {"name": "get-offering", "authentication": "not-required"},
            {"name": "list-collections", "authentication": "not-required"}
        ]
    });
    assert_eq!(document, expected);
    assert_eq!(manifest.endpoint_base(), "/shop");
    let english = manifest
        .service_document(manifest.language(), &operations)
        .unwrap();
    assert_eq!(english.name().as_str(), "Registry packages");
}

#[test]
fn operations_stay_clear_of_the_servers_own_paths() {
    for base in ["/v1", "/v1/", "/v1/odp", "/.well-known", "/livez"] {
        let found = faults(&format!("{SERVICE}endpoint_base = \"{base}\"\n"));
        assert_fault(&found, "/service/endpoint_base", 5);
    }
    assert!(parse(&format!("{SERVICE}endpoint_base = \"/v10\"\n")).is_ok());
    // Clients resolve these before they ask, and would ask elsewhere.
    for base in ["/a/../v1", "/./odp", "/odp/..", "/odp/%2E%2e", "/.%2e/odp"] {
        let found = faults(&format!("{SERVICE}endpoint_base = \"{base}\"\n"));
        assert_fault(&found, "/service/endpoint_base", 5);
    }
    assert!(parse(&format!("{SERVICE}endpoint_base = \"/a..b/.c\"\n")).is_ok());
}

#[test]
fn a_schema_is_not_where_an_operation_is() {
    let with = |base: &str, path: &str| {
        format!(
            "{SERVICE}endpoint_base = \"{base}\"\n[schemas]\n\"{path}\" = {{ inline = '''{{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\"}}''' }}\n"
        )
    };
    for (base, path) in [
        ("/odp", "/odp/offerings"),
        ("/odp/", "/odp/collections/lamp.json"),
        ("/", "/offerings/search"),
        ("/odp", "/odp/filters"),
        ("/odp", "/odp/sorts"),
    ] {
        let found = faults(&with(base, path));
        let pointer = format!("/schemas/{}", path.replace('/', "~1"));
        assert_fault(&found, &pointer, 7);
        assert!(found[0].1.contains("operations are there"), "{found:?}");
    }
    for path in [
        "/odp/schemas/lamp.json",
        "/offerings",
        "/odp/offerings.json",
    ] {
        assert!(parse(&with("/odp", path)).is_ok(), "{path}");
    }
}

#[test]
fn a_missing_language_hides_no_other_fault() {
    let toml = "[service]\nname = \"N\"\ndescription = 7\n[service.translations.de]\nmotto = \"x\"\n[[collections]]\nid = \"a b\"\nname = \"N\"\n";
    let found = faults(toml);
    assert_fault(&found, "/service", 1);
    assert_fault(&found, "/service/description", 3);
    assert_fault(&found, "/service/translations/de/motto", 5);
    assert_fault(&found, "/collections/0/id", 7);
    let said = found
        .iter()
        .filter(|(_, reason)| reason.contains("language"));
    assert_eq!(said.count(), 1, "{found:?}");
}

#[test]
fn faults_of_the_service_stand_where_the_manifest_has_the_member() {
    let long = "x".repeat(129);
    let toml = format!(
        "{SERVICE}endpoint_base = \"odp\"\n[service.translations.de]\nname = \"{long}\"\n[service.translations.EN]\nname = \"n\"\n"
    );
    let found = faults(&toml);
    assert_fault(&found, "/service/endpoint_base", 5);
    assert_fault(&found, "/service/translations/de/name", 7);
    assert_fault(&found, "/service/translations/EN", 8);
    assert!(
        faults("")
            .iter()
            .any(|(_, reason)| reason.contains("service"))
    );
}

#[test]
fn the_empty_manifest_is_valid() {
    let manifest = Manifest::empty().unwrap();
    let operations = [Operation::ListOfferings, Operation::GetOffering];
    assert!(
        manifest
            .service_document(manifest.language(), &operations)
            .is_ok()
    );
    assert!(manifest.collections().is_empty());
}

/// Schemas `/0.json`, `/1.json` … where each refers to the schemas that `refers` names.
fn chain(count: usize, padding: usize, refers: impl Fn(usize) -> Vec<usize>) -> String {
    let mut toml = format!("{SERVICE}[schemas]\n");
    for at in 0..count {
        let all: Vec<String> = refers(at)
            .into_iter()
            .map(|to| format!("{{\"$ref\": \"{to}.json\"}}"))
            .collect();
        let all = if all.is_empty() {
            "{}".to_owned()
        } else {
            all.join(",")
        };
        let padding = "x".repeat(padding);
        toml += &format!(
            "\"/{at}.json\" = {{ inline = '''{{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\", \"$comment\": \"{padding}\", \"allOf\": [{all}]}}''' }}\n"
        );
    }
    toml
}

#[test]
fn a_schema_needs_no_more_than_an_agent_fetches() {
    let next = |count: usize| move |at: usize| if at + 1 < count { vec![at + 1] } else { vec![] };
    let star = |count: usize| {
        move |at: usize| {
            if at == 0 {
                (1..count).collect()
            } else {
                vec![]
            }
        }
    };
    // Eight references one after the other; sixteen documents; together just below a mebibyte.
    assert!(parse(&chain(9, 0, next(9))).is_ok());
    assert!(parse(&chain(16, 0, star(16))).is_ok());
    assert!(parse(&chain(4, 250_000, star(4))).is_ok());
    for (toml, words) in [
        (chain(10, 0, next(10)), "deeper than 8"),
        (chain(17, 0, star(17)), "more than 16 schemas"),
        (chain(5, 250_000, star(5)), "more than 1048576 bytes"),
    ] {
        let found = faults(&toml);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "/schemas/~10.json");
        assert!(found[0].1.contains(words), "{found:?}");
    }
}

#[test]
fn a_schema_is_served_where_nothing_else_is() {
    for path in [
        "/livez",
        "/v1/x.json",
        "/.well-known/odp",
        "/s.json?v=1",
        "/s.json#a",
    ] {
        let found = faults(&format!(
            "{SERVICE}[schemas]\n\"{path}\" = {{ inline = '''{{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\"}}''' }}\n"
        ));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].1.starts_with("Must be a path alone"), "{found:?}");
    }
}

#[test]
fn a_pattern_takes_a_part_of_a_column() {
    let toml = |major: &str| {
        let schema = r#"{"$schema": "https://json-schema.org/draft/2020-12/schema"}"#;
        format!(
            "{SERVICE}[records]\nid = \"id\"\nname = \"id\"\nschema = \"/x.json\"\n[records.attributes]\nmajor = {major}\n[schemas]\n\"/x.json\" = {{ inline = '{schema}' }}\n"
        )
    };
    let major = |manifest: &Manifest, version: serde_json::Value| {
        let row = json!({"id": "a", "v": version});
        let value = manifest.map_row(Input::Value(row)).unwrap();
        value.pointer("/attributes/major").cloned()
    };
    let number = parse(&toml(
        r#"{ column = "v", pattern = "^v?0*([0-9]+)", type = "integer" }"#,
    ))
    .unwrap();
    assert_eq!(major(&number, json!("v12.3.4")), Some(json!(12)));
    assert_eq!(major(&number, json!("0.1")), Some(json!(0)));
    assert_eq!(major(&number, json!("007")), Some(json!(7)));
    assert_eq!(major(&number, json!(3.5)), Some(json!(3)));
    assert_eq!(major(&number, json!("beta-1")), None);
    assert_eq!(major(&number, json!(null)), None);
    // Without a group, all that matches; of several values each by itself.
    let words = parse(&toml(
        r#"{ column = "v", split = ",", pattern = "[a-z]+" }"#,
    ))
    .unwrap();
    assert_eq!(
        major(&words, json!("1ab2, 3, cd")),
        Some(json!(["ab", "cd"]))
    );
    let found = faults(&toml(r#"{ column = "v", pattern = "(" }"#));
    assert_eq!(found[0].0, "/records/attributes/major/pattern");
    assert!(found[0].1.contains("unclosed group"), "{found:?}");
}
