//! What is different on a terminal: emphasis, width, escapes, questions. `script` of util-linux is the terminal.
#![cfg(target_os = "linux")]

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use e2e::binary::purvey;
use serde_json::json;

use super::fake::{Fake, LEAST, Reply, nothing, page, service};

/// Runs a shell command on a terminal of this width; once it asks something, these keys are typed. Gives what the terminal
/// got, and the code.
fn on_terminal(
    command: &str,
    columns: u16,
    keys: &str,
    variables: &[(&str, &str)],
) -> (String, i32) {
    let purvey = purvey().to_str().unwrap();
    let command = command.replace("purvey", purvey);
    let line = format!("stty cols {columns} rows 24 -echo; {command}");
    let mut script = Command::new("script");
    script
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = script.spawn().unwrap();
    // Left open until the end: its end would be that of the terminal's input.
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut got = Vec::new();
    let mut byte = [0];
    while !keys.is_empty() && !got.ends_with(QUESTION.as_bytes()) {
        assert_eq!(
            stdout.read(&mut byte).unwrap(),
            1,
            "{}",
            String::from_utf8_lossy(&got)
        );
        got.extend(byte);
    }
    stdin.write_all(keys.as_bytes()).unwrap();
    stdout.read_to_end(&mut got).unwrap();
    let code = child.wait().unwrap().code().unwrap();
    drop(stdin);
    (String::from_utf8(got).unwrap().replace("\r\n", "\n"), code)
}

/// How every question ends.
const QUESTION: &str = "[y/N] ";

fn shop() -> Fake {
    Fake::start(
        |request| match (request.method.as_str(), request.target.as_str()) {
            (_, "/.well-known/odp") => service(&LEAST, &json!({})),
            (_, "/odp/offerings?limit=50") => page(
                &json!([
                    {"id": "lamp", "name": "A lamp that stands on a desk and bends"},
                    {"id": "shade", "name": "Shade"},
                ]),
                &json!({}),
            ),
            (_, "/odp/offerings/lamp") => Reply::odp(&json!({
                "odp_version": "1.0", "id": "lamp", "name": "L\u{9b}31m", "actions": [{
                    "id": "buy", "rel": "purchase", "authentication": "not-required",
                    "http": {"method": "POST", "href": "/buy"},
                }],
            })),
            ("POST", "/buy") => Reply::new(200, "text/plain", "bought\u{1b}[2J\n"),
            _ => nothing(),
        },
    )
}

#[test]
fn the_header_is_bold_where_that_is_wanted() {
    let fake = shop();
    let command = format!("purvey offerings {} --local", fake.url);
    let plain = "ID     NAME                                    PRICE\n\
                 lamp   A lamp that stands on a desk and bends\n\
                 shade  Shade\n";
    let header = plain.lines().next().unwrap();
    let bold = plain.replace(header, &format!("\u{1b}[1m{header}\u{1b}[0m"));
    assert_eq!(on_terminal(&command, 80, "", &[]), (bold, 0));
    for variables in [[("NO_COLOR", "1")], [("TERM", "dumb")]] {
        assert_eq!(
            on_terminal(&command, 80, "", &variables),
            (plain.to_owned(), 0)
        );
    }
}

#[test]
fn a_table_fits_the_terminal() {
    let fake = shop();
    let command = format!("purvey offerings {} --local", fake.url);
    assert_eq!(
        on_terminal(&command, 30, "", &[("NO_COLOR", "1")]).0,
        "ID     NAME              PRICE\n\
         lamp   A lamp that\n       \
         stands on a desk\n       \
         and bends\n\
         shade  Shade\n"
    );
}

#[test]
fn a_raw_document_is_escaped_on_a_terminal_only() {
    let fake = shop();
    let command = format!("purvey get {} lamp --raw --local", fake.url);
    let (text, code) = on_terminal(&command, 80, "", &[]);
    assert_eq!(code, 0);
    assert!(text.contains(r#""name":"L\u009b31m""#), "{text:?}");
    let piped = super::support::ok(&["get", &fake.url, "lamp", "--raw"]);
    assert!(piped.contains("L\u{9b}31m"), "{piped:?}");
}

#[test]
fn whoever_is_asked_decides() {
    let fake = shop();
    let command = format!("purvey invoke {} lamp buy --local", fake.url);
    let question = format!("POST {}/buy\nSend this? [y/N] ", fake.url);
    for keys in ["n\n", "\n", "what\n"] {
        let (text, code) = on_terminal(&command, 80, keys, &[]);
        assert_eq!(
            (text, code),
            (format!("{question}nothing was sent\n"), 1),
            "{keys:?}"
        );
    }
    assert!(fake.requests_for("/buy").is_empty());
    let (text, code) = on_terminal(&command, 80, "y\n", &[]);
    assert_eq!(
        (text, code),
        (
            format!("{question}200 OK\ncontent-type: text/plain\nbought\\u{{1b}}[2J\n"),
            0
        )
    );
    assert_eq!(fake.requests_for("/buy").len(), 1);
}
