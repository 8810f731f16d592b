//! Redirect games.

use super::transport_support::{
    ODP, Seen, Server, Step, document, fetch, head, local, page, response,
};
use super::{Case, run};
use http::Method;
use purvey_agent::Code;
use purvey_agent::transport::{Class, Fetch};

fn to(status: &str, location: &str) -> Vec<Step> {
    response(status, &[("Location", location)], b"")
}

/// `/start` redirects to `location`; everything else is the document.
fn once(status: &'static str, location: &'static str) -> impl Fn(usize, &Seen) -> Vec<Step> {
    move |_, seen| match seen.path() {
        "/start" => to(status, location),
        _ => document(b"{}"),
    }
}

/// `/start`, `/1`, `/2` and so on, as many redirects as `count` says.
fn chain(count: usize) -> impl Fn(usize, &Seen) -> Vec<Step> {
    move |number, _| match number < count {
        true => to("302 Found", &format!("/{}", number + 1)),
        false => document(b"{}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects() {
    let mut cases = vec![
        Case::new("five redirects", chain(5)).gives("{}"),
        Case::new("six redirects", chain(6)),
        Case::new("redirects for ever", |number, _| {
            to("302 Found", &format!("/{number}/x"))
        }),
        Case::new("a redirect to itself", |_, seen| {
            to("302 Found", seen.path())
        }),
        Case::new("a redirect to itself with a fragment", |_, seen| {
            to("302 Found", &format!("{}#x", seen.path()))
        }),
        Case::new("a circle of two", |number, _| {
            to("302 Found", ["/other", "/start"][number % 2])
        }),
        Case::new("a circle of three", |number, _| {
            to("302 Found", ["/a", "/b", "/start"][number % 3])
        }),
        Case::new("a circle that avoids the start", |number, _| {
            to("302 Found", ["/a", "/b"][number % 2])
        }),
        Case::new("another name for the same address", |_, seen| {
            let port = seen
                .field("host")
                .unwrap()
                .split(':')
                .nth(1)
                .unwrap()
                .to_owned();
            to("302 Found", &format!("http://localhost:{port}/x"))
        }),
        Case::new("the same address in IPv6", |_, seen| {
            let port = seen
                .field("host")
                .unwrap()
                .split(':')
                .nth(1)
                .unwrap()
                .to_owned();
            to("302 Found", &format!("http://[::1]:{port}/x"))
        }),
        Case::new("the same host over TLS", |_, seen| {
            to(
                "302 Found",
                &format!("https://{}/x", seen.field("host").unwrap()),
            )
        }),
        Case::new("user information", |_, seen| {
            to(
                "302 Found",
                &format!("http://u:p@{}/x", seen.field("host").unwrap()),
            )
        }),
        Case::new("the same origin in full", |_, seen| match seen.path() {
            "/start" => to(
                "302 Found",
                &format!("http://{}/x", seen.field("host").unwrap()),
            ),
            _ => document(b"{}"),
        })
        .gives("{}"),
        Case::new("the same origin without scheme", |_, seen| {
            match seen.path() {
                "/start" => to("302 Found", &format!("//{}/x", seen.field("host").unwrap())),
                _ => document(b"{}"),
            }
        })
        .gives("{}"),
        Case::steps("no Location", response("302 Found", &[], b"")),
        Case::steps("an empty Location", to("302 Found", "")),
        Case::steps(
            "two Locations",
            response("302 Found", &[("Location", "/a"), ("Location", "/b")], b""),
        ),
        Case::steps(
            "a Location that is not ASCII",
            to("302 Found", "/caf\u{e9}"),
        ),
        Case::new("a redirect with an endless body", |_, seen| {
            match seen.path() {
                "/start" => vec![
                    Step::Send(head(
                        "302 Found",
                        &[("Location", "/x"), ("Transfer-Encoding", "chunked")],
                    )),
                    Step::Flood(b"1\r\n \r\n".into()),
                ],
                _ => document(b"{}"),
            }
        })
        .gives("{}"),
        Case::new("a redirect with a bomb", |_, seen| match seen.path() {
            "/start" => response(
                "302 Found",
                &[("Location", "/x"), ("Content-Encoding", "gzip, gzip, gzip")],
                b"x",
            ),
            _ => document(b"{}"),
        })
        .gives("{}"),
        Case::steps(
            "a choice of several",
            response("300 Multiple Choices", &[("Location", "/x")], b""),
        )
        .fails_with(Code::Status, 300),
        Case::steps(
            "use a proxy",
            response("305 Use Proxy", &[("Location", "http://127.0.0.1:1/")], b""),
        )
        .fails_with(Code::Status, 305),
    ];
    for (name, location) in [
        ("another host", "http://127.0.0.2/x"),
        ("the world", "https://example.com/x"),
        ("another port", "http://127.0.0.1:1/x"),
        ("the default port", "http://127.0.0.1/x"),
        ("another host without scheme", "//example.com/x"),
        ("another host with backslashes", "\\\\example.com/x"),
        ("metadata", "http://169.254.169.254/latest"),
        ("a file", "file:///etc/passwd"),
        ("data", "data:application/odp+json,{}"),
        ("a script", "javascript:alert(1)"),
        ("gopher", "gopher://127.0.0.1:70/x"),
        ("no host", "http://"),
    ] {
        cases.push(Case::steps(name, to("302 Found", location)));
    }
    for (name, status) in [
        ("301 for a search", "301 Moved Permanently"),
        ("302 for a search", "302 Found"),
        ("303 for a search", "303 See Other"),
    ] {
        cases.push(Case::new(name, once(status, "/x")).search());
    }
    for (name, status) in [
        ("301", "301 Moved Permanently"),
        ("302", "302 Found"),
        ("303", "303 See Other"),
        ("307", "307 Temporary Redirect"),
        ("308", "308 Permanent Redirect"),
    ] {
        cases.push(Case::new(name, once(status, "x?y")).gives("{}"));
    }
    let refused = |case: Case| match case.expected {
        super::Expected::Failure(Code::InvalidResponse, None) => case.fails(Code::RedirectRefused),
        _ => case,
    };
    run(cases.into_iter().map(refused).collect()).await;
}

#[tokio::test]
async fn a_search_keeps_method_and_body() {
    for status in ["307 Temporary Redirect", "308 Permanent Redirect"] {
        let server = Server::start(once(status, "/moved")).await;
        let transport = local().build().unwrap();
        let search = Fetch::post(
            server.url("/start"),
            Class::Search,
            "{\"query\":\"x\"}".into(),
        );
        let fetched = fetch(&transport, search).await.unwrap();
        assert_eq!(fetched.url, server.url("/moved"));
        let seen = server.seen();
        assert_eq!(seen.len(), 2);
        for request in seen {
            assert!(request.head.starts_with("POST "), "{}", request.head);
            assert_eq!(request.body, b"{\"query\":\"x\"}");
            assert_eq!(request.field("content-type"), Some("application/odp+json"));
        }
    }
}

#[tokio::test]
async fn an_action_is_not_carried_out_twice_by_redirects() {
    let server =
        Server::start(|_, _| response("303 See Other", &[("Location", "/done"), ODP], b"")).await;
    let transport = local().build().unwrap();
    let mut action = Fetch::get(server.url("/buy"), Class::Invoke);
    action.method = Method::POST;
    let error = fetch(&transport, action).await.unwrap_err();
    assert_eq!(*error.code(), Code::RedirectRefused);
    assert_eq!(error.status(), Some(303));
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn the_url_that_answered_is_told() {
    let server = Server::start(once("301 Moved Permanently", "/.well-known/../odp#part")).await;
    let transport = local().build().unwrap();
    let fetched = fetch(&transport, page(server.url("/start"))).await.unwrap();
    assert_eq!(fetched.url, server.url("/odp"));
}
