//! How commands fail: the code, and what is said.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use super::fake::{Fake, LEAST, Reply, nothing, page, service};
use super::support::{agent, fails, lines, ok, run, stderr, stdout};
use serde_json::json;
use tempfile::TempDir;

/// A Service whose only Offering is answered like this.
fn answering(reply: Reply) -> Fake {
    Fake::start(move |request| match request.target.as_str() {
        "/.well-known/odp" => service(&LEAST, &json!({})),
        _ => reply.clone(),
    })
}

#[test]
fn each_kind_of_failure_has_its_code() {
    let problem = |status, code| Reply::problem(status, code, &json!({}));
    for (reply, code, part) in [
        (
            problem(400, "INVALID_REQUEST"),
            2,
            "(INVALID_REQUEST, status 400)",
        ),
        (problem(401, "NOT_AUTHENTICATED"), 5, "PURVEY_TOKEN"),
        (
            Reply::new(402, "text/plain", "").with("payment-required", "x402-data"),
            5,
            "it asks for x402; nothing was enrolled or paid",
        ),
        (
            problem(403, "NOT_AUTHORIZED"),
            5,
            "(NOT_AUTHORIZED, status 403)",
        ),
        (nothing(), 4, "(NOT_FOUND, status 404)"),
        (
            problem(410, "GONE_FOR_GOOD"),
            4,
            "(GONE_FOR_GOOD, status 410)",
        ),
        (
            problem(410, "CONTINUATION_EXPIRED"),
            1,
            "begin the list again",
        ),
        (
            problem(418, "SHORT_AND_STOUT"),
            1,
            "(SHORT_AND_STOUT, status 418)",
        ),
        (
            problem(429, "RATE_LIMITED").with("retry-after", "90"),
            6,
            "retry after: 90 s",
        ),
        (problem(500, "BROKEN"), 6, "(BROKEN, status 500)"),
        (Reply::new(502, "text/html", "<h1>Bad"), 6, "status 502"),
        (
            Reply::new(200, "text/html", "<h1>Hello"),
            7,
            "(UNEXPECTED_MEDIA_TYPE",
        ),
        (
            Reply::odp(&json!({"odp_version": "1.0", "id": "lamp"})),
            7,
            "(INVALID_DOCUMENT",
        ),
        (
            Reply::odp(&json!({"odp_version": "2.0", "id": "lamp", "name": "Lamp"})),
            7,
            "(UNSUPPORTED_VERSION",
        ),
        (
            Reply::odp(
                &json!({"odp_version": "1.0", "id": "lamp", "name": "Lamp", "x": "x".repeat(524_288)}),
            ),
            7,
            "(RESPONSE_LIMIT_EXCEEDED",
        ),
        (
            Reply::new(307, "text/plain", "").with("location", "https://elsewhere.example/"),
            7,
            "(REDIRECT_REFUSED",
        ),
    ] {
        let fake = answering(reply);
        let said = fails(code, &["get", &fake.url, "lamp"]);
        assert!(said.starts_with("error: "), "{said}");
        assert!(said.contains(part), "no {part:?} in\n{said}");
        assert!(
            said.contains(&format!("address: {}/odp/offerings/lamp\n", fake.url)),
            "{said}"
        );
    }
}

#[test]
fn what_cannot_be_reached_says_so() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap().to_string();
    drop(closed);
    let said = fails(6, &["inspect", &address]);
    assert!(said.contains("(CONNECT_FAILED)"), "{said}");

    let silent = Fake::start(|_| Reply::silence());
    let said = fails(6, &["inspect", &silent.url, "--timeout", "300ms"]);
    assert!(
        said.contains("(TIMEOUT)") && said.contains("--timeout"),
        "{said}"
    );
    let said = fails(2, &["inspect", &silent.url, "--timeout", "0s"]);
    assert!(said.contains("must not be 0"), "{said}");

    let no_service = Fake::start(|_| Reply::new(404, "text/html", "nothing"));
    let said = fails(4, &["inspect", &no_service.url]);
    assert!(
        said.contains("there is no ODP Service at this origin"),
        "{said}"
    );
}

