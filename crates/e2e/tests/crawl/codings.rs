//! Compressed answers.

use std::collections::BTreeSet;
use std::io::Read as _;

use crate::support::*;

#[test]
fn compressed_answers_decode_to_the_same_bytes() {
    let (_server, client) = demo();
    let page = client.operation("/offerings?limit=100&representation=full");
    let targets = [
        page.clone(),
        client.operation("/collections?limit=100"),
        "/.well-known/odp".to_owned(),
        "/schemas/tool.json".to_owned(),
        client.operation("/offerings/course-bag-leather"),
    ];
    for target in &targets {
        let plain = client.get(target).expect_status(200);
        assert_eq!(plain.header("content-encoding"), None);
        let mut tags = BTreeSet::from([plain.header("etag").unwrap().to_owned()]);
        for coding in ["gzip", "br", "zstd"] {
            let coded = client
                .ask("GET", target, &[("accept-encoding", coding)])
                .expect_status(200);
            // Bodies of up to a kibibyte are not worth it.
            if plain.body.len() <= 1_024 {
                assert_eq!(coded.header("content-encoding"), None);
                assert_eq!(coded.body, plain.body);
                continue;
            }
            assert_eq!(coded.header("content-encoding"), Some(coding), "{target}");
            assert!(coded.body.len() < plain.body.len(), "{coding} {target}");
            assert_eq!(
                decoded(coding, &coded.body),
                plain.body,
                "{coding} {target}"
            );
            let tag = coded.header("etag").unwrap();
            assert!(tags.insert(tag.to_owned()), "another coding, another tag");
            let headers = [("accept-encoding", coding), ("if-none-match", tag)];
            assert_eq!(
                client.ask("GET", target, &headers).status,
                304,
                "{coding} {target}"
            );
            // The tag of one coding is none of another.
            assert_eq!(
                client.ask("GET", target, &[("if-none-match", tag)]).status,
                200
            );
        }
    }
    // The page is large enough that the loop above has compressed something.
    assert!(client.get(&page).body.len() > 50_000);
}

fn decoded(coding: &str, bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match coding {
        "gzip" => flate2::read::GzDecoder::new(bytes)
            .read_to_end(&mut plain)
            .unwrap(),
        "br" => brotli::Decompressor::new(bytes, 4_096)
            .read_to_end(&mut plain)
            .unwrap(),
        "zstd" => zstd::Decoder::new(bytes)
            .unwrap()
            .read_to_end(&mut plain)
            .unwrap(),
        other => panic!("{other}?"),
    };
    plain
}
