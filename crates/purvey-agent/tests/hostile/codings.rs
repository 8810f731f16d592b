//! Content codings: bombs, nests, ruins.

use super::transport_support::{ODP, Step, head, response};
use super::{Case, run};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use purvey_agent::Code;
use std::io::{Read, Write};

const PLAIN: &[u8] = b"{\"odp_version\":\"1.0\",\"items\":[]}";

/// `bytes` in a coding. `raw` is deflate without its header.
fn coded(coding: &str, bytes: &[u8]) -> Vec<u8> {
    let best = Compression::best();
    match coding {
        "gzip" => written(GzEncoder::new(Vec::new(), best), bytes, GzEncoder::finish),
        "deflate" => written(
            ZlibEncoder::new(Vec::new(), best),
            bytes,
            ZlibEncoder::finish,
        ),
        "raw" => written(
            DeflateEncoder::new(Vec::new(), best),
            bytes,
            DeflateEncoder::finish,
        ),
        "zstd" => zstd::encode_all(bytes, 3).unwrap(),
        "br" => {
            let mut out = Vec::new();
            let mut encoder = brotli::CompressorWriter::new(&mut out, 4_096, 5, 22);
            encoder.write_all(bytes).unwrap();
            drop(encoder);
            out
        }
        other => panic!("{other}"),
    }
}

fn written<E: Write>(
    mut encoder: E,
    bytes: &[u8],
    finish: impl FnOnce(E) -> std::io::Result<Vec<u8>>,
) -> Vec<u8> {
    encoder.write_all(bytes).unwrap();
    finish(encoder).unwrap()
}

fn with_coding(coding: &str, body: &[u8]) -> Vec<Step> {
    response("200 OK", &[ODP, ("Content-Encoding", coding)], body)
}

/// Brotli with a window of 26 bits, which is not of RFC 7932 and which readers have to be told to take.
fn with_giant_window() -> Vec<u8> {
    let params = brotli::enc::BrotliEncoderParams {
        large_window: true,
        lgwin: 26,
        ..Default::default()
    };
    let (mut body, mut plain) = (Vec::new(), Vec::new());
    brotli::BrotliCompress(&mut &*PLAIN, &mut body, &params).unwrap();
    brotli::Decompressor::new(&*body, 4_096)
        .read_to_end(&mut plain)
        .unwrap();
    assert_eq!(plain, PLAIN);
    body
}

const CODINGS: [(&str, &str); 5] = [
    ("gzip", "gzip"),
    ("deflate", "deflate"),
    ("deflate", "raw"),
    ("br", "br"),
    ("zstd", "zstd"),
];

