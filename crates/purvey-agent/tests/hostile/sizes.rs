//! Largeness.

use super::transport_support::{ODP, Step, document, head, response};
use super::{Case, run};
use purvey_agent::Code;
use purvey_agent::transport::Class;

const CHUNKED: (&str, &str) = ("Transfer-Encoding", "chunked");

/// A document of `size` bytes in one chunk.
fn in_a_chunk(size: usize) -> Vec<Step> {
    vec![
        Step::Send(head("200 OK", &[ODP, CHUNKED])),
        Step::Send(format!("{size:x}\r\n").into()),
        Step::Send(vec![b' '; size]),
        Step::Send(b"\r\n0\r\n\r\n".into()),
    ]
}

fn with_field(value: &str) -> Vec<Step> {
    response("200 OK", &[ODP, ("X-Large", value)], b"{}")
}

fn many_fields(count: usize) -> Vec<Step> {
    let fields: String = (0..count).map(|n| format!("X-{n}: a\r\n")).collect();
    let start = "HTTP/1.1 200 OK\r\nContent-Type: application/odp+json\r\nContent-Length: 2\r\n";
    vec![Step::Send(format!("{start}{fields}\r\n{{}}").into())]
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_have_limits() {
    let mut cases = vec![
        Case::steps("a page of the limit", document(&[b' '; 524_288])).gives([b' '; 524_288]),
        Case::steps("a chunked page of the limit", in_a_chunk(524_288)).gives([b' '; 524_288]),
        Case::steps("a header of many fields", many_fields(126)).gives("{}"),
        Case::steps(
            "a header of one large field",
            with_field(&"x".repeat(60_000)),
        )
        .gives("{}"),
        // Nothing of the body is waited for.
        Case::steps(
            "a length past the limit",
            vec![
                Step::Send(head("200 OK", &[ODP, ("Content-Length", "524289")])),
                Step::Hang,
            ],
        ),
        Case::steps(
            "the largest length",
            vec![
                Step::Send(head(
                    "200 OK",
                    &[ODP, ("Content-Length", "18446744073709551000")],
                )),
                Step::Hang,
            ],
        ),
        Case::steps("a page past the limit", document(&[b' '; 524_289])),
        Case::steps("a chunked page past the limit", in_a_chunk(524_289)),
        Case::steps("a search past the limit", document(&[b' '; 524_289])).search(),
        Case::steps(
            "a flood of chunks",
            vec![
                Step::Send(head("200 OK", &[ODP, CHUNKED])),
                Step::Flood(b"5\r\n12345\r\n".into()),
            ],
        ),
        Case::steps(
            "a flood without length",
            vec![Step::Send(head("200 OK", &[ODP])), Step::Flood(b" ".into())],
        ),
        Case::steps(
            "a chunk of a terabyte",
            vec![
                Step::Send(head("200 OK", &[ODP, CHUNKED])),
                Step::Send(b"10000000000\r\n".into()),
                Step::Flood(b" ".into()),
            ],
        ),
        Case::steps(
            "a flood of header fields",
            vec![
                Step::Send(b"HTTP/1.1 200 OK\r\n".into()),
                Step::Flood(b"A: b\r\n".into()),
            ],
        ),
        Case::steps(
            "a header field without end",
            vec![
                Step::Send(b"HTTP/1.1 200 OK\r\nA: ".into()),
                Step::Flood(b"b".into()),
            ],
        ),
        Case::steps(
            "a reason without end",
            vec![
                Step::Send(b"HTTP/1.1 200 ".into()),
                Step::Flood(b"b".into()),
            ],
        ),
        Case::steps("a header of too many fields", many_fields(127)),
        Case::steps(
            "a header of one field too large",
            with_field(&"x".repeat(65_536)),
        ),
    ];
    for (name, class, limit) in [
        (
            "a Service Document past the limit",
            Class::ServiceDocument,
            65_536,
        ),
        ("a Collection past the limit", Class::Collection, 524_288),
        ("an Offering past the limit", Class::Offering, 524_288),
        ("definitions past the limit", Class::Definitions, 524_288),
    ] {
        cases.push(Case::steps(name, document(&vec![b' '; limit + 1])).class(class));
    }
    for (name, class, media, limit) in [
        (
            "a schema past the limit",
            Class::AttributeSchema,
            "application/schema+json",
            262_144,
        ),
        (
            "an OpenAPI document past the limit",
            Class::OpenApi,
            "application/json",
            1_048_576,
        ),
        (
            "an image past the limit",
            Class::Image,
            "image/png",
            1_048_576,
        ),
        (
            "an action's response past the limit",
            Class::Invoke,
            "text/plain",
            1_000,
        ),
    ] {
        let steps = response("200 OK", &[("Content-Type", media)], &vec![b' '; limit + 1]);
        cases.push(Case::steps(name, steps).class(class));
    }
    let cases = cases.into_iter().map(|case| match case.expected {
        super::Expected::Body(_) => case,
        super::Expected::Failure(..) => case.fails(Code::ResponseLimitExceeded),
    });
    run(cases.collect()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_have_limits() {
    let chunked = |steps: Vec<Step>| {
        let mut all = vec![Step::Send(head("200 OK", &[ODP, CHUNKED]))];
        all.extend(steps);
        all
    };
    let send = |text: &str| Step::Send(text.into());
    run(vec![
        Case::steps(
            "a flood of trailers",
            chunked(vec![
                send("2\r\n{}\r\n0\r\n"),
                Step::Flood(b"A: b\r\n".into()),
            ]),
        ),
        Case::steps(
            "a trailer without end",
            chunked(vec![send("2\r\n{}\r\n0\r\nA: "), Step::Flood(b"b".into())]),
        ),
        Case::steps(
            "a chunk extension without end",
            chunked(vec![send("2;a="), Step::Flood(b"b".into())]),
        ),
        Case::steps(
            "a flood of chunk extensions",
            chunked(vec![Step::Flood(
                b"1;abcdefghijklmnopqrstuvwxyz\r\n \r\n".into(),
            )]),
        ),
        Case::steps(
            "a chunk size without end",
            chunked(vec![Step::Flood(b"0".into())]),
        )
        .discarded()
        .fails(Code::Timeout),
    ])
    .await;
}
