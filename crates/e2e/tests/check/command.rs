//! The command: what it takes, and what it says.

use e2e::binary::{self, fail};
use serde_json::json;

use crate::{fake, findings, run};

#[test]
fn wrong_usage_is_refused() {
    let check = |arguments: &[&str]| {
        let mut command = binary::command();
        command.arg("check").args(arguments);
        command
    };
    fail(
        check(&["https://a.example/shop"]),
        2,
        &["its origin is https://a.example"],
    );
    fail(check(&["http://127.0.0.1:1"]), 2, &["--local"]);
    fail(
        check(&["a.example", "--max-requests", "0"]),
        2,
        &["at least 1"],
    );
    fail(
        check(&["a.example", "--token-file", "/none"]),
        2,
        &["--token-file /none"],
    );
}

#[test]
fn nobody_there_is_an_error() {
    let output = run("http://127.0.0.1:1", &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let outcome = binary::json(&output);
    assert_eq!(outcome["findings"][0]["rule"], "http.response");
    assert_eq!(outcome["findings"][1]["rule"], "service.reachable");
}

#[test]
fn requests_are_bounded() {
    let origin = fake::start(Box::new(|_, _| {}));
    let output = run(&origin, &["--json", "--max-requests", "20"]);
    let outcome = binary::json(&output);
    assert_eq!(outcome["requests"], 20);
    assert_eq!(outcome["findings"][0]["rule"], "check.incomplete");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn nothing_is_written_and_no_action_invoked() {
    let origin = fake::start(Box::new(|request, _| {
        let read = matches!(request.method.as_str(), "GET" | "HEAD" | "PROPFIND");
        let search = request.method == "POST" && request.path.ends_with("/search");
        assert!(read || search, "{request:?}");
        assert_ne!(request.path, "/buy");
    }));
    let output = run(&origin, &["--json"]);
    assert_eq!(findings(&binary::json(&output)), Vec::<String>::new());
}

#[test]
fn text_of_a_service_cannot_move_the_cursor() {
    let origin = fake::start(Box::new(|request, response| {
        if request.path == "/.well-known/odp" && response.status == 200 {
            response.body["operations"] = json!("\u{1b}[2J\u{202e}");
            response.body["language"] = json!("\u{9b}2J");
        }
        if request.path == "/odp/offerings" {
            response.body["next"] = json!("/\u{1b}[31m\n\u{7}");
        }
    }));
    for arguments in [&[][..], &["--json"]] {
        let output = run(&origin, arguments);
        assert_eq!(output.status.code(), Some(1));
        let text = binary::said(&output);
        let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(obeyed), "{text:?}");
    }
}

#[test]
fn the_token_goes_to_the_service_and_is_never_shown() {
    let origin = fake::start(Box::new(|request, response| {
        if request.path == "/.well-known/odp" && response.status == 200 {
            response.body["operations"][4]["authentication"] = json!("required");
            response.body["protocols"] = json!({"enrollment": [{"name": "aep"}]});
        }
        let known = request.header("authorization") == "Bearer a-token-for-tests";
        assert!(known || request.header("authorization").is_empty());
        if request.path == "/odp/offerings" && !known {
            *response = fake::Response::problem(401, "NOT_AUTHENTICATED", None);
            response.set("www-authenticate", "AEP");
        }
        if request.path == "/thing.json" {
            assert!(!known, "a schema is fetched anonymously");
        }
    }));
    let mut command = binary::command();
    command.args(["check", "--local", "--json", &origin]);
    command.env("PURVEY_TOKEN", "a-token-for-tests");
    let output = command.output().unwrap();
    let outcome = binary::json(&output);
    assert_eq!(findings(&outcome), Vec::<String>::new());
    assert!(outcome["exercised"]["authentication.required"].as_u64() > Some(0));
    assert!(!binary::said(&output).contains("a-token-for-tests"));
    let without = binary::json(&run(&origin, &["--json"]));
    assert_eq!(
        without["skipped"][0],
        "list-offerings: it asks for authentication, and no token was given."
    );
}
