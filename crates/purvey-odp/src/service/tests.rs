use super::*;
use serde_json::json;

fn pointers(value: Value) -> Vec<String> {
    let invalid = ServiceDocument::validate(value).unwrap_err();
    invalid
        .into_violations()
        .into_iter()
        .map(|v| v.pointer)
        .collect()
}

fn minimal() -> Value {
    json!({
        "odp_version": "1.0", "name": "Example", "description": "An example Service.", "language": "en",
        "localizations": ["en"],
        "operations": [
            {"authentication": "not-required", "name": "list-offerings"},
            {"authentication": "not-required", "name": "get-offering"}
        ],
        "http": {"endpoint_base": "/odp/"}
    })
}

/// The minimal document with `member` set to `value`; `null` takes it out.
fn with(member: &str, value: Value) -> Value {
    let mut document = minimal();
    let map = document.as_object_mut().unwrap();
    if value.is_null() {
        map.shift_remove(member);
    } else {
        map.insert(member.into(), value);
    }
    document
}

#[test]
fn a_whole_document_comes_back_as_it_went_in() {
    let value = json!({
        "odp_version": "1.0", "name": "Market", "description": "Listings.", "language": "ja", "localizations": ["en", "ja"],
        "operations": [
            {"authentication": "optional", "name": "get-collection"}, {"authentication": "required", "name": "get-offering"},
            {"authentication": "not-required", "name": "list-collection-offerings"},
            {"authentication": "not-required", "name": "list-collections"}, {"authentication": "optional", "name": "list-offerings"},
            {"authentication": "not-required", "name": "search-collections"}, {"authentication": "not-required", "name": "search-offerings"}
        ],
        "http": {"endpoint_base": "/catalog/odp", "openapi": {"url": "/openapi.json"}, "hint": 1},
        "branding": {"icon": {"src": "/icon.svg"}, "logo": {"src": "https://cdn.example/logo.webp", "type": "image/webp"}},
        "keywords": ["GPU", "gpu"], "documentation_url": "/developers/", "status_url": "https://status.example.com/",
        "support_url": "/support/", "website_url": "/store/",
        "mcp": [{"description": "Browse.", "name": "Catalog", "type": "streamable-http", "url": "/mcp/catalog"},
                {"type": "streamable-http", "url": "https://operations.example.com/mcp"}],
        "payment_origins": ["https://payments.example.com", "https://payments.example.com"],
        "protocols": {"enrollment": [{"name": "aep"}], "payments": [{"authentication": "required", "name": "mpp", "options": ["card"]}],
                      "trust": [{"name": "tap"}]},
        "vendor": {"b": 1, "a": 2}
    });
    let document = ServiceDocument::validate(value.clone()).unwrap();
    assert_eq!(document.to_value(), value);
    assert_eq!(
        document
            .operation(Operation::GetOffering)
            .unwrap()
            .authentication,
        Authentication::Required
    );
    assert_eq!(document.extra().len(), 1);
    assert!(ServiceDocument::validate(document.to_value()).unwrap() == document);
}

#[test]
fn required_members_are_required() {
    assert!(ServiceDocument::validate(minimal()).is_ok());
    for member in [
        "odp_version",
        "name",
        "description",
        "language",
        "localizations",
        "operations",
        "http",
    ] {
        assert_eq!(pointers(with(member, Value::Null)), [""], "{member}");
    }
    assert_eq!(pointers(json!({})).len(), 7);
    assert_eq!(pointers(with("http", json!({}))), ["/http"]);
    assert_eq!(
        pointers(with("odp_version", json!("1.7"))),
        ["/odp_version"]
    );
}

#[test]
fn languages_agree() {
    for tag in ["de-DE-u-co-phonebk", "i-klingon", "x-a-a"] {
        let mut value = with("language", json!(tag));
        value["localizations"] = json!([tag]);
        assert!(ServiceDocument::validate(value).is_ok(), "{tag}");
    }
    for tag in ["en-a", "sl-rozaj-rozaj"] {
        let mut value = with("language", json!(tag));
        value["localizations"] = json!([tag]);
        assert_eq!(pointers(value), ["/language", "/localizations/0"]);
    }
    assert_eq!(pointers(with("language", json!("ja"))), ["/localizations"]);
}

#[test]
fn operations_are_known_distinct_and_complete() {
    let public = |name: &str| json!({"authentication": "not-required", "name": name});
    let operations = |items: Value| with("operations", items);
    assert_eq!(
        pointers(operations(json!([
            public("search-offerings"),
            public("get-offering")
        ]))),
        ["/operations"]
    );
    assert_eq!(
        pointers(operations(json!([public("list-offerings")]))),
        ["/operations"]
    );
    assert_eq!(
        pointers(operations(json!([
            public("list-offerings"),
            public("list-offerings"),
            public("get-offering")
        ]))),
        ["/operations/1/name"]
    );
    assert_eq!(
        pointers(operations(json!([
            public("list-offerings"),
            public("get-offering"),
            public("buy-offering")
        ]))),
        ["/operations/2/name"]
    );
    assert_eq!(
        pointers(operations(
            json!([{"name": "list-offerings"}, {"authentication": "maybe", "name": "get-offering", "x": 1}])
        )),
        [
            "/operations/0",
            "/operations/1/authentication",
            "/operations/1/x"
        ]
    );
}

