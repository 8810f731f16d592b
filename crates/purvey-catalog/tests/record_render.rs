//! Records: what is refused, what is stored, what is rendered.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use purvey_catalog::manifest::Manifest;
use purvey_catalog::record::Record;
use purvey_catalog::render::render;
use purvey_odp::identity::ResourceType::{Collection, Offering};
use purvey_odp::language::LanguageTag;
use serde_json::{Value, json};

fn manifest() -> Manifest {
    let toml = r#"
[service]
name = "S"
description = "D"
language = "en"
[schemas]
"/s.json" = { inline = '''{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "properties": {
    "colour": { "type": "string" },
    "size": { "type": "integer" },
    "word": { "pattern": "^(a+)+$" },
    "day": { "format": "date" }
  },
  "required": ["colour"],
  "additionalProperties": { "type": ["object", "string", "array"] }
}''' }
[search]
terse = ["/description", "/images/0", "/attributes/colour", "/attributes/deep/a"]
"#;
    Manifest::parse_embedded(toml, &[]).unwrap()
}

fn faults(value: Value) -> Vec<String> {
    match Record::validate(value, Offering, &manifest()) {
        Ok(record) => panic!("must be refused: {record:?}"),
        Err(invalid) => invalid
            .into_violations()
            .into_iter()
            .map(|v| v.pointer)
            .collect(),
    }
}

fn lamp() -> Value {
    json!({
        "id": "lamp", "name": "Lamp", "description": "Glows.",
        "images": [{"src": "/1.png"}, {"src": "/2.png"}],
        "collection_ids": ["light"],
        "schema": {"url": "/s.json"},
        "attributes": {"colour": "red", "size": 3, "deep": {"a": [1, {"x": 2}], "b": 1}},
        "actions": [{"id": "buy", "rel": "purchase", "authentication": "not-required", "http": {"href": "/buy", "method": "POST"}}],
        "translations": {"de": {"name": "Lampe", "attributes": {"colour": "rot"}}}
    })
}

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn wire_members_come_back_and_the_version_is_not_stored() {
    let mut value = lamp();
    value["odp_version"] = json!("1.0");
    let record = Record::validate(value, Offering, &manifest()).unwrap();
    assert_eq!(record.to_stored(), lamp());
    assert_eq!(parsed(&record.to_stored_bytes()), lamp());
    assert_eq!(Record::from_stored(lamp(), Offering).unwrap(), record);
    assert_eq!(record.id(), "lamp");
    assert_eq!(record.collection_ids().collect::<Vec<_>>(), ["light"]);
    let mut other = lamp();
    other["odp_version"] = json!("1.7");
    assert_eq!(faults(other), ["/odp_version"]);
}

#[test]
fn rendering_gives_every_language_and_representation() {
    let manifest = manifest();
    let record = Record::validate(lamp(), Offering, &manifest).unwrap();
    let rendered = render(&record, &manifest);
    let mut full = lamp();
    full.as_object_mut().unwrap().shift_remove("translations");
    full["language"] = json!("en");
    full["localizations"] = json!(["en", "de"]);
    assert_eq!(parsed(&rendered.full), full);
    assert_eq!(
        parsed(&rendered.terse),
        json!({
            "id": "lamp", "name": "Lamp", "description": "Glows.",
            "images": [{"src": "/1.png"}],
            "language": "en", "localizations": ["en", "de"],
            "schema": {"url": "/s.json"},
            "attributes": {"colour": "red", "deep": {"a": [1, {"x": 2}]}},
            "detail_fields": ["/collection_ids", "/attributes/size", "/attributes/deep/b", "/actions"]
        })
    );
    assert!(rendered.has_language);
    assert_eq!(rendered.collections, ["light"]);
    let [(language, terse, german)] = rendered.variants.as_slice() else {
        panic!("one translation");
    };
    assert_eq!(*language, LanguageTag::parse("de").unwrap());
    full["name"] = json!("Lampe");
    full["language"] = json!("de");
    full["attributes"]["colour"] = json!("rot");
    assert_eq!(parsed(german), full);
    assert_eq!(parsed(terse)["attributes"]["colour"], "rot");
}

#[test]
fn a_record_of_one_language_renders_as_it_is() {
    let manifest = manifest();
    let text = r#"{"id":"a","name":"A","x-more":1.50}"#;
    let record =
        Record::validate(serde_json::from_str(text).unwrap(), Offering, &manifest).unwrap();
    let rendered = render(&record, &manifest);
    assert_eq!(String::from_utf8(rendered.full).unwrap(), text);
    assert_eq!(
        String::from_utf8(rendered.terse).unwrap(),
        r#"{"id":"a","name":"A","detail_fields":["/x-more"]}"#
    );
    assert!(!rendered.has_language);
    assert!(rendered.variants.is_empty());
}

