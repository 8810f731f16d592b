use super::*;
use crate::offering::{Offering, Placement};
use serde_json::json;

fn pointers(dropped: &[Dropped]) -> Vec<&str> {
    dropped.iter().map(|d| d.pointer.as_str()).collect()
}

fn definition(id: &str, kind: &str, operators: &[&str]) -> Value {
    json!({"id": id, "title": id, "description": id, "type": kind, "operators": operators})
}

fn sort(id: &str, direction: &str, missing: &str) -> Value {
    json!({"id": id, "title": id, "description": id, "keys": [{"filter_id": "name", "direction": direction, "missing": missing}]})
}

#[test]
fn a_service_loses_only_what_is_unknown() {
    let mut value = json!({
        "name": "Example",
        "operations": [
            {"authentication": "not-required", "name": "list-offerings"},
            {"authentication": "not-required", "name": "future-operation"},
            {"authentication": "not-required", "name": "get-offering"},
            {"authentication": "not-required", "name": "search-offerings"},
            {"authentication": "not-required", "name": "search-collections", "future": true},
            {"authentication": "future-authentication", "name": "list-collections"}
        ],
        "mcp": [
            {"type": "streamable-http", "url": "/mcp"}, {"type": "future-transport", "url": "/future"},
            {"type": "streamable-http", "url": "/future-member", "future": true}
        ],
        "branding": {"icon": {"src": "/icon.png"}, "logo": {"src": "/logo.png", "type": "image/png", "future": true}, "future": {}},
        "protocols": {"payments": [
            {"authentication": "not-required", "name": "mpp", "options": ["inflow", "future-rail"]},
            {"authentication": "future-authentication", "name": "x402"}
        ]},
        "search_capabilities": {"filters": {"inline": [definition("color", "string", &["eq"]), definition("future", "future-type", &["eq"])]}},
        "unknown_member": {"stays": true}
    });
    let dropped = service_document(&mut value);
    assert_eq!(
        value,
        json!({
            "name": "Example",
            "operations": [
                {"authentication": "not-required", "name": "list-offerings"},
                {"authentication": "not-required", "name": "get-offering"},
                {"authentication": "not-required", "name": "search-offerings"}
            ],
            "mcp": [{"type": "streamable-http", "url": "/mcp"}],
            "branding": {"icon": {"src": "/icon.png"}, "logo": {"src": "/logo.png", "type": "image/png"}},
            "protocols": {"payments": [{"authentication": "not-required", "name": "mpp", "options": ["inflow"]}]},
            "search_capabilities": {"filters": {"inline": [definition("color", "string", &["eq"])]}},
            "unknown_member": {"stays": true}
        })
    );
    assert_eq!(
        pointers(&dropped),
        [
            "/operations/1",
            "/operations/4",
            "/operations/5",
            "/mcp/1",
            "/mcp/2",
            "/branding/future",
            "/branding/logo/future",
            "/protocols/payments/0/options/1",
            "/protocols/payments/1",
            "/search_capabilities/filters/inline/1"
        ]
    );
    assert_eq!(
        dropped[1].value,
        json!({"authentication": "not-required", "name": "search-collections", "future": true})
    );
}

#[test]
fn emptied_lists_are_absent() {
    let mut value = json!({
        "mcp": [{"type": "future", "url": "/x"}],
        "protocols": {"enrollment": [{"name": "f"}], "payments": [{"authentication": "not-required", "name": "f"}], "trust": [{"name": "f"}]},
        "branding": {"icon": {"src": "/i", "type": "image/future"}, "logo": {"src": "/l"}}
    });
    assert_eq!(service_document(&mut value).len(), 5);
    assert_eq!(value, json!({}));
    let mut value = json!({"protocols": {"payments": [{"authentication": "not-required", "name": "mpp", "options": ["future"]}]}});
    service_document(&mut value);
    assert_eq!(
        value,
        json!({"protocols": {"payments": [{"authentication": "not-required", "name": "mpp"}]}})
    );
}

#[test]
fn known_protocols_stay_beside_unknown_ones() {
    let mut value = json!({"protocols": {
        "enrollment": [{"name": "future"}, {"name": "aep"}], "trust": [{"name": "tap"}, {"name": "future"}], "future": []
    }});
    service_document(&mut value);
    assert_eq!(
        value,
        json!({"protocols": {"enrollment": [{"name": "aep"}], "trust": [{"name": "tap"}]}})
    );
}

