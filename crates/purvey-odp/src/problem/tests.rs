use super::*;
use serde_json::json;

const INVALID: &str = "https://offeringprotocol.org/problems/invalid-request";

fn pointers(invalid: Invalid) -> Vec<String> {
    let violations = invalid.into_violations();
    violations.into_iter().map(|v| v.pointer).collect()
}

fn body(problem: &Problem) -> Value {
    serde_json::from_slice(&problem.to_body()).unwrap()
}

#[test]
fn a_problem_on_the_wire() {
    let param = InvalidParam::body("/limit", "Must be an integer from 1 through 100.");
    let problem = Problem::invalid_request(vec![param])
        .with_detail("One or more request parameters are invalid.");
    let wire = json!({
        "type": INVALID,
        "title": "Invalid request",
        "status": 400,
        "code": "INVALID_REQUEST",
        "detail": "One or more request parameters are invalid.",
        "invalid_params": [{"in": "body", "name": "/limit", "reason": "Must be an integer from 1 through 100."}]
    });
    assert_eq!(body(&problem), wire);
    assert_eq!(Problem::validate(wire.clone(), 400), Ok(problem.clone()));
    assert_eq!(Problem::read_lenient(wire, 400), Ok(problem));
}

#[test]
fn every_known_code_has_its_problem() {
    for (problem, status, code) in [
        (Problem::invalid_request(vec![]), 400, "INVALID_REQUEST"),
        (Problem::not_authenticated(), 401, "NOT_AUTHENTICATED"),
        (Problem::not_authorized(), 403, "NOT_AUTHORIZED"),
        (Problem::not_found(), 404, "NOT_FOUND"),
        (Problem::not_acceptable(), 406, "NOT_ACCEPTABLE"),
        (Problem::continuation_expired(), 410, "CONTINUATION_EXPIRED"),
        (Problem::request_too_large(), 413, "REQUEST_TOO_LARGE"),
        (
            Problem::unsupported_media_type(),
            415,
            "UNSUPPORTED_MEDIA_TYPE",
        ),
        (Problem::rate_limited(), 429, "RATE_LIMITED"),
        (Problem::service_unavailable(), 503, "SERVICE_UNAVAILABLE"),
    ] {
        assert_eq!((problem.status(), problem.code().as_str()), (status, code));
        assert_eq!(Problem::validate(body(&problem), status), Ok(problem));
    }
}

#[test]
fn unknown_codes_and_members_are_fine() {
    let value = json!({
        "type": "https://offeringprotocol.org/problems/catalog-revision-conflict",
        "title": "Catalog revision conflict",
        "status": 409,
        "code": "CATALOG_REVISION_CONFLICT",
        "future_extension": true
    });
    let problem = Problem::validate(value, 409).unwrap();
    assert_eq!(problem.code().as_str(), "CATALOG_REVISION_CONFLICT");
    assert_eq!(problem.code().status(), None);
    assert_eq!(
        (problem.status(), problem.detail(), problem.instance()),
        (409, None, None)
    );
}

/// A valid problem with one member replaced, or removed for null.
fn with(name: &str, member: Value) -> Value {
    let mut value = json!({
        "type": INVALID, "title": "Invalid request", "status": 400, "code": "INVALID_REQUEST",
        "invalid_params": [{"in": "query", "name": "limit", "reason": "Must be an integer from 1 through 100."}]
    });
    let map = value.as_object_mut().unwrap();
    match member {
        Value::Null => map.shift_remove(name),
        member => map.insert(name.to_owned(), member),
    };
    value
}

#[test]
fn what_breaks_a_problem() {
    let broken = |value| pointers(Problem::validate(value, 400).unwrap_err());
    for name in ["type", "title", "status", "code"] {
        assert_eq!(broken(with(name, Value::Null)), [""], "{name}");
    }
    let not_found = "https://offeringprotocol.org/problems/not-found";
    assert_eq!(broken(with("type", json!(not_found))), ["/type"]);
    assert_eq!(broken(with("status", json!(422))), ["/status"]);
    assert_eq!(broken(with("status", json!("400"))), ["/status"]);
    assert_eq!(broken(with("title", json!("x".repeat(129)))), ["/title"]);
    assert_eq!(broken(with("detail", json!("x".repeat(2049)))), ["/detail"]);
    assert_eq!(broken(with("detail", json!(""))), ["/detail"]);
    assert_eq!(broken(with("instance", json!("a b"))), ["/instance"]);
    assert_eq!(broken(with("code", json!("invalid_request"))), ["/code"]);
    assert_eq!(
        broken(with("code", json!("NOT_FOUND"))),
        ["/type", "/status", "/invalid_params"]
    );
    assert_eq!(
        broken(with("invalid_params", json!([]))),
        ["/invalid_params"]
    );
    assert!(Problem::validate(with("detail", json!("\u{e9}".repeat(2048))), 400).is_ok());
    assert!(Problem::validate(with("instance", json!("/log/7#x")), 400).is_ok());

    let success = json!({"type": INVALID, "title": "x", "status": 200, "code": "INVALID_REQUEST"});
    assert_eq!(
        pointers(Problem::validate(success, 200).unwrap_err()),
        ["/status"]
    );
}