#[test]
fn addresses_that_are_not_public_are_refused() {
    for origin in [
        "https://10.0.0.1",
        "https://169.254.169.254",
        "https://[fd00::1]",
        "127.0.0.1:1",
    ] {
        let output = agent(&["inspect", origin]);
        // Without --local.
        let mut arguments: Vec<_> = output.get_args().map(ToOwned::to_owned).collect();
        arguments.retain(|argument| argument != "--local");
        let output = e2e::binary::command()
            .args(arguments)
            .args(["--no-cache"])
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(7),
            "{origin}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains("(ADDRESS_NOT_ALLOWED)"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn what_is_no_origin_is_wrong_usage() {
    for (origin, part) in [
        (
            "https://shop.example/odp",
            "its origin is https://shop.example",
        ),
        ("shop.example?x", "its origin is https://shop.example"),
        ("http://shop.example", "only https"),
        ("no host", "market.example"),
        ("https://me:secret@shop.example", "PURVEY_TOKEN"),
    ] {
        let said = fails(2, &["offerings", origin]);
        assert!(said.contains(part), "no {part:?} in\n{said}");
        assert!(!said.contains("secret"), "{said}");
    }
    let said = fails(2, &["offerings", "shop.example", "--lang", "x_y"]);
    assert!(said.contains("x_y"), "{said}");
    let said = fails(2, &["get", "shop.example"]);
    assert!(said.contains("<ID>"), "{said}");
    let fake = answering(nothing());
    let said = fails(2, &["get", &fake.url, "no/id"]);
    assert!(
        said.contains("is not an identifier. Must be from 1 through 128"),
        "{said}"
    );
}

/// A Service with three pages, of which the second is answered like this.
fn pages(second: Reply) -> Fake {
    Fake::start(move |request| match request.target.as_str() {
        "/.well-known/odp" => service(&LEAST, &json!({})),
        "/odp/offerings?limit=50" | "/odp/offerings?limit=100" => page(
            &json!([{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]),
            &json!({"next": "/odp/page-2"}),
        ),
        "/odp/page-2" => second.clone(),
        _ => nothing(),
    })
}

#[test]
fn what_came_before_a_failure_stays() {
    let fake = pages(page(&json!([{"id": "a", "name": "A again"}]), &json!({})));
    let output = run(&["offerings", &fake.url, "--json"]);
    assert_eq!(output.status.code(), Some(7));
    let items = lines(&stdout(&output));
    assert_eq!(
        items,
        [
            json!({"id": "a", "name": "A"}),
            json!({"id": "b", "name": "B"})
        ]
    );
    assert!(
        stderr(&output).contains("(INVALID_CONTINUATION)"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn more_than_was_shown_is_said() {
    let fake = pages(page(&json!([{"id": "c", "name": "C"}]), &json!({})));
    let output = run(&["offerings", &fake.url, "--limit", "50"]);
    assert_eq!(
        (stdout(&output).as_str(), stderr(&output).as_str()),
        ("ID  NAME  PRICE\na   A\nb   B\nc   C\n", "")
    );
    let fake = Fake::start(|request| match request.target.as_str() {
        "/.well-known/odp" => service(&LEAST, &json!({})),
        "/odp/offerings?limit=1" => page(
            &json!([{"id": "a", "name": "A"}]),
            &json!({"next": "/odp/next"}),
        ),
        _ => nothing(),
    });
    let output = run(&["offerings", &fake.url, "--limit", "1"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        stderr(&output),
        "1 shown, and there are more: --limit N or --all shows them\n"
    );
    // No page is fetched that nobody asked for.
    assert_eq!(fake.requests().len(), 2);
    let fake = Fake::start(|request| match request.target.as_str() {
        "/.well-known/odp" => service(&LEAST, &json!({})),
        "/odp/offerings?limit=7&representation=full" => page(&json!([]), &json!({})),
        _ => nothing(),
    });
    let output = run(&["offerings", &fake.url, "--page-size", "7", "--full"]);
    assert_eq!(
        (stdout(&output).as_str(), stderr(&output).as_str()),
        ("", "nothing found\n")
    );
}

#[test]
fn an_interrupt_ends_it_and_what_was_printed_stays() {
    let fake = pages(Reply::silence());
    let mut child = agent(&["offerings", &fake.url, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    assert_eq!(first, "{\"id\":\"a\",\"name\":\"A\"}\n");
    let signalled = Command::new("kill")
        .args(["-s", "INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(signalled.success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(rest, "{\"id\":\"b\",\"name\":\"B\"}\n");
    assert_eq!(stderr(&output), "error: interrupted\n");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let fake = Fake::start(|request| match request.target.as_str() {
        "/.well-known/odp" => service(&LEAST, &json!({})),
        target => {
            // Without end.
            let n: u64 = target
                .rsplit('/')
                .next()
                .and_then(|n| n.parse().ok())
                .unwrap_or(0);
            let items: Vec<_> = (n..n + 100)
                .map(|n| json!({"id": format!("id-{n:09}"), "name": "N".repeat(100)}))
                .collect();
            page(
                &json!(items),
                &json!({"next": format!("/odp/page/{}", n + 100)}),
            )
        }
    });
    let mut child = agent(&["offerings", &fake.url, "--all", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), stderr(&output).as_str()),
        (Some(0), "")
    );
}

#[test]
fn a_cache_is_used_where_it_is_wanted() {
    let fake = Fake::start(|request| match request.target.as_str() {
        "/.well-known/odp" => service(&LEAST, &json!({})).with("cache-control", "max-age=600"),
        _ => nothing(),
    });
    let cache = TempDir::new().unwrap();
    let directory = cache.path().join("kept");
    let with_cache = ["inspect", &fake.url, "--cache", directory.to_str().unwrap()];
    let first = ok(&with_cache);
    assert_eq!(ok(&with_cache), first);
    assert_eq!(fake.requests().len(), 1);
    ok(&[&with_cache[..], &["--no-cache"]].concat());
    assert_eq!(fake.requests().len(), 2);
    // Nothing of a development server is kept unless it is said where.
    ok(&["inspect", &fake.url]);
    assert_eq!(fake.requests().len(), 3);
    let said = fails(2, &["inspect", &fake.url, "--cache", "/dev/null/x"]);
    assert!(
        said.contains("--cache /dev/null/x") && said.contains("--no-cache"),
        "{said}"
    );
}

#[test]
fn completions_and_help_know_every_command() {
    let commands = [
        "inspect",
        "collections",
        "offerings",
        "search",
        "get",
        "capabilities",
        "actions",
        "invoke",
    ];
    for shell in ["bash", "zsh", "fish"] {
        let output = e2e::binary::command()
            .args(["completions", shell])
            .output()
            .unwrap();
        let script = stdout(&output);
        for part in commands
            .iter()
            .chain(&["descendants", "page-size", "no-cache", "content-type"])
        {
            assert!(script.contains(part), "{shell}: {part}");
        }
    }
    for name in commands {
        let output = e2e::binary::command()
            .args([name, "--help"])
            .output()
            .unwrap();
        let help = stdout(&output);
        for part in [
            "Usage: purvey",
            "Exit codes: 0 done",
            "--local",
            "PURVEY_TOKEN",
        ] {
            assert!(help.contains(part), "{name}: no {part:?} in\n{help}");
        }
    }
}
