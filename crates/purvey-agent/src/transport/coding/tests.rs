use super::*;
use http::HeaderValue;
use proptest::prelude::*;
use std::io::Read;

const CODINGS: [&str; 5] = ["gzip", "deflate", "raw", "br", "zstd"];

fn encoded(form: &str, bytes: &[u8]) -> Vec<u8> {
    let level = flate2::Compression::default();
    let mut out = Vec::new();
    match form {
        "gzip" => flate2::read::GzEncoder::new(bytes, level).read_to_end(&mut out),
        "deflate" => flate2::read::ZlibEncoder::new(bytes, level).read_to_end(&mut out),
        "raw" => flate2::read::DeflateEncoder::new(bytes, level).read_to_end(&mut out),
        "br" => brotli::CompressorReader::new(bytes, 4_096, 4, 18).read_to_end(&mut out),
        _ => zstd::stream::read::Encoder::new(bytes, 3).and_then(|mut r| r.read_to_end(&mut out)),
    }
    .unwrap();
    out
}

fn decoder(codings: &[&str], limit: usize) -> Result<Decoder, Fault> {
    let names = codings
        .iter()
        .map(|form| if *form == "raw" { "deflate" } else { form });
    let field = names.collect::<Vec<_>>().join(", ");
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_ENCODING,
        HeaderValue::try_from(field).unwrap(),
    );
    Decoder::new(&headers, limit)
}

fn decoded(codings: &[&str], limit: usize, body: &[u8], piece: usize) -> Result<Vec<u8>, Fault> {
    let mut decoder = decoder(codings, limit)?;
    for piece in body.chunks(piece) {
        decoder.push(piece)?;
    }
    decoder.finish()
}

fn coding() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&CODINGS[..])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// What was encoded comes back, however it is cut on its way; and whole alone.
    #[test]
    fn there_and_back(
        first in coding(),
        second in prop::option::of(coding()),
        bytes in prop::collection::vec(0..4_u8, 1..20_000),
        piece in 1..5_000_usize,
        missing in 1..4_usize,
    ) {
        let mut codings = vec![first];
        let mut body = encoded(first, &bytes);
        if let Some(second) = second {
            codings.push(second);
            body = encoded(second, &body);
        }
        prop_assert_eq!(decoded(&codings, bytes.len(), &body, piece), Ok(bytes.clone()));
        prop_assert_eq!(decoded(&codings, bytes.len() - 1, &body, piece), Err(Fault::TooLarge));
        let cut = &body[..body.len() - missing];
        prop_assert!(decoded(&codings, bytes.len(), cut, piece).is_err());
        let more = [body.as_slice(), b"~"].concat();
        prop_assert!(decoded(&codings, bytes.len(), &more, piece).is_err());
    }

    /// Ruined and random bytes are refused or not, but never more comes out than the limit, and nothing breaks.
    #[test]
    fn anything_at_all(
        first in coding(),
        second in prop::option::of(coding()),
        bytes in prop::collection::vec(any::<u8>(), 0..2_000),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        random in any::<bool>(),
        piece in 1..500_usize,
    ) {
        let codings: Vec<_> = std::iter::once(first).chain(second).collect();
        let mut body = match random {
            true => bytes,
            false => codings.iter().fold(bytes, |bytes, form| encoded(form, &bytes)),
        };
        for (at, value) in flips {
            if !body.is_empty() {
                let at = at.index(body.len());
                body[at] = value;
            }
        }
        if let Ok(bytes) = decoded(&codings, 1_000, &body, piece) {
            prop_assert!(bytes.len() <= 1_000);
        }
    }
}
