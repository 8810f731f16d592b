//! ORIGIN: which Service is meant.

use crate::failure::Failure;
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use purvey_odp::reference::ResourceReference;
use url::Url;

/// The origin that `text` names: whole, or a host and perhaps a port, which means `https`; with `--local`, `http` for a host
/// of this machine.
pub(crate) fn parse(text: &str, local: LocalDevelopment) -> Result<ServiceOrigin, Failure> {
    if text.contains('@') {
        // Not shown: what stands before it may be a password.
        return Err(Failure::usage("ORIGIN has no user name and no password")
            .hint("a credential goes into PURVEY_TOKEN"));
    }
    let wrong = |why: &str| Failure::usage(format_args!("ORIGIN {text:?} {why}"));
    let example = "for example market.example, or https://market.example:8443";
    let url = match text.contains("://") {
        true => Url::parse(text),
        false => Url::parse(&format!("https://{text}")).map(|url| with_scheme(url, text, local)),
    };
    let url = url.map_err(|_| wrong("is no host and no origin").hint(example))?;
    let allowed = ServiceOrigin::from_url(&url, LocalDevelopment::Allowed);
    let Ok(origin) = allowed else {
        return Err(match url.scheme() {
            "http" => wrong("is no Service: only https is").hint(match local {
                LocalDevelopment::Refused => "--local allows http on localhost",
                LocalDevelopment::Allowed => {
                    "--local allows http on localhost, 127.0.0.1 and [::1], written like this"
                }
            }),
            "https" => wrong("has no host that a Service can have").hint(example),
            _ => wrong("is no Service: only https is").hint(example),
        });
    };
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("is an address of something at a Service")
            .hint(format_args!("its origin is {}", origin.as_str())));
    }
    if url.scheme() == "http" && !is_literal(text) {
        return Err(wrong(
            "is http, which needs a host that is literally localhost, 127.0.0.1 or [::1]",
        ));
    }
    if url.scheme() == "http" && local == LocalDevelopment::Refused {
        return Err(wrong("is http, which is for local development").hint("allow it with --local"));
    }
    Ok(origin)
}

/// The same with `http` if that is what a bare host of this machine means.
fn with_scheme(url: Url, text: &str, local: LocalDevelopment) -> Url {
    if local == LocalDevelopment::Allowed && is_literal(text) {
        return Url::parse(&format!("http://{text}")).unwrap_or(url);
    }
    url
}

/// Whether the host is written as one that local development is allowed with; another spelling of its address is not (ODP §1).
fn is_literal(text: &str) -> bool {
    let whole = match text.contains("://") {
        true => text.to_owned(),
        false => format!("http://{text}"),
    };
    ResourceReference::parse(&whole, LocalDevelopment::Allowed).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use LocalDevelopment::{Allowed, Refused};

    fn origin(text: &str, local: LocalDevelopment) -> String {
        parse(text, local).unwrap().as_str().to_owned()
    }

    fn refused(text: &str, local: LocalDevelopment, parts: &[&str]) {
        let failure = format!("{:?}", parse(text, local).unwrap_err());
        for part in parts {
            assert!(failure.contains(part), "{text}: {failure}");
        }
    }

    #[test]
    fn a_host_means_https() {
        for (text, expected) in [
            ("market.example", "https://market.example"),
            ("Market.Example:8443", "https://market.example:8443"),
            ("market.example/", "https://market.example"),
            ("https://market.example:443/", "https://market.example"),
            ("bücher.example", "https://xn--bcher-kva.example"),
            ("localhost:8080", "https://localhost:8080"),
        ] {
            assert_eq!(origin(text, Refused), expected);
        }
    }

    #[test]
    fn local_hosts_mean_http_when_allowed() {
        for (text, expected) in [
            ("localhost:8080", "http://localhost:8080"),
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("[::1]:8080", "http://[::1]:8080"),
            ("http://localhost", "http://localhost"),
            ("https://localhost", "https://localhost"),
            ("market.example", "https://market.example"),
        ] {
            assert_eq!(origin(text, Allowed), expected);
        }
    }

    #[test]
    fn other_spellings_of_local_hosts_do_not_qualify() {
        for text in [
            "http://127.1:80",
            "http://0x7f.1",
            "http://2130706433",
            "http://017700000001:8080",
        ] {
            refused(text, Allowed, &["literally"]);
        }
        assert_eq!(origin("127.1:8080", Allowed), "https://127.0.0.1:8080");
    }

    #[test]
    fn what_is_no_origin_is_refused_with_a_hint() {
        refused(
            "https://a.example/shop",
            Refused,
            &["its origin is https://a.example"],
        );
        refused(
            "a.example/shop?x=1",
            Refused,
            &["its origin is https://a.example"],
        );
        refused(
            "a.example#top",
            Refused,
            &["its origin is https://a.example"],
        );
        refused("http://localhost:8080", Refused, &["--local"]);
        for other in [
            "http://a.example",
            "http://localhost.:8080",
            "http://127.0.0.2",
        ] {
            refused(
                other,
                Allowed,
                &["only https", "127.0.0.1 and [::1], written"],
            );
        }
        refused("ftp://a.example", Refused, &["only https"]);
        for nothing in ["", "a b", "https://", "a.example:port", "[::1"] {
            refused(
                nothing,
                Refused,
                &["no host and no origin", "market.example"],
            );
        }
        let failure = format!(
            "{:?}",
            parse("https://me:secret@a.example", Refused).unwrap_err()
        );
        assert!(!failure.contains("secret"), "{failure}");
    }
}
