//! Responses that are not proper HTTP, or not whole.

use super::transport_support::{ODP, Server, Step, document, fetch, head, local, page, response};
use super::{Case, run};
use purvey_agent::Code;
use purvey_agent::transport::Class;

fn raw(text: &str) -> Vec<Step> {
    vec![Step::Send(text.into()), Step::Close]
}

fn with(fields: &str, body: &str) -> Vec<Step> {
    raw(&format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/odp+json\r\n{fields}\r\n{body}"
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_http_is_an_error() {
    let chunked = |body: &str| with("Transfer-Encoding: chunked\r\n", body);
    let invalid = [
        ("a line that is no status line", raw("hello\r\n\r\n")),
        (
            "a greeting of another protocol",
            raw("220 mail.example ESMTP\r\n"),
        ),
        (
            "a document without header",
            raw("{\"odp_version\":\"1.0\"}\r\n\r\n"),
        ),
        ("an unknown version", raw("HTTP/3.0 200 OK\r\n\r\n")),
        ("a status that is no number", raw("HTTP/1.1 OK 200\r\n\r\n")),
        ("a status of two digits", raw("HTTP/1.1 20 OK\r\n\r\n")),
        ("a status of four digits", raw("HTTP/1.1 2000 OK\r\n\r\n")),
        ("a field without a name", with(": x\r\n", "{}")),
        ("a field without a colon", with("oops\r\n", "{}")),
        ("a field name with a space", with("A b: x\r\n", "{}")),
        (
            "a space before the colon",
            with("Content-Length : 2\r\n", "{}"),
        ),
        ("a field with a NUL", with("A: x\0y\r\n", "{}")),
        ("a folded field", with("A: x\r\n y\r\n", "{}")),
        (
            "two lengths that differ",
            with("Content-Length: 2\r\nContent-Length: 3\r\n", "{}"),
        ),
        (
            "two lengths in one field that differ",
            with("Content-Length: 2, 3\r\n", "{}"),
        ),
        ("a negative length", with("Content-Length: -2\r\n", "{}")),
        (
            "a length that is no number",
            with("Content-Length: two\r\n", "{}"),
        ),
        ("a length with a sign", with("Content-Length: +2\r\n", "{}")),
        (
            "a length past all numbers",
            with("Content-Length: 99999999999999999999\r\n", "{}"),
        ),
        (
            "a chunk size that is no number",
            chunked("two\r\n{}\r\n0\r\n\r\n"),
        ),
        ("a negative chunk size", chunked("-2\r\n{}\r\n0\r\n\r\n")),
        (
            "a chunk size past all numbers",
            chunked("fffffffffffffffff\r\n{}\r\n0\r\n\r\n"),
        ),
        (
            "a chunk longer than its size",
            chunked("2\r\n{}  \r\n0\r\n\r\n"),
        ),
        ("an empty chunk size", chunked("\r\n{}\r\n0\r\n\r\n")),
        (
            "a status of a part",
            response(
                "206 Partial Content",
                &[ODP, ("Content-Range", "bytes 0-1/9")],
                b"{}",
            ),
        ),
        (
            "a status without a body",
            vec![Step::Send(head("204 No Content", &[ODP]))],
        ),
        (
            "a status of things to come",
            response("202 Accepted", &[ODP], b"{}"),
        ),
        (
            "not modified since never",
            vec![Step::Send(head("304 Not Modified", &[("ETag", "\"a\"")]))],
        ),
    ];
    let lost = [
        ("a close before the header", vec![Step::Close]),
        ("a reset before the header", vec![Step::Reset]),
        ("a header that is cut", raw("HTTP/1.1 200 OK\r\nContent-Ty")),
        ("a body that is cut", with("Content-Length: 100\r\n", "{}")),
        ("a body that is missing", with("Content-Length: 1\r\n", "")),
        ("a chunk that is cut", chunked("9\r\n{}")),
        ("a last chunk that is missing", chunked("2\r\n{}\r\n")),
        ("a chunk size that is cut", chunked("2")),
        ("a last chunk that is cut", chunked("2\r\n{}\r\n0\r\n")),
        (
            "a reset within the body",
            vec![
                Step::Send(head("200 OK", &[ODP, ("Content-Length", "100")])),
                Step::Send(b"{".into()),
                Step::Reset,
            ],
        ),
        (
            "a reset within a chunk",
            vec![
                Step::Send(head("200 OK", &[ODP, ("Transfer-Encoding", "chunked")])),
                Step::Send(b"9\r\n{".into()),
                Step::Reset,
            ],
        ),
    ];
    let fine = [
        (
            "two lengths that agree",
            with("Content-Length: 2\r\nContent-Length: 2\r\n", "{}"),
        ),
        (
            "a length and chunks",
            with(
                "Content-Length: 9\r\nTransfer-Encoding: chunked\r\n",
                "2\r\n{}\r\n0\r\n\r\n",
            ),
        ),
        ("a body up to the close", with("", "{}")),
        (
            "chunks with extensions and trailers",
            chunked("1;a=b\r\n{\r\n1\r\n}\r\n0\r\nA: b\r\nContent-Type: text/html\r\n\r\n"),
        ),
        (
            "more than its length",
            with("Content-Length: 2\r\n", "{}HTTP/1.1 200 OK\r\n\r\n"),
        ),
        (
            "informational responses first",
            vec![
                Step::Send(head("100 Continue", &[])),
                Step::Send(head("103 Early Hints", &[("Link", "</a>")])),
                document(b"{}")[0].clone(),
            ],
        ),
        (
            "a reason that is empty",
            raw("HTTP/1.1 200 \r\nContent-Type: application/odp+json\r\n\r\n{}"),
        ),
        (
            "an old version",
            raw("HTTP/1.0 200 OK\r\nContent-Type: application/odp+json\r\n\r\n{}"),
        ),
    ];
    let mut cases = Vec::new();
    cases
        .extend(invalid.map(|(name, steps)| Case::steps(name, steps).fails(Code::InvalidResponse)));
    cases.extend(lost.map(|(name, steps)| Case::steps(name, steps).fails(Code::ConnectionLost)));
    cases.extend(fine.map(|(name, steps)| Case::steps(name, steps).gives("{}")));
    cases.push(
        Case::steps(
            "another protocol",
            vec![
                Step::Send(head(
                    "101 Switching Protocols",
                    &[("Upgrade", "x"), ("Connection", "upgrade")],
                )),
                Step::Hang,
            ],
        )
        .fails_with(Code::Status, 101),
    );
    cases.push(
        Case::steps(
            "an action without a response body",
            vec![Step::Send(head("204 No Content", &[]))],
        )
        .class(Class::Invoke)
        .gives(""),
    );
    run(cases).await;
}

/// What follows a body is not the next response.
#[tokio::test]
async fn a_response_nobody_asked_for_is_not_taken() {
    let server = Server::start(|_, _| {
        let mut steps = document(b"{}");
        steps.push(Step::Send(
            [
                head("200 OK", &[ODP, ("Content-Length", "6")]),
                b"forged".to_vec(),
            ]
            .concat(),
        ));
        steps
    })
    .await;
    let transport = local().build().unwrap();
    for _ in 0..5 {
        let fetched = fetch(&transport, page(server.url("/"))).await.unwrap();
        assert_eq!(fetched.body, "{}");
    }
}
