use super::*;
use serde_json::json;

fn full(value: Value) -> Result<Offering, Invalid> {
    Offering::validate(value, Placement::TopLevel)
}

fn terse(value: Value) -> Result<TerseOffering, Invalid> {
    TerseOffering::validate(value, Placement::Embedded)
}

fn pointers<T: std::fmt::Debug>(result: Result<T, Invalid>) -> Vec<String> {
    let invalid = result.unwrap_err();
    invalid
        .into_violations()
        .into_iter()
        .map(|v| v.pointer)
        .collect()
}

fn everything() -> Value {
    json!({
        "odp_version": "1.0",
        "id": "a100-80gb.us~west_2",
        "name": "Dedicated accelerator",
        "description": "Rented in one-minute increments.",
        "images": [{"src": "/a.png", "alt": "A rack", "height": 900, "width": 1200, "type": "image/png"}, {"src": "https://cdn.example/b.avif"}],
        "language": "en",
        "localizations": ["ja", "en"],
        "web_url": "/gpu/a100",
        "auth_expands": true,
        "collection_ids": ["gpus", "GPUS"],
        "price": {"type": "metered", "amount": "2.40", "currency": "USD", "unit": "gpu-hour", "note": "per device"},
        "schema": {"url": "https://compute.example/schemas/gpu-rental-1.json"},
        "attributes": {"z": 1, "a": {"y": null, "b": [1, "two", 3.50]}, "m": 12345},
        "actions": [{"authentication": "required", "id": "request-quote", "rel": "quote", "openapi": {"operation_id": "q"}}],
        "vendor_note": {"second": 2, "first": 1}
    })
}

#[test]
fn an_offering_comes_back_as_it_went_in() {
    let value = everything();
    let offering = full(value.clone()).unwrap();
    let back = offering.to_value(Placement::TopLevel);
    assert_eq!(back, value);
    assert_eq!(offering.extra().len(), 1);
    // Member order inside the Service's own data, and number texts, survive too.
    for member in ["attributes", "vendor_note"] {
        assert_eq!(back[member].to_string(), value[member].to_string());
    }
    assert_eq!(
        back.as_object().unwrap().keys().next().unwrap(),
        "odp_version"
    );
    assert_eq!(
        Offering::validate(offering.to_value(Placement::Embedded), Placement::Embedded).unwrap(),
        offering
    );
}

#[test]
fn number_texts_survive() {
    let text = r#"{"odp_version":"1.0","id":"a","name":"A","schema":{"url":"/s"},"attributes":{"depth":1.50,"big":1e+400,"zero":-0.0}}"#;
    let offering = full(serde_json::from_str(text).unwrap()).unwrap();
    assert_eq!(offering.into_value(Placement::TopLevel).to_string(), text);
}

#[test]
fn a_minimal_offering_is_valid() {
    let offering =
        full(json!({"odp_version": "1.0", "id": "handbook", "name": "Agent handbook"})).unwrap();
    assert_eq!(offering.id().as_str(), "handbook");
    assert!(
        offering.price().is_none() && offering.actions().is_empty() && offering.images().is_empty()
    );
    assert!(terse(json!({"id": "quote-only", "name": "Quote-only service"})).is_ok());
}

#[test]
fn the_version_stands_on_documents_only() {
    let item = json!({"id": "a", "name": "A"});
    let document = json!({"odp_version": "1.0", "id": "a", "name": "A"});
    assert_eq!(pointers(full(item.clone())), [""]);
    assert_eq!(pointers(terse(document.clone())), ["/odp_version"]);
    assert_eq!(
        pointers(Offering::validate(document.clone(), Placement::Embedded)),
        ["/odp_version"]
    );
    assert!(TerseOffering::validate(document, Placement::TopLevel).is_ok());
    for version in ["1.7", "2.0", "01.0", "1"] {
        let document = json!({"odp_version": version, "id": "a", "name": "A"});
        assert_eq!(pointers(full(document)), ["/odp_version"]);
    }
}

#[test]
fn attributes_and_schema_belong_together() {
    let base = |extra: Value| {
        let mut value = json!({"id": "a", "name": "A"});
        value
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        value
    };
    let schema = json!({"url": "/s.json"});
    let embedded = |value| Offering::validate(value, Placement::Embedded);
    assert_eq!(
        pointers(embedded(base(json!({"attributes": {"model": "A100"}})))),
        [""]
    );
    assert_eq!(
        pointers(terse(base(json!({"attributes": {"model": "A100"}})))),
        [""]
    );
    assert_eq!(
        pointers(embedded(base(json!({"schema": schema})))),
        ["/schema"]
    );
    assert!(terse(base(json!({"schema": schema}))).is_ok());
    assert!(
        embedded(base(
            json!({"schema": schema, "attributes": {"model": "A100"}})
        ))
        .is_ok()
    );
    assert_eq!(
        pointers(embedded(base(
            json!({"schema": {"url": "/s.json", "version": 1}, "attributes": {"a": 1}})
        ))),
        ["/schema/version"]
    );
}