#[test]
fn authentication_needs_enrollment() {
    let operations = json!([
        {"authentication": "optional", "name": "list-offerings"}, {"authentication": "required", "name": "get-offering"}
    ]);
    let mut value = with("operations", operations);
    assert_eq!(
        pointers(value.clone()),
        [
            "/operations/0/authentication",
            "/operations/1/authentication"
        ]
    );
    value["protocols"] = json!({"trust": [{"name": "tap"}]});
    assert_eq!(
        pointers(value.clone()),
        [
            "/operations/0/authentication",
            "/operations/1/authentication"
        ]
    );
    value["protocols"] = json!({"enrollment": [{"name": "aep"}]});
    assert!(ServiceDocument::validate(value.clone()).is_ok());
    value["protocols"] = json!({"enrollment": [{"name": "other"}]});
    assert_eq!(pointers(value), ["/protocols/enrollment/0/name"]);
}

#[test]
fn nothing_claims_an_identity() {
    assert_eq!(pointers(with("web_url", json!("/store/"))), ["/web_url"]);
    assert_eq!(pointers(with("id", json!("me"))), ["/id"]);
}

#[test]
fn parts_are_held_to_their_rules() {
    assert_eq!(
        pointers(with("branding", json!({"icon": {"src": "/i.png"}}))),
        ["/branding"]
    );
    assert_eq!(
        pointers(with(
            "branding",
            json!({"icon": {"src": "/i.png"}, "logo": {"src": "/l.jpg", "type": "image/jpeg"}, "x": {}})
        )),
        ["/branding/logo/type", "/branding/x"]
    );
    assert_eq!(pointers(with("mcp", json!([]))), ["/mcp"]);
    assert_eq!(
        pointers(with(
            "mcp",
            json!([{"type": "sse", "url": "/mcp"}, {"type": "streamable-http"}])
        )),
        ["/mcp/0/type", "/mcp/1"]
    );
    assert_eq!(
        pointers(with(
            "http",
            json!({"endpoint_base": "/odp/?tenant=1", "openapi": {"url": "/o", "v": 1}})
        )),
        ["/http/endpoint_base", "/http/openapi/v"]
    );
    assert_eq!(
        pointers(with("support_url", json!("//support.example.com/"))),
        ["/support_url"]
    );
    assert_eq!(
        pointers(with("payment_origins", json!([]))),
        ["/payment_origins"]
    );
    assert_eq!(
        pointers(with("payment_origins", json!(["https://pay.example/"]))),
        ["/payment_origins/0"]
    );
    let origins: Vec<String> = (0..17).map(|i| format!("https://p{i}.example")).collect();
    assert_eq!(
        pointers(with("payment_origins", json!(origins))),
        ["/payment_origins"]
    );
    assert_eq!(
        pointers(with("keywords", json!([" compute"]))),
        ["/keywords/0"]
    );
    assert_eq!(
        pointers(with("protocols", json!({"payments": []}))),
        ["/protocols/payments"]
    );
    assert_eq!(pointers(with("name", json!("x".repeat(129)))), ["/name"]);
    assert_eq!(
        pointers(with("description", json!("x".repeat(1025)))),
        ["/description"]
    );
}

#[test]
fn capabilities_need_the_search() {
    let capabilities = json!({"filters": {"linked": {"href": "/odp/filters"}}});
    let mut value = with("search_capabilities", capabilities.clone());
    assert_eq!(pointers(value.clone()), ["/search_capabilities"]);
    value["operations"]
        .as_array_mut()
        .unwrap()
        .push(json!({"authentication": "not-required", "name": "search-offerings"}));
    assert_eq!(
        ServiceDocument::validate(value).unwrap().to_value()["search_capabilities"],
        capabilities
    );
}

#[test]
fn depth_and_bytes_are_bounded() {
    // The document itself is level 1: seven arrays within are level 8.
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    assert!(ServiceDocument::validate(with("vendor", nested(7))).is_ok());
    assert_eq!(pointers(with("vendor", nested(8))), [""]);
    let rest = minimal().to_string().len() + r#","vendor":"""#.len();
    assert!(ServiceDocument::validate(with("vendor", json!("x".repeat(65_536 - rest)))).is_ok());
    assert_eq!(
        pointers(with("vendor", json!("x".repeat(65_537 - rest)))),
        [""]
    );
}