#[test]
fn what_is_malformed_stays_for_validation() {
    let mut value = json!({
        "operations": [{"name": 3, "authentication": "required"}, "x", {"name": "get-offering"}, {"name": "list-offerings", "authentication": null}],
        "mcp": [], "protocols": {"payments": []}, "branding": 1, "search_capabilities": []
    });
    let before = value.clone();
    assert!(service_document(&mut value).is_empty());
    assert_eq!(value, before);
    assert!(service_document(&mut json!("x")).is_empty());
}

#[test]
fn capabilities_go_with_their_search() {
    let mut value = json!({
        "operations": [{"authentication": "future", "name": "search-offerings"}, {"authentication": "required", "name": "get-offering"}],
        "search_capabilities": {"filters": {"linked": {"href": "/odp/filters"}}}
    });
    assert_eq!(
        pointers(&service_document(&mut value)),
        ["/operations/0", "/search_capabilities"]
    );
    assert_eq!(
        value,
        json!({"operations": [{"authentication": "required", "name": "get-offering"}]})
    );
    // Never advertised: an invalid document, not an unknown one.
    let mut value = json!({"operations": [], "search_capabilities": {"filters": {"linked": {"href": "/odp/filters"}}}});
    assert!(service_document(&mut value).is_empty());
}

#[test]
fn an_offering_loses_only_what_is_unknown() {
    let mut value = json!({
        "odp_version": "1.0", "id": "plant", "name": "Plant",
        "images": [{"src": "/plant.png", "type": "image/png", "future": true}, {"src": "/plant.future", "type": "image/future"}],
        "price": {"type": "future-price", "estimate": "1"},
        "schema": {"url": "/schema", "future": true},
        "attributes": {"height": 3},
        "actions": [
            {"authentication": "future-authentication", "http": {"href": "/f", "method": "POST"}, "id": "future-authentication", "rel": "invoke"},
            {"authentication": "not-required", "http": {"href": "/buy", "method": "POST"}, "id": "buy", "rel": "future-relation"},
            {"authentication": "not-required", "http": {"href": "/future", "method": "PATCH"}, "id": "future", "rel": "invoke"},
            {"authentication": "not-required", "http": {"href": "/m", "method": "POST", "future": true}, "id": "future-member", "rel": "invoke"}
        ]
    });
    let dropped = offering(&mut value, Representation::Full);
    assert_eq!(
        value,
        json!({
            "odp_version": "1.0", "id": "plant", "name": "Plant", "images": [{"src": "/plant.png", "type": "image/png"}],
            "actions": [{"authentication": "not-required", "http": {"href": "/buy", "method": "POST"}, "id": "buy", "rel": "future-relation"}]
        })
    );
    assert_eq!(
        pointers(&dropped),
        [
            "/images/0/future",
            "/images/1",
            "/price",
            "/schema",
            "/attributes",
            "/actions/0",
            "/actions/2",
            "/actions/3"
        ]
    );
    assert!(Offering::validate(value, Placement::TopLevel).is_ok());
}

#[test]
fn a_broken_action_hurts_only_itself() {
    let action = |id: &str, authentication: &str| json!({"id": id, "rel": "quote", "authentication": authentication, "http": {"href": "/q", "method": "GET"}});
    let mut value = json!({"actions": [
        {"id": "missing-authentication", "rel": "download", "http": {"href": "/file", "method": "GET"}},
        action("good", "optional"),
        {"id": "ambiguous", "rel": "quote", "authentication": "required", "http": {"href": "/q", "method": "GET"}, "openapi": {"operation_id": "q"}},
        action("same", "required"), action("same", "required"),
        action("twin", "required"), action("twin", "future"),
        7
    ]});
    let dropped = offering(&mut value, Representation::Full);
    assert_eq!(value, json!({"actions": [action("good", "optional")]}));
    assert_eq!(
        pointers(&dropped),
        [
            "/actions/0",
            "/actions/2",
            "/actions/3",
            "/actions/4",
            "/actions/5",
            "/actions/6",
            "/actions/7"
        ]
    );
    let mut value = json!({"actions": [{"id": "x"}]});
    offering(&mut value, Representation::Full);
    assert_eq!(value, json!({}));
}