#[test]
fn empty_values_are_omitted() {
    let value = json!({"odp_version": "1.0", "id": "empty", "name": "Empty fields", "schema": {"url": "/s"},
        "collection_ids": [], "attributes": {}, "actions": [], "images": [], "localizations": [], "description": ""});
    assert_eq!(
        pointers(full(value)),
        [
            "/collection_ids",
            "/attributes",
            "/actions",
            "/images",
            "/localizations",
            "/description"
        ]
    );
}

#[test]
fn some_members_belong_to_one_representation() {
    let value =
        json!({"odp_version": "1.0", "id": "a", "name": "A", "detail_fields": ["/attributes"]});
    assert_eq!(pointers(full(value)), ["/detail_fields"]);
    let value = json!({"id": "download", "name": "Download", "actions": [{"rel": "download"}]});
    assert_eq!(pointers(terse(value)), ["/actions"]);
}

#[test]
fn detail_fields_point_at_what_is_absent() {
    let value = |fields: Value| json!({"id": "gpu-1", "name": "GPU", "schema": {"url": "/s"}, "attributes": {"region": "us-west", "a/b": 1}, "detail_fields": fields});
    let good = value(json!([
        "/actions",
        "/attributes/cpu",
        "/attributes/storage"
    ]));
    assert_eq!(
        terse(good.clone()).unwrap().into_value(Placement::Embedded),
        good
    );
    assert_eq!(
        pointers(terse(value(json!([
            "/name",
            "/attributes/cpu",
            "/attributes/a~1b",
            "/odp_version"
        ])))),
        ["/detail_fields/0", "/detail_fields/2", "/detail_fields/3"]
    );
    assert_eq!(pointers(terse(value(json!([])))), ["/detail_fields"]);
    assert_eq!(
        pointers(terse(value(json!(["#/actions"])))),
        ["/detail_fields/0"]
    );
}

#[test]
fn languages_agree() {
    let value = |language: &str, localizations: Value| json!({"odp_version": "1.0", "id": "a", "name": "A", "language": language, "localizations": localizations});
    assert!(full(value("en", json!(["ja", "EN"]))).is_ok());
    assert!(full(value("ja", json!(["en"]))).is_err());
    assert!(full(value("en", json!(["en", "EN"]))).is_err());
    assert!(full(json!({"odp_version": "1.0", "id": "a", "name": "A", "language": "ja"})).is_ok());
}

#[test]
fn every_fault_is_found_in_one_pass() {
    let value = json!({
        "odp_version": "1.1", "id": "a b", "name": "", "web_url": "//x", "auth_expands": false,
        "images": [{"src": "/i.png"}, {"src": "/i.png"}], "collection_ids": ["a", "b", "a"],
        "price": {"type": "fixed", "amount": 1450, "currency": "USD"},
        "actions": [{"id": "x", "rel": "download", "http": {"href": "/file", "method": "GET"}}]
    });
    assert_eq!(
        pointers(full(value)),
        [
            "/odp_version",
            "/id",
            "/name",
            "/web_url",
            "/auth_expands",
            "/images/1/src",
            "/collection_ids/2",
            "/price/amount",
            "/actions/0"
        ]
    );
    assert_eq!(pointers(full(json!({"odp_version": "1.0"}))), ["", ""]);
    assert_eq!(pointers(full(json!([]))), [""]);
}

#[test]
fn texts_are_bounded_in_code_points() {
    let value = |name: String, description: String| json!({"id": "a", "name": name, "description": description});
    assert!(terse(value("é".repeat(128), "é".repeat(1024))).is_ok());
    assert_eq!(
        pointers(terse(value("é".repeat(129), "é".repeat(1025)))),
        ["/name", "/description"]
    );
}

#[test]
fn many_memberships_cost_linear_time() {
    let ids: Vec<String> = (0..100_000).map(|i| format!("c{i}")).collect();
    let value = json!({"id": "a", "name": "A", "collection_ids": ids});
    assert_eq!(terse(value).unwrap().collection_ids().len(), 100_000);
}

#[test]
fn representations_have_names() {
    for representation in [Representation::Terse, Representation::Full] {
        assert_eq!(
            Representation::from_name(representation.as_str()),
            Some(representation)
        );
    }
    assert_eq!(Representation::from_name("summary"), None);
}
