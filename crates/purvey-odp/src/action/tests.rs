use super::*;
use serde_json::json;

fn check(value: Value) -> Result<Vec<Action>, Invalid> {
    let mut report = Report::new();
    let actions = Action::read_list(&mut report, &Place::ROOT, value);
    report.finish(actions)
}

fn pointers(value: Value) -> Vec<String> {
    let invalid = check(value).unwrap_err();
    invalid
        .into_violations()
        .into_iter()
        .map(|v| v.pointer)
        .collect()
}

#[test]
fn every_form_comes_back_as_it_went_in() {
    let value = json!([
        {"id": "download-file", "rel": "download", "authentication": "not-required", "description": "The PDF.",
         "http": {"href": "/files/item.pdf", "method": "GET", "response_content_types": ["application/pdf", "text/plain;charset=utf-8"]}},
        {"id": "buy", "rel": "purchase", "authentication": "required", "openapi": {"url": "/openapi.json", "operation_id": "purchaseItem"}},
        {"id": "terms", "rel": "quote", "authentication": "optional", "openapi": {"operation_id": "terms"}},
        {"id": "hold", "rel": "reserve", "authentication": "required", "http": {"href": "/holds", "method": "POST",
         "request": {"content_type": "application/json", "schema": {"url": "https://a.example/s.json"}}}},
        {"id": "type-only", "rel": "invoke", "authentication": "required",
         "http": {"href": "/run", "method": "POST", "request": {"content_type": "application/json"}}},
        {"id": "schema-only", "rel": "future-operation", "authentication": "required",
         "http": {"href": "/run", "method": "POST", "request": {"schema": {"url": "/s.json"}}}}
    ]);
    let actions = check(value.clone()).unwrap();
    assert_eq!(
        Value::Array(actions.iter().map(Action::to_value).collect()),
        value
    );
    let core: Vec<_> = actions.iter().map(|a| a.rel.core()).collect();
    assert_eq!(
        core,
        [
            Some(CoreRelation::Download),
            Some(CoreRelation::Purchase),
            Some(CoreRelation::Quote),
            Some(CoreRelation::Reserve),
            Some(CoreRelation::Invoke),
            None
        ]
    );
}

#[test]
fn a_target_is_one_of_two() {
    let http = json!({"href": "/quotes", "method": "POST"});
    assert_eq!(
        pointers(
            json!([{"id": "a", "rel": "quote", "authentication": "required", "http": http, "openapi": {"operation_id": "q"}}])
        ),
        ["/0"]
    );
    assert_eq!(
        pointers(json!([{"id": "a", "rel": "quote", "authentication": "required"}])),
        ["/0"]
    );
}

#[test]
fn identifiers_are_unique() {
    let action = json!({"id": "same", "rel": "quote", "authentication": "required", "http": {"href": "/q", "method": "GET"}});
    assert_eq!(pointers(json!([action, action])), ["/1/id"]);
}

#[test]
fn counts_are_bounded() {
    let action = |i: usize| json!({"id": format!("a{i}"), "rel": "quote", "authentication": "required", "http": {"href": "/q", "method": "GET"}});
    assert!(check((0..16).map(action).collect()).is_ok());
    assert_eq!(pointers((0..17).map(action).collect()), [""]);
    assert_eq!(pointers(json!([])), [""]);
    let types: Vec<String> = (0..9).map(|i| format!("text/x{i}")).collect();
    assert_eq!(
        pointers(
            json!([{"id": "a", "rel": "quote", "authentication": "required",
            "http": {"href": "/q", "method": "GET", "response_content_types": types}}])
        ),
        ["/0/http/response_content_types"]
    );
}

#[test]
fn every_fault_is_noted_in_one_pass() {
    assert_eq!(
        pointers(
            json!([{"id": "..", "rel": "Buy", "description": "", "future": 1,
            "http": {"href": "relative", "method": "DELETE", "request": {}, "response_content_types": ["text/a", "text/a"]}}])
        ),
        [
            "/0",
            "/0/id",
            "/0/rel",
            "/0/description",
            "/0/http/href",
            "/0/http/method",
            "/0/http/request",
            "/0/http/response_content_types/1",
            "/0/future"
        ]
    );
}

#[test]
fn a_relation_is_a_lower_case_token() {
    for text in ["a", "download", "a1-b2", &"a".repeat(64)] {
        assert_eq!(Relation::parse(text).unwrap().as_str(), text);
    }
    for text in [
        "",
        "1a",
        "-a",
        "a-",
        "a--b",
        "A",
        "a_b",
        "é",
        &"a".repeat(65),
    ] {
        assert!(Relation::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_content_type_is_a_media_type() {
    for text in ["application/json", "text/plain; charset=utf-8"] {
        assert!(ContentType::parse(text).is_ok(), "{text}");
    }
    for text in [
        "",
        "json",
        "text/",
        "image/*",
        " text/plain",
        "text/plain charset",
        &format!("text/{}", "a".repeat(251)),
    ] {
        assert!(ContentType::parse(text).is_err(), "{text}");
    }
    assert!(ContentTypes::new(vec![ContentType::parse("a/b").unwrap(); 2]).is_err());
}