#[test]
fn a_schema_serves_attributes_and_a_terse_one_may_stand_alone() {
    let alone = json!({"id": "a", "name": "A", "schema": {"url": "/s"}});
    let mut value = alone.clone();
    assert_eq!(
        pointers(&offering(&mut value, Representation::Full)),
        ["/schema"]
    );
    let mut value = alone.clone();
    assert!(offering(&mut value, Representation::Terse).is_empty());
    assert_eq!(value, alone);
}

#[test]
fn pages_keep_their_items() {
    let mut value = json!({"items": [definition("a", "string", &["eq"]), definition("b", "string", &["eq", "like"])]});
    assert_eq!(pointers(&filter_page(&mut value)), ["/items/1"]);
    assert_eq!(
        value,
        json!({"items": [definition("a", "string", &["eq"])]})
    );
    let mut unit = definition("c", "number", &["lt"]);
    unit["unit"] = json!({"system": "imperial", "code": "ft"});
    let mut value = json!({"items": [unit]});
    assert_eq!(filter_page(&mut value).len(), 1);
    assert_eq!(value, json!({"items": []}));
    let mut value = json!({"items": [sort("a", "ascending", "last"), sort("b", "random", "last"), sort("c", "descending", "middle")]});
    assert_eq!(pointers(&sort_page(&mut value)), ["/items/1", "/items/2"]);
    let mut value = json!({"items": [{"id": "a", "images": [{"src": "/x", "type": "image/new"}]}, {"id": "b", "price": {"type": "new"}}]});
    assert_eq!(
        pointers(&offering_page(&mut value, Representation::Terse)),
        ["/items/0/images/0", "/items/1/price"]
    );
    assert_eq!(value, json!({"items": [{"id": "a"}, {"id": "b"}]}));
    let mut value = json!({"items": [{"id": "a", "images": [{"src": "/x", "future": 1}]}]});
    assert_eq!(
        pointers(&collection_page(&mut value)),
        ["/items/0/images/0/future"]
    );
}

#[test]
fn a_capability_source_is_whole_or_gone() {
    let mut value = json!({"search_capabilities": {
        "filters": {"inline": [definition("a", "string", &["eq"]), definition("a", "string", &["in"])]},
        "sorts": {"inline": [sort("s", "ascending", "last"), sort("t", "sideways", "last")]}
    }});
    assert_eq!(
        pointers(&collection(&mut value)),
        [
            "/search_capabilities/filters",
            "/search_capabilities/sorts/inline/1"
        ]
    );
    assert_eq!(
        value,
        json!({"search_capabilities": {"sorts": {"inline": [sort("s", "ascending", "last")]}}})
    );
    let mut value =
        json!({"search_capabilities": {"sorts": {"inline": [sort("t", "sideways", "last")]}}});
    collection(&mut value);
    assert_eq!(value, json!({}));
}

#[test]
fn unknown_definitions_go_before_they_are_counted() {
    let mut definitions: Vec<Value> = (0..32)
        .map(|i| definition(&format!("f{i}"), "string", &["eq"]))
        .collect();
    definitions.push(definition("f0", "future", &["eq"]));
    let mut value = json!({"search_capabilities": {"filters": {"inline": definitions}}});
    assert_eq!(
        pointers(&collection(&mut value)),
        ["/search_capabilities/filters/inline/32"]
    );
}

#[test]
fn a_problem_loses_parameters_at_unknown_places() {
    let known = json!({"in": "query", "name": "limit", "reason": "invalid"});
    let unknown = json!({"in": "future-location", "name": "future", "reason": "invalid"});
    let mut value = json!({"code": "INVALID_REQUEST", "invalid_params": [known, unknown]});
    assert_eq!(pointers(&problem(&mut value)), ["/invalid_params/1"]);
    assert_eq!(
        value,
        json!({"code": "INVALID_REQUEST", "invalid_params": [known]})
    );
    let mut value = json!({"code": "INVALID_REQUEST", "invalid_params": [unknown]});
    problem(&mut value);
    assert_eq!(value, json!({"code": "INVALID_REQUEST"}));
}
