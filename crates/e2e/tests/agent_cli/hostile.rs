//! A Service that tries to steer the terminal.

use super::fake::{Fake, Reply, page, service};
use super::support::{lines, run, stdout};
use serde_json::{Value, json};
use std::process::Output;

/// Clears the screen, sets the title, turns text around, hides text, goes back to the line's beginning.
const EVIL: &str = "A\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}B\u{2066}\u{200b}\r\n\tC\u{7f}\u{8}\u{feff}\u{2028}D\u{e0041}";
/// The same in a cell.
const HARMLESS: &str = "A\\u{1b}[2J\\u{1b}]0;owned\\u{7}\\u{9b}31m\\u{202e}B\\u{2066}\\u{200b} C\\u{7f}\\u{8}\\u{feff} D\\u{e0041}";

fn is_harmless(c: char) -> bool {
    let steers = c.is_control() && c != '\n';
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}');
    let hides = matches!(
        c,
        '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    );
    !steers && !turns && !hides
}

fn harmless(output: &Output) {
    for stream in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(stream).unwrap();
        let evil: Vec<char> = text.chars().filter(|c| !is_harmless(*c)).collect();
        assert!(evil.is_empty(), "{evil:?} in\n{text:?}");
    }
}

fn evil_service() -> Fake {
    Fake::start(|request| {
        let path = request.target.split('?').next().unwrap();
        match path {
            "/.well-known/odp" => service(
                &[
                    "list-offerings",
                    "get-offering",
                    "list-collections",
                    "get-collection",
                    "search-offerings",
                ],
                &json!({
                    "name": EVIL, "description": EVIL,
                    "search_capabilities": {
                        "filters": {"inline": [{
                            "id": "kind", "title": EVIL, "description": EVIL, "type": "string", "operators": ["eq"],
                            "refinable": true,
                        }]},
                        "sorts": {"inline": [{"id": "s", "title": EVIL, "description": EVIL, "keys": [
                            {"filter_id": "kind", "direction": "ascending", "missing": "last"}
                        ]}]},
                    },
                    EVIL: EVIL,
                }),
            ),
            "/odp/offerings" | "/odp/collections" | "/odp/offerings/search" => page(
                &json!([{"id": "x", "name": EVIL, "description": EVIL}]),
                &match path {
                    "/odp/offerings/search" => {
                        json!({"refinements": [{"filter_id": "kind", "values": [{"value": EVIL, "count": 1}]}]})
                    }
                    _ => json!({}),
                },
            ),
            "/odp/offerings/x" => Reply::odp(&json!({
                "odp_version": "1.0", "id": "x", "name": EVIL, "description": EVIL,
                "images": [{"src": "/x.png", "alt": EVIL}],
                "price": {"type": "metered", "amount": "1", "currency": EVIL, "unit": EVIL},
                "schema": {"url": "/schema.json"},
                "attributes": {EVIL: EVIL},
                "actions": [{
                    "id": "do", "rel": "invoke", "description": EVIL, "authentication": "not-required",
                    "http": {"method": "POST", "href": "/do"},
                }],
            })),
            "/odp/collections/x" => Reply::odp(
                &json!({"odp_version": "1.0", "id": "x", "name": EVIL, "description": EVIL}),
            ),
            "/schema.json" => Reply::new(
                200,
                "application/schema+json",
                json!({
                    "$schema": "https://json-schema.org/draft/2020-12/schema",
                    "properties": {EVIL: {"title": EVIL, "description": EVIL}},
                })
                .to_string(),
            ),
            "/do" => Reply::new(200, "text/plain", EVIL).with("location", "/\u{9b}31m"),
            _ => Reply::problem(
                400,
                "INVALID_REQUEST",
                &json!({
                    "title": EVIL, "detail": EVIL, "instance": "/odp/x",
                    "invalid_params": [{"in": "path", "name": EVIL, "reason": EVIL}],
                }),
            )
            .with("x-request-id", "id\u{9b}31m"),
        }
    })
}

#[test]
fn nothing_of_a_service_steers_the_terminal() {
    let fake = evil_service();
    let origin = fake.url.as_str();
    let commands: [&[&str]; 11] = [
        &["inspect", origin],
        &["offerings", origin, "--full"],
        &["offerings", origin],
        &["collections", origin, "--full"],
        &["collections", origin, "--tree"],
        &["search", origin, "x", "--refine", "kind"],
        &["capabilities", origin],
        &["get", origin, "x"],
        &["get", origin, "x", "--collection"],
        &["actions", origin, "x"],
        &["get", origin, "missing"],
    ];
    for arguments in commands {
        let output = run(arguments);
        harmless(&output);
        let all = e2e::binary::said(&output);
        assert!(all.contains(HARMLESS), "{arguments:?}:\n{all}");
    }
}

#[test]
fn json_is_escaped_and_means_the_same() {
    let fake = evil_service();
    let origin = fake.url.as_str();
    let commands: [(&[&str], &str); 7] = [
        (&["inspect", origin, "--json"], "/document/name"),
        (&["offerings", origin, "--json"], "/name"),
        (&["collections", origin, "--json", "--full"], "/description"),
        (
            &["search", origin, "x", "--refine", "kind", "--json"],
            "/offering/name",
        ),
        (&["capabilities", origin, "--json"], "/filters/0/title"),
        (&["get", origin, "x", "--json"], "/offering/price/unit"),
        (&["actions", origin, "x", "--json"], "/action/description"),
    ];
    for (arguments, pointer) in commands {
        let output = run(arguments);
        harmless(&output);
        let documents = lines(&stdout(&output));
        assert_eq!(
            documents
                .first()
                .and_then(|document| document.pointer(pointer)),
            Some(&Value::from(EVIL)),
            "{arguments:?}: {}",
            e2e::binary::said(&output)
        );
    }
    let output = run(&["invoke", origin, "x", "do", "--yes", "--json"]);
    harmless(&output);
    assert_eq!(lines(&stdout(&output))[0]["body"], EVIL);
}
