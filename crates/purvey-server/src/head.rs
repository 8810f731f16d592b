//! What a request's head must be before anything looks at it: addressed to one host, and of bounded size.

use crate::front::Refusal;
use http::{HeaderMap, Uri, Version, header::HOST, request::Parts};
use std::net::Ipv6Addr;

/// Most bytes of a request's head; of HTTP/2 as its own limit counts them: names, values and 32 for each field.
pub(crate) const HEAD_BYTES: usize = 64 * 1_024;
/// Where the HTTP/2 library ends a request by itself, in that measure. Its answer is a status alone and cannot be another, so it is left to
/// what is far too large; each stream may hold this much.
pub(crate) const HTTP2_HEAD_BYTES: usize = 4 * HEAD_BYTES;

/// Whether a request that came over a connection can be answered.
pub(crate) fn check(parts: &Parts) -> Result<(), Refusal> {
    // Under HTTP/1 the library has counted.
    if parts.version == Version::HTTP_2 && size(parts) > HEAD_BYTES {
        return Err(Refusal::HeadTooLarge);
    }
    if is_addressed(parts.version, &parts.uri, &parts.headers) {
        Ok(())
    } else {
        Err(Refusal::Unaddressed)
    }
}

fn size(parts: &Parts) -> usize {
    const OVERHEAD: usize = 32;
    let target = parts.uri.path_and_query().map_or(0, |t| t.as_str().len());
    let fields = parts.headers.iter();
    fields
        .map(|(name, value)| name.as_str().len() + value.len() + OVERHEAD)
        .sum::<usize>()
        + target
}

/// Whether exactly one host is named, well: by `Host` (RFC 9112 §3.2; HTTP/1.0 may do without), or under HTTP/2 by `:authority`, which
/// `Host` must not contradict (RFC 9113 §8.3.1).
fn is_addressed(version: Version, uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let authority = match version {
        Version::HTTP_2 => uri.authority().map(http::uri::Authority::as_str),
        _ => None,
    };
    match (hosts.next(), hosts.next(), authority) {
        (_, Some(_), _) => false,
        (Some(host), None, authority) => {
            is_authority(host.as_bytes())
                && authority.is_none_or(|authority| {
                    authority.as_bytes().eq_ignore_ascii_case(host.as_bytes())
                })
        }
        (None, None, Some(authority)) => is_authority(authority.as_bytes()),
        (None, None, None) => matches!(version, Version::HTTP_10 | Version::HTTP_09),
    }
}

/// `host [":" port]` with a host that is not empty (RFC 3986 §3.2.2, RFC 9110 §4.2).
fn is_authority(text: &[u8]) -> bool {
    let (host, port) = match text.strip_prefix(b"[") {
        Some(rest) => {
            let Some(end) = rest.iter().position(|&b| b == b']') else {
                return false;
            };
            let (address, after) = (&rest[..end], &rest[end + 1..]);
            if std::str::from_utf8(address).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok()) {
                (&b"v6"[..], after)
            } else {
                return false;
            }
        }
        None => {
            let end = text.iter().position(|&b| b == b':');
            text.split_at(end.unwrap_or(text.len()))
        }
    };
    let port = match port.split_first() {
        None => true,
        Some((b':', digits)) => {
            digits.iter().all(u8::is_ascii_digit) && (digits.is_empty() || is_port(digits))
        }
        Some(_) => false,
    };
    port && !host.is_empty() && is_name(host)
}

fn is_port(digits: &[u8]) -> bool {
    std::str::from_utf8(digits).is_ok_and(|digits| digits.parse::<u16>().is_ok())
}

fn is_name(mut name: &[u8]) -> bool {
    loop {
        name = match name {
            [] => return true,
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                rest
            }
            [byte, rest @ ..]
                if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(byte) =>
            {
                rest
            }
            _ => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn addressed(version: Version, uri: &str, hosts: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, HeaderValue::from_str(host).unwrap());
        }
        is_addressed(version, &uri.parse().unwrap(), &headers)
    }

    #[test]
    fn http_1_has_exactly_one_well_formed_host() {
        for host in [
            "example.com",
            "127.0.0.1:8080",
            "[::1]",
            "[2001:db8::7]:443",
            "localhost:",
            "a%20b",
            "under_score",
        ] {
            assert!(addressed(Version::HTTP_11, "/", &[host]), "{host}");
        }
        for host in [
            "",
            ":80",
            "a b",
            "user@example.com",
            "example.com/path",
            "a:b",
            "a:1:2",
            "a:65536",
            "[::1",
            "::1",
            "[::1]x",
            "[1.2.3.4]",
            "a%2",
            "\"a\"",
        ] {
            assert!(!addressed(Version::HTTP_11, "/", &[host]), "{host}");
        }
        assert!(!addressed(Version::HTTP_11, "/", &[]));
        assert!(!addressed(Version::HTTP_11, "/", &["a", "a"]));
        // A target that names a host does not replace the field.
        assert!(!addressed(Version::HTTP_11, "http://a/", &[]));
        assert!(addressed(Version::HTTP_10, "/", &[]));
        assert!(!addressed(Version::HTTP_10, "/", &["a", "b"]));
    }

    #[test]
    fn http_2_has_an_authority_that_host_does_not_contradict() {
        let uri = "http://Example.com:80/";
        assert!(addressed(Version::HTTP_2, uri, &[]));
        assert!(addressed(Version::HTTP_2, uri, &["example.COM:80"]));
        assert!(addressed(Version::HTTP_2, "/", &["example.com"]));
        assert!(!addressed(Version::HTTP_2, "/", &[]));
        assert!(!addressed(Version::HTTP_2, uri, &["other.example"]));
        assert!(!addressed(Version::HTTP_2, "http://u@example.com/", &[]));
    }
}
