//! Any text as a reference, an origin and a continuation.

use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use purvey_odp::page::Next;
use purvey_odp::reference::ResourceReference;
use url::Url;

/// Where a reference leads is where it seems to lead: it stays at the origin exactly when it says so.
pub fn holds(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let https = origin("https://market.example");
    let local = origin("http://127.0.0.1:8080");
    let strict = ResourceReference::parse(text, LocalDevelopment::Refused);
    let lenient = ResourceReference::parse(text, LocalDevelopment::Allowed);
    if let Ok(strict) = &strict {
        assert_eq!(Ok(strict), lenient.as_ref());
    }
    if let Ok(reference) = &lenient {
        for origin in [&https, &local] {
            resolved(text, reference, origin, strict.is_ok());
        }
    }
    continuation(text, &https);
    canonical_origin(text);
}

fn origin(text: &str) -> ServiceOrigin {
    ServiceOrigin::parse(text, LocalDevelopment::Allowed).expect("an origin")
}

fn resolved(text: &str, reference: &ResourceReference, origin: &ServiceOrigin, strict: bool) {
    assert_eq!(reference.as_str(), text);
    assert!(
        text.bytes()
            .all(|b| b.is_ascii_graphic() && !b"\\#<>\"{}|^`".contains(&b)),
        "{text}"
    );
    let url = reference.resolve(origin);
    assert!(url.fragment().is_none() && url.username().is_empty() && url.password().is_none());
    assert_eq!(
        reference.is_same_origin(origin),
        url.origin() == origin.as_url().origin()
    );
    if reference.is_origin_relative() {
        assert!(text.starts_with('/') && !text.starts_with("//"));
        assert_eq!(url.origin(), origin.as_url().origin());
        let beside = ResourceReference::resolve(reference, &self::origin("https://other.example"));
        assert_eq!((beside.path(), beside.query()), (url.path(), url.query()));
    } else {
        let wanted = if strict { "https" } else { "http" };
        assert_eq!(url.scheme(), wanted);
        assert_eq!(Url::parse(text).ok().as_ref(), Some(&url));
        if !strict {
            assert!(
                matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")),
                "{url}"
            );
        }
    }
    // What a reference means can be said in full, and means the same then.
    let said = ResourceReference::parse(url.as_str(), LocalDevelopment::Allowed);
    let said = said.unwrap_or_else(|invalid| panic!("{text} means {url}: {invalid}"));
    assert_eq!(said.resolve(origin), url);
}

fn continuation(text: &str, origin: &ServiceOrigin) {
    let Ok(next) = Next::parse(text, origin) else {
        return;
    };
    let url = next.resolve(origin);
    assert!(text.len() <= 2_048);
    assert_eq!(url.origin(), origin.as_url().origin());
    assert!(!next.advances(origin, &url));
}

fn canonical_origin(text: &str) {
    for local in [LocalDevelopment::Refused, LocalDevelopment::Allowed] {
        let Ok(origin) = ServiceOrigin::parse(text, local) else {
            continue;
        };
        let url = origin.as_url();
        assert_eq!(origin.as_str(), text);
        assert_eq!(url.as_str().strip_suffix('/'), Some(text));
        assert_eq!(ServiceOrigin::from_url(url, local).as_ref(), Ok(&origin));
        assert!(origin.is_origin_of(url));
    }
}