#[test]
fn what_breaks_a_parameter() {
    let broken = |param: Value| {
        pointers(Problem::validate(with("invalid_params", json!([param])), 400).unwrap_err())
    };
    let at = |member: &str| vec![format!("/invalid_params/0{member}")];
    assert_eq!(
        broken(json!({"in": "cookie", "name": "x", "reason": "x"})),
        at("/in")
    );
    assert_eq!(
        broken(json!({"in": "query", "name": "", "reason": "x"})),
        at("/name")
    );
    assert_eq!(
        broken(json!({"in": "body", "name": "limit", "reason": "x"})),
        at("/name")
    );
    assert_eq!(
        broken(json!({"in": "query", "name": "x".repeat(257), "reason": "x"})),
        at("/name")
    );
    assert_eq!(
        broken(json!({"in": "query", "name": "x", "reason": ""})),
        at("/reason")
    );
    assert_eq!(
        broken(json!({"in": "query", "name": "x", "reason": "x".repeat(1025)})),
        at("/reason")
    );
    assert_eq!(broken(json!({"in": "query", "name": "x"})), at(""));
    assert_eq!(broken(json!("limit")), at(""));
    let entries = |n: usize| {
        with(
            "invalid_params",
            json!(vec![json!({"in": "body", "name": "", "reason": "x"}); n]),
        )
    };
    assert!(Problem::validate(entries(32), 400).is_ok());
    assert_eq!(
        pointers(Problem::validate(entries(33), 400).unwrap_err()),
        ["/invalid_params"]
    );
}

fn known_param() -> Value {
    json!({"in": "query", "name": "limit", "reason": "No."})
}

#[test]
fn an_agent_drops_what_it_does_not_know() {
    let unknown = json!({"in": "cookie", "name": 7});
    let known = json!({"in": "header", "name": "Accept", "reason": "No.", "since": 2});
    let mut entries = vec![unknown.clone(); 40];
    entries.push(known);
    let problem = Problem::read_lenient(with("invalid_params", json!(entries)), 400).unwrap();
    assert_eq!(
        problem.invalid_params(),
        [InvalidParam::header("Accept", "No.")]
    );

    let problem = Problem::read_lenient(with("invalid_params", json!([unknown])), 400).unwrap();
    assert_eq!(problem.invalid_params(), []);
    assert!(Problem::read_lenient(with("invalid_params", json!([])), 400).is_err());
    assert!(Problem::read_lenient(with("invalid_params", json!([{"name": "x"}])), 400).is_err());

    // Beside another code the member means nothing, whatever is in it, and the code stays.
    for params in [json!([known_param()]), json!([]), json!("soon")] {
        let mut value = with("invalid_params", params);
        value["code"] = json!("FILTER_CONFLICT");
        value["type"] = json!("https://offeringprotocol.org/problems/filter-conflict");
        assert!(Problem::validate(value.clone(), 400).is_err());
        let problem = Problem::read_lenient(value, 400).unwrap();
        assert_eq!(problem.code().as_str(), "FILTER_CONFLICT");
        assert_eq!(problem.invalid_params(), []);
    }

    // Another status than the code's own: the response's status counts, and the body must agree with it.
    let value = with("status", json!(422));
    assert_eq!(
        Problem::read_lenient(value.clone(), 422).unwrap().status(),
        422
    );
    assert!(Problem::validate(value.clone(), 422).is_err());
    assert!(Problem::read_lenient(value, 400).is_err());
}

#[test]
fn parameters_fit_whatever_they_are_made_of() {
    let deep = format!("/{}/b/c", "a".repeat(251));
    let name = |pointer: &str| InvalidParam::body(pointer, "x").name().to_owned();
    assert_eq!(name(&deep), deep);
    assert_eq!(
        name(&format!("{deep}d/e")),
        format!("/{}/b", "a".repeat(251))
    );
    assert_eq!(name(&format!("/{}", "\u{e9}".repeat(256))), "");
    assert_eq!(name("limit"), "");
    assert_eq!(name("/a/~2/b"), "/a");
    let param = InvalidParam::query(&"\u{e9}".repeat(300), &"\u{1f600}".repeat(2000));
    assert_eq!(param.name(), "\u{e9}".repeat(256));
    assert_eq!(param.reason(), "\u{1f600}".repeat(1024));
    assert_eq!(
        (
            InvalidParam::path("", "").name(),
            InvalidParam::path("", "").reason()
        ),
        ("unnamed", "Is not valid.")
    );
}

#[test]
fn violations_become_parameters() {
    let mut report = Report::new();
    let root = Place::ROOT;
    let filters = root.key("filters");
    for i in 0..40 {
        report.add(&filters.index(i), "No.");
    }
    let problem = Problem::invalid_body(&report.finish::<()>(None).unwrap_err());
    assert_eq!(problem.invalid_params().len(), 32);
    assert_eq!(
        problem.invalid_params()[31],
        InvalidParam::body("/filters/31", "No.")
    );
}

#[test]
fn a_body_never_passes_its_limit() {
    let param = InvalidParam::query("x", &"\u{1}".repeat(1024));
    let problem = Problem::invalid_request(vec![param; 40]).with_detail(&"\u{1}".repeat(4000));
    assert_eq!(problem.invalid_params().len(), 32);
    let bytes = problem.to_body();
    assert!(bytes.len() <= 16_384);
    // One parameter of 1,024 characters, six bytes each, does not fit beside a detail of 2,048.
    let sent = Problem::validate(serde_json::from_slice(&bytes).unwrap(), 400).unwrap();
    assert_eq!(sent.invalid_params(), []);
    assert_eq!(sent.detail().map(str::len), Some(2048));

    let param = InvalidParam::query("x", &"y".repeat(1024));
    let problem = Problem::invalid_request(vec![param; 32]);
    let sent = Problem::validate(body(&problem), 400).unwrap();
    // 1,062 bytes a parameter with its comma.
    assert_eq!(sent.invalid_params().len(), 15);
}