#[tokio::test(flavor = "multi_thread")]
async fn codings_are_undone() {
    let twice = |inner, outer| coded(outer, &coded(inner, PLAIN));
    let members = [
        coded("gzip", b"{\"odp_version\":\"1.0\","),
        coded("gzip", b"\"items\":[]}"),
    ]
    .concat();
    let frames = [
        coded("zstd", b"{\"odp_version\":\"1.0\","),
        coded("zstd", b"\"items\":[]}"),
    ]
    .concat();
    let limit = vec![b' '; 524_288];
    let mut cases = vec![
        Case::steps("x-gzip", with_coding("x-gzip", &coded("gzip", PLAIN))).gives(PLAIN),
        Case::steps("upper case", with_coding("GZip", &coded("gzip", PLAIN))).gives(PLAIN),
        Case::steps("identity", with_coding("identity", PLAIN)).gives(PLAIN),
        Case::steps("an empty list", with_coding(" , ", PLAIN)).gives(PLAIN),
        Case::steps(
            "gzip, then br",
            with_coding("gzip, br", &twice("gzip", "br")),
        )
        .gives(PLAIN),
        Case::steps(
            "zstd, then deflate",
            with_coding("zstd,deflate", &twice("zstd", "deflate")),
        )
        .gives(PLAIN),
        Case::steps(
            "gzip twice",
            with_coding("gzip,gzip", &twice("gzip", "gzip")),
        )
        .gives(PLAIN),
        Case::steps(
            "two fields",
            response(
                "200 OK",
                &[
                    ODP,
                    ("Content-Encoding", "br"),
                    ("Content-Encoding", "gzip"),
                ],
                &twice("br", "gzip"),
            ),
        )
        .gives(PLAIN),
        Case::steps("gzip of several members", with_coding("gzip", &members)).gives(PLAIN),
        Case::steps("zstd of several frames", with_coding("zstd", &frames)).gives(PLAIN),
    ];
    for (name, (coding, form)) in ["gzip", "zlib", "raw deflate", "br", "zstd"]
        .into_iter()
        .zip(CODINGS)
    {
        cases.push(Case::steps(name, with_coding(coding, &coded(form, PLAIN))).gives(PLAIN));
    }
    for (name, (coding, form)) in [
        "gzip of the limit",
        "zlib of the limit",
        "raw deflate of the limit",
        "br of the limit",
        "zstd of the limit",
    ]
    .into_iter()
    .zip(CODINGS)
    {
        cases.push(
            Case::steps(name, with_coding(coding, &coded(form, &limit))).gives(limit.clone()),
        );
    }
    for (name, (coding, form)) in [
        "gzip byte by byte",
        "zlib byte by byte",
        "raw deflate byte by byte",
        "br byte by byte",
        "zstd byte by byte",
    ]
    .into_iter()
    .zip(CODINGS)
    {
        let body = coded(form, b"{}");
        let length = body.len().to_string();
        let fields = [
            ODP,
            ("Content-Encoding", coding),
            ("Content-Length", length.as_str()),
        ];
        cases.push(
            Case::steps(
                name,
                vec![Step::Send(head("200 OK", &fields)), Step::Drip(body)],
            )
            .gives("{}"),
        );
    }
    run(cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ruined_codings_are_errors() {
    let mut cases = vec![
        Case::steps("an unknown coding", with_coding("lzma", PLAIN)),
        Case::steps(
            "a coding that was not offered",
            with_coding("compress", PLAIN),
        ),
        Case::steps(
            "an unknown coding beside a known one",
            with_coding("gzip, aes", &coded("gzip", PLAIN)),
        ),
        Case::steps(
            "three codings",
            with_coding(
                "gzip, gzip, gzip",
                &coded("gzip", &coded("gzip", &coded("gzip", PLAIN))),
            ),
        ),
        Case::steps(
            "a thousand codings",
            with_coding(&vec!["gzip"; 1_000].join(","), PLAIN),
        ),
        Case::steps(
            "a coding that is not ASCII",
            with_coding("gz\u{ef}p", PLAIN),
        ),
        Case::steps(
            "codings in the wrong order",
            with_coding("br, gzip", &coded("br", &coded("gzip", PLAIN))),
        ),
        Case::steps("an outer coding that is cut", {
            let body = coded("gzip", &coded("zstd", PLAIN));
            with_coding("zstd, gzip", &body[..body.len() - 9])
        }),
        Case::steps("an inner coding that is cut", {
            let inner = coded("zstd", PLAIN);
            with_coding("zstd, gzip", &coded("gzip", &inner[..inner.len() - 3]))
        }),
        // A window of 128 MiB: twice what a content coding may use, and then some.
        Case::steps(
            "zstd with a giant window",
            with_coding(
                "zstd",
                &[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88, 0x01, 0x00, 0x00],
            ),
        ),
        Case::steps(
            "br with a giant window",
            with_coding("br", &with_giant_window()),
        ),
        Case::steps("gzip with a wrong checksum", {
            let mut body = coded("gzip", PLAIN);
            let at = body.len() - 8;
            body[at] ^= 1;
            with_coding("gzip", &body)
        }),
        Case::steps("gzip with a wrong length", {
            let mut body = coded("gzip", PLAIN);
            let at = body.len() - 1;
            body[at] ^= 1;
            with_coding("gzip", &body)
        }),
        Case::steps("zlib with a wrong checksum", {
            let mut body = coded("deflate", PLAIN);
            let at = body.len() - 1;
            body[at] ^= 1;
            with_coding("deflate", &body)
        }),
    ];
    for (name, (coding, form)) in [
        "gzip cut",
        "zlib cut",
        "raw deflate cut",
        "br cut",
        "zstd cut",
    ]
    .into_iter()
    .zip(CODINGS)
    {
        let body = coded(form, PLAIN);
        cases.push(Case::steps(
            name,
            with_coding(coding, &body[..body.len() - 2]),
        ));
    }
    for (name, (coding, form)) in [
        "gzip and more",
        "zlib and more",
        "raw deflate and more",
        "br and more",
        "zstd and more",
    ]
    .into_iter()
    .zip(CODINGS)
    {
        cases.push(Case::steps(
            name,
            with_coding(coding, &[coded(form, PLAIN), b"more".to_vec()].concat()),
        ));
    }
    for (name, coding) in [
        ("plain text as gzip", "gzip"),
        ("plain text as deflate", "deflate"),
        ("plain text as br", "br"),
        ("plain text as zstd", "zstd"),
    ] {
        cases.push(Case::steps(name, with_coding(coding, PLAIN)));
    }
    for (name, coding) in [
        ("one byte of gzip", "gzip"),
        ("one byte of deflate", "deflate"),
        ("one byte of br", "br"),
        ("one byte of zstd", "zstd"),
    ] {
        cases.push(Case::steps(name, with_coding(coding, &[0x1f])));
    }
    run(cases
        .into_iter()
        .map(|case| case.fails(Code::InvalidResponse))
        .collect())
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bombs_do_not_go_off() {
    let zeros = vec![0; 64 * 1_048_576];
    let one_more = vec![b' '; 524_289];
    let mut cases = Vec::new();
    for (name, (coding, form)) in [
        "a gzip bomb",
        "a zlib bomb",
        "a raw deflate bomb",
        "a br bomb",
        "a zstd bomb",
    ]
    .into_iter()
    .zip(CODINGS)
    {
        cases.push(Case::steps(name, with_coding(coding, &coded(form, &zeros))));
    }
    for (name, (coding, form)) in [
        "gzip past the limit",
        "zlib past the limit",
        "raw deflate past the limit",
        "br past the limit",
        "zstd past the limit",
    ]
    .into_iter()
    .zip(CODINGS)
    {
        cases.push(Case::steps(
            name,
            with_coding(coding, &coded(form, &one_more)),
        ));
    }
    for (name, inner, outer) in [
        ("a gzip bomb in gzip", "gzip", "gzip"),
        ("a gzip bomb in br", "gzip", "br"),
        ("a br bomb in zstd", "br", "zstd"),
        ("a zstd bomb in deflate", "zstd", "deflate"),
    ] {
        let body = coded(outer, &coded(inner, &zeros));
        cases.push(Case::steps(
            name,
            with_coding(&format!("{inner}, {outer}"), &body),
        ));
    }
    let flood = |coding, start: &[u8], again: &[u8]| {
        vec![
            Step::Send(head("200 OK", &[ODP, ("Content-Encoding", coding)])),
            Step::Send(start.to_vec()),
            Step::Flood(again.to_vec()),
        ]
    };
    cases.extend([
        // Each of these makes nothing out of endless input.
        Case::steps(
            "gzip of empty members without end",
            flood("gzip", &[], &coded("gzip", b"")),
        ),
        Case::steps(
            "deflate of empty blocks without end",
            flood("deflate", &[0x78, 0x9c], &[0, 0, 0, 0xff, 0xff]),
        ),
        Case::steps(
            "zstd of skipped frames without end",
            flood(
                "zstd",
                &[],
                &[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4],
            ),
        ),
        Case::steps(
            "zstd of empty frames without end",
            flood("zstd", &[], &coded("zstd", b"")),
        ),
        // The bomb has gone off by then: what follows is not waited for.
        Case::steps("a bomb that goes on slowly", {
            let mut steps = flood("zstd", &coded("zstd", &zeros), b"");
            steps[2] = Step::Hang;
            steps
        }),
    ]);
    let cases = cases
        .into_iter()
        .map(|case| case.fails(Code::ResponseLimitExceeded));
    let mut cases: Vec<_> = cases.collect();
    cases.push(
        Case::steps(
            "gzip with a name without end",
            flood("gzip", &[0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3], b"n"),
        )
        .fails(Code::InvalidResponse),
    );
    let problem = [
        ("Content-Type", "application/problem+json"),
        ("Content-Encoding", "gzip"),
    ];
    cases.push(
        Case::steps(
            "a bomb for a problem",
            response("403 Forbidden", &problem, &coded("gzip", &zeros)),
        )
        .fails_with(Code::Status, 403),
    );
    run(cases).await;
}