#[test]
fn attributes_fit_their_schema_in_every_language() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut value = lamp();
        change(&mut value);
        faults(value)
    };
    assert_eq!(
        with(&|v| v["attributes"]["size"] = json!("3")),
        ["/attributes/size", "/translations/de/attributes/size"]
    );
    assert_eq!(
        with(&|v| v["translations"]["de"]["attributes"] = json!({"colour": null})),
        ["/translations/de/attributes"]
    );
    assert_eq!(
        with(&|v| v["translations"]["de"]["attributes"] = json!({"size": "3"})),
        ["/translations/de/attributes/size"]
    );
    assert_eq!(
        with(&|v| v["schema"]["url"] = json!("/other.json")),
        ["/attributes", "/translations/de/attributes"]
    );
    // A text on which the pattern would take exponential time counts as a mismatch.
    let text = "a".repeat(40) + "!";
    assert_eq!(
        with(&|v| v["attributes"]["word"] = json!(text)),
        ["/attributes/word", "/translations/de/attributes/word"]
    );
}

#[test]
fn translations_are_checked() {
    let with = |translations: Value| {
        let mut value = lamp();
        value["translations"] = translations;
        faults(value)
    };
    assert_eq!(with(json!({"en": {"name": "x"}})), ["/translations/en"]);
    assert_eq!(
        with(json!({"de": {"name": "x"}, "DE": {"name": "y"}})),
        ["/translations/DE"]
    );
    assert_eq!(
        with(json!({"not a tag": {"name": "x"}})),
        ["/translations/not a tag"]
    );
    assert_eq!(with(json!({"de": {}})), ["/translations/de"]);
    assert_eq!(
        with(json!({"de": {"name": "x".repeat(129)}})),
        ["/translations/de/name"]
    );
    assert_eq!(
        with(json!({"de": {"web_url": "/de"}})),
        ["/translations/de/web_url"]
    );
    let many: serde_json::Map<String, Value> = (b'a'..=b'p')
        .map(|c| (format!("x-{}", char::from(c)), json!({"name": "x"})))
        .collect();
    assert_eq!(many.len(), 16);
    assert_eq!(with(many.into()), ["/translations"]);
}

#[test]
fn localizations_tell_the_truth() {
    let base = json!({"id": "a", "name": "A", "language": "de", "localizations": ["de"]});
    assert!(Record::validate(base.clone(), Offering, &manifest()).is_ok());
    let mut more = base.clone();
    more["localizations"] = json!(["de", "fr"]);
    assert_eq!(faults(more), ["/localizations"]);
    let mut own = base;
    own["translations"] = json!({"en": {"name": "B"}});
    own["localizations"] = json!(["en", "de"]);
    let record = Record::validate(own, Offering, &manifest()).unwrap();
    let rendered = render(&record, &manifest());
    assert_eq!(parsed(&rendered.full)["language"], "de");
    assert_eq!(parsed(&rendered.variants[0].2)["language"], "en");
}

#[test]
fn a_page_must_hold_the_full_form_in_every_language() {
    // 524,288 less the envelope around one item: 42 bytes of page, 2,048 of next, 13 and 35 of language.
    let most = 524_288 - (42 + 2_048 + 14 + 35);
    let head = json!({"id": "a", "name": "A", "x": ""}).to_string().len();
    let value = |bytes: usize| json!({"id": "a", "name": "A", "x": "x".repeat(bytes - head)});
    let limit = (most - 8..=most + 8)
        .find(|&bytes| Record::validate(value(bytes), Offering, &manifest()).is_err())
        .expect("the limit is where it was worked out to be");
    assert_eq!(faults(value(limit)), [""]);
    // The same record with a long translation is too large, without it is not.
    let mut translated = value(limit - 2_000);
    assert!(Record::validate(translated.clone(), Offering, &manifest()).is_ok());
    translated["translations"] = json!({"de": {"description": "ü".repeat(1_000)}});
    assert_eq!(faults(translated), [""]);
}

#[test]
fn depth_leaves_room_for_the_page() {
    let nested = |depth: usize| {
        let mut value = json!({});
        for _ in 3..depth {
            value = json!({ "a": value });
        }
        json!({"id": "a", "name": "A", "schema": {"url": "/s.json"}, "attributes": {"colour": "red", "deep": value}})
    };
    assert!(Record::validate(nested(14), Offering, &manifest()).is_ok());
    assert_eq!(faults(nested(15)), [""]);
}

#[test]
fn collections_have_translations_but_no_capabilities_of_their_own() {
    let manifest = manifest();
    let value =
        json!({"id": "c", "name": "C", "parent_ids": ["p"], "translations": {"de": {"name": "K"}}});
    let record = Record::validate(value, Collection, &manifest).unwrap();
    assert_eq!(record.collection_ids().collect::<Vec<_>>(), ["p"]);
    let rendered = render(&record, &manifest);
    assert_eq!(rendered.collections, ["p"]);
    assert_eq!(parsed(&rendered.variants[0].1)["name"], "K");
    let value = json!({"id": "c", "name": "C", "search_capabilities": {"filters": {"inline": []}}});
    let invalid = Record::validate(value, Collection, &manifest).unwrap_err();
    assert_eq!(invalid.violations()[0].pointer, "/search_capabilities");
}
