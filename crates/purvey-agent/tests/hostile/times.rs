//! Slowness.

use super::transport_support::{ODP, Step, head};
use super::{Case, run};
use purvey_agent::Code;
use purvey_agent::transport::Class;

fn odp(more: (&str, &str)) -> Step {
    Step::Send(head("200 OK", &[ODP, more]))
}

fn send(text: &str) -> Step {
    Step::Send(text.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn slowness_ends() {
    let chunked = || odp(("Transfer-Encoding", "chunked"));
    let sized = || odp(("Content-Length", "10"));
    let cases = [
        ("nothing is said", vec![Step::Hang]),
        (
            "a header that stops",
            vec![send("HTTP/1.1 200 OK\r\nContent-"), Step::Hang],
        ),
        (
            "a header without its end",
            vec![send("HTTP/1.1 200 OK\r\nA: b\r\n"), Step::Hang],
        ),
        (
            "a header byte by byte",
            vec![Step::Drip(head("200 OK", &[("X", &"x".repeat(500))]))],
        ),
        (
            "header fields one by one",
            vec![
                send("HTTP/1.1 200 OK\r\n"),
                Step::Trickle(b"A: b\r\n".into()),
            ],
        ),
        (
            "100 Continue for ever",
            vec![Step::Trickle(head("100 Continue", &[]))],
        ),
        (
            "103 Early Hints for ever",
            vec![Step::Trickle(head("103 Early Hints", &[("Link", "</a>")]))],
        ),
        ("a body that does not begin", vec![sized(), Step::Hang]),
        (
            "a body that stops",
            vec![sized(), send("{\"a\""), Step::Hang],
        ),
        (
            "a chunked body that does not begin",
            vec![chunked(), Step::Hang],
        ),
        (
            "a chunk size that stops",
            vec![chunked(), send("5"), Step::Hang],
        ),
        (
            "a chunk that stops",
            vec![chunked(), send("5\r\n{\"a"), Step::Hang],
        ),
        (
            "no last chunk",
            vec![chunked(), send("2\r\n{}\r\n"), Step::Hang],
        ),
        (
            "trailers that stop",
            vec![chunked(), send("2\r\n{}\r\n0\r\nA: "), Step::Hang],
        ),
        (
            "trailers that drip",
            vec![
                chunked(),
                send("2\r\n{}\r\n0\r\n"),
                Step::Trickle(b"a".into()),
            ],
        ),
        (
            "a body byte by byte for ever",
            vec![chunked(), Step::Trickle(b"1\r\n \r\n".into())],
        ),
        (
            "a body that has no end and no length",
            vec![
                Step::Send(head("200 OK", &[ODP])),
                Step::Trickle(b" ".into()),
            ],
        ),
        (
            "a coding that stops",
            vec![
                Step::Send(head(
                    "200 OK",
                    &[ODP, ("Content-Encoding", "gzip"), ("Content-Length", "99")],
                )),
                Step::Send(vec![0x1f, 0x8b, 8, 0]),
                Step::Hang,
            ],
        ),
    ];
    let mut cases: Vec<_> = cases
        .into_iter()
        .map(|(name, steps)| Case::steps(name, steps).fails(Code::Timeout))
        .collect();
    // They are bounded by time alone; nothing of them is kept.
    for (name, status) in [
        ("a flood of 100 Continue", "100 Continue"),
        ("a flood of 102 Processing", "102 Processing"),
    ] {
        let flood = vec![Step::Flood(head(status, &[]))];
        cases.push(Case::steps(name, flood).discarded().fails(Code::Timeout));
    }
    // The status is known by then, and that is what counts.
    let problem = ("Content-Type", "application/problem+json");
    cases.push(
        Case::steps(
            "a problem that stops",
            vec![
                Step::Send(head("404 Not Found", &[problem, ("Content-Length", "50")])),
                Step::Hang,
            ],
        )
        .fails_with(Code::Status, 404),
    );
    cases.push(
        Case::steps(
            "a problem that drips",
            vec![
                Step::Send(head(
                    "403 Forbidden",
                    &[problem, ("Transfer-Encoding", "chunked")],
                )),
                Step::Trickle(b"1\r\n \r\n".into()),
            ],
        )
        .fails_with(Code::Status, 403),
    );
    cases.push(
        Case::steps(
            "a failure whose body stops",
            vec![
                Step::Send(head("500 Oops", &[("Content-Length", "50")])),
                Step::Hang,
            ],
        )
        .fails_with(Code::Status, 500),
    );
    cases.push(
        Case::steps("an action that hangs", vec![Step::Hang])
            .class(Class::Invoke)
            .fails(Code::Timeout),
    );
    run(cases).await;
}
