//! Content codings: which one a request prefers, and the bytes in it.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header::ACCEPT_ENCODING};
use std::io::{self, Write};

/// Bodies up to this many bytes are never coded: the coding would cost more than it saves.
const SMALLEST: usize = 1_024;
/// Larger bodies are coded off the request threads, in bytes.
const INLINE: usize = 64 * 1_024;

/// A content coding that we produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// As it is.
    Identity,
    /// `zstd`
    Zstd,
    /// `br`
    Brotli,
    /// `gzip`
    Gzip,
}

impl Coding {
    /// The coding for a body of `len` bytes: the one with the highest weight that the request accepts, of equals the one that
    /// is cheapest to make.
    pub(crate) fn choose(headers: &HeaderMap, len: usize) -> Self {
        if len <= SMALLEST || !headers.contains_key(ACCEPT_ENCODING) {
            return Self::Identity;
        }
        let mut wanted = Wanted::default();
        for value in headers.get_all(ACCEPT_ENCODING) {
            wanted.read(value.to_str().unwrap_or_default());
        }
        let any = wanted.any.unwrap_or(0);
        // Unnamed, identity stays acceptable but comes last.
        let mut best = (wanted.identity.unwrap_or(0), Self::Identity);
        for (weight, coding) in [
            (wanted.zstd, Self::Zstd),
            (wanted.brotli, Self::Brotli),
            (wanted.gzip, Self::Gzip),
        ] {
            let weight = weight.unwrap_or(any);
            let wins = weight > best.0 || (weight == best.0 && best.1 == Self::Identity);
            if weight > 0 && wins {
                best = (weight, coding);
            }
        }
        best.1
    }

    /// What an entity tag says of the coding.
    pub(crate) fn etag_suffix(self) -> &'static str {
        match self {
            Self::Identity => "",
            Self::Zstd => "-zstd",
            Self::Brotli => "-br",
            Self::Gzip => "-gzip",
        }
    }

    /// `Content-Encoding`; none for identity.
    pub(crate) fn header(self) -> Option<HeaderValue> {
        match self {
            Self::Identity => None,
            Self::Zstd => Some(HeaderValue::from_static("zstd")),
            Self::Brotli => Some(HeaderValue::from_static("br")),
            Self::Gzip => Some(HeaderValue::from_static("gzip")),
        }
    }

    /// `body` in this coding.
    ///
    /// # Errors
    /// The encoder failed, which takes exhausted memory.
    pub(crate) async fn encode(self, body: Bytes) -> io::Result<Bytes> {
        if self == Self::Identity {
            Ok(body)
        } else if body.len() <= INLINE {
            self.encode_now(&body)
        } else {
            tokio::task::spawn_blocking(move || self.encode_now(&body))
                .await
                .map_err(io::Error::other)?
        }
    }

    fn encode_now(self, body: &[u8]) -> io::Result<Bytes> {
        let mut out = Vec::with_capacity(body.len() / 3);
        match self {
            Self::Identity => out.extend_from_slice(body),
            Self::Zstd => out = zstd::bulk::compress(body, 3)?,
            Self::Brotli => {
                let mut writer = brotli::CompressorWriter::new(&mut out, 16 * 1_024, 4, 20);
                writer.write_all(body)?;
                writer.flush()?;
                drop(writer);
            }
            Self::Gzip => {
                let level = flate2::Compression::new(5);
                let mut writer = flate2::write::GzEncoder::new(&mut out, level);
                writer.write_all(body)?;
                writer.finish()?;
            }
        }
        Ok(out.into())
    }
}

/// Weights in thousandths; `None`: not named.
#[derive(Default)]
struct Wanted {
    identity: Option<u16>,
    zstd: Option<u16>,
    brotli: Option<u16>,
    gzip: Option<u16>,
    any: Option<u16>,
}

impl Wanted {
    fn read(&mut self, value: &str) {
        for element in value.split(',') {
            let (name, parameters) = element.split_once(';').unwrap_or((element, ""));
            let Some(weight) = weight(parameters) else {
                continue;
            };
            let name = name.trim();
            let slot = if name.eq_ignore_ascii_case("zstd") {
                &mut self.zstd
            } else if name.eq_ignore_ascii_case("br") {
                &mut self.brotli
            } else if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") {
                &mut self.gzip
            } else if name.eq_ignore_ascii_case("identity") {
                &mut self.identity
            } else if name == "*" {
                &mut self.any
            } else {
                continue;
            };
            *slot = Some(weight);
        }
    }
}

/// The weight `q` in thousandths, 1,000 when absent, `None` when malformed (RFC 9110 §12.4.2).
fn weight(parameters: &str) -> Option<u16> {
    let parameters = parameters.trim();
    if parameters.is_empty() {
        return Some(1_000);
    }
    let (name, value) = parameters.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    let (whole, fraction) = value.trim().split_once('.').unwrap_or((value.trim(), ""));
    if fraction.len() > 3 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let thousandths = format!("{fraction:0<3}").parse::<u16>().ok()?;
    match (whole, thousandths) {
        ("0", thousandths) => Some(thousandths),
        ("1", 0) => Some(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn choose(accept: &'static str, len: usize) -> Coding {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(accept));
        Coding::choose(&headers, len)
    }

    #[test]
    fn the_highest_weight_wins_and_equals_go_to_the_cheapest() {
        for (accept, coding) in [
            ("gzip, deflate, br, zstd", Coding::Zstd),
            ("gzip, br", Coding::Brotli),
            ("br;q=0.5, gzip;q=0.8", Coding::Gzip),
            ("GZIP", Coding::Gzip),
            ("gzip;q=0, *", Coding::Zstd),
            ("*;q=0", Coding::Identity),
            ("gzip;q=0", Coding::Identity),
            ("identity, gzip;q=0.9", Coding::Identity),
            ("identity;q=0.9, gzip;q=0.9", Coding::Gzip),
            ("deflate", Coding::Identity),
            ("gzip;q=2", Coding::Identity),
            ("gzip;level=9", Coding::Identity),
            ("", Coding::Identity),
        ] {
            assert_eq!(choose(accept, 5_000), coding, "{accept}");
        }
    }

    #[test]
    fn tiny_bodies_stay_as_they_are() {
        assert_eq!(choose("gzip", 1_024), Coding::Identity);
        assert_eq!(choose("gzip", 1_025), Coding::Gzip);
        assert_eq!(Coding::choose(&HeaderMap::new(), 5_000), Coding::Identity);
    }

    #[tokio::test]
    async fn every_coding_decodes_to_the_body() {
        for len in [2_000, 200_000] {
            let body = Bytes::from(b"catalog ".repeat(len / 8));
            let gzip = Coding::Gzip.encode(body.clone()).await.unwrap();
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(&gzip[..])
                .read_to_end(&mut plain)
                .unwrap();
            assert_eq!(plain, body);
            let zstd = Coding::Zstd.encode(body.clone()).await.unwrap();
            assert_eq!(zstd::bulk::decompress(&zstd, len).unwrap(), body);
            let br = Coding::Brotli.encode(body.clone()).await.unwrap();
            plain.clear();
            brotli::Decompressor::new(&br[..], 4_096)
                .read_to_end(&mut plain)
                .unwrap();
            assert_eq!(plain, body);
            assert!([gzip, zstd, br].iter().all(|coded| coded.len() < len / 4));
        }
    }
}
