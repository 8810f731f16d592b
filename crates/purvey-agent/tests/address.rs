//! Which addresses, URLs and redirects are permitted.
#![allow(clippy::expect_used, reason = "helpers of tests may fail loudly")]

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use purvey_agent::transport::address::{Destination, is_public};
use purvey_agent::transport::{Class, Credentials, Redirects};
use purvey_agent::{Code, Error};
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use std::net::IpAddr;
use url::Url;

fn ip(text: &str) -> IpAddr {
    text.parse().expect(text)
}

fn url(text: &str) -> Url {
    Url::parse(text).expect(text)
}

fn destination(text: &str, local: LocalDevelopment) -> Result<Destination, Error> {
    Destination::of(&url(text), local)
}

const NO: LocalDevelopment = LocalDevelopment::Refused;
const LOCAL: LocalDevelopment = LocalDevelopment::Allowed;

#[test]
fn public_addresses() {
    for text in [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "93.184.216.34",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.17",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.3.0",
        "192.88.98.255",
        "192.31.195.255",
        "192.175.49.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.101.0",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2001:db7:ffff::1",
        "2001:db9::1",
        "2003::1",
        "2606:4700::1111",
        "2a00:1450::1",
        "3fff:1000::1",
        "3ffd:ffff::1",
    ] {
        assert!(is_public(ip(text)), "{text}");
    }
}

#[test]
fn addresses_that_are_not_public() {
    for (kind, texts) in [
        ("this network", &["0.0.0.0", "0.1.2.3", "0.255.255.255"][..]),
        (
            "private",
            &[
                "10.0.0.0",
                "10.10.0.5",
                "10.255.255.255",
                "172.16.0.1",
                "172.31.255.255",
                "192.168.0.1",
                "192.168.255.255",
            ],
        ),
        (
            "carrier NAT",
            &["100.64.0.0", "100.100.100.200", "100.127.255.255"],
        ),
        (
            "loopback",
            &["127.0.0.1", "127.1.2.3", "127.255.255.255", "::1"],
        ),
        ("platform", &["168.63.129.16"]),
        (
            "link-local",
            &[
                "169.254.0.0",
                "169.254.169.254",
                "169.254.255.255",
                "fe80::1",
                "febf::1",
            ],
        ),
        (
            "protocol assignments",
            &[
                "192.0.0.1",
                "192.0.0.171",
                "2001::1",
                "2001:1::1",
                "2001:1ff::1",
            ],
        ),
        (
            "documentation",
            &[
                "192.0.2.1",
                "198.51.100.1",
                "203.0.113.255",
                "2001:db8::1",
                "3fff::1",
                "3fff:fff::1",
            ],
        ),
        (
            "anycast of the registries (AS112, AMT)",
            &["192.31.196.1", "192.52.193.1", "192.175.48.255"],
        ),
        (
            "6to4",
            &["192.88.99.1", "2002:7f00:1::1", "2002:808:808::1"],
        ),
        (
            "benchmarking",
            &["198.18.0.1", "198.19.255.255", "2001:2::1"],
        ),
        (
            "multicast",
            &["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
        ),
        (
            "reserved",
            &[
                "240.0.0.1",
                "255.255.255.254",
                "4000::1",
                "e000::1",
                "200::1",
                "100::1",
                "5f00::1",
            ],
        ),
        ("broadcast", &["255.255.255.255"]),
        ("unspecified", &["::"]),
        (
            "mapped",
            &[
                "::ffff:127.0.0.1",
                "::ffff:10.0.0.1",
                "::ffff:93.184.216.34",
            ],
        ),
        ("translated", &["::ffff:0:127.0.0.1"]),
        ("compatible", &["::7f00:1", "::93.184.216.34"]),
        (
            "NAT64",
            &[
                "64:ff9b::7f00:1",
                "64:ff9b::808:808",
                "64:ff9b:1::a00:1",
                "64:ff9b:1:ffff::1",
            ],
        ),
        ("Teredo", &["2001:0:4136:e378:8000:63bf:3fff:fdd2"]),
        ("ORCHID", &["2001:10::1", "2001:20::1"]),
        ("unique local", &["fc00::1", "fd00::1", "fdff::1"]),
        ("site-local", &["fec0::1", "feff::1"]),
        ("6bone", &["3ffe::1"]),
    ] {
        for text in texts {
            assert!(!is_public(ip(text)), "{kind} {text}");
        }
    }
}

#[test]
fn urls_that_may_be_fetched() {
    for text in [
        "https://schemas.example/schema.json",
        "https://schemas.example:8443/",
        "https://schemas.example:22/",
        "https://SCHEMAS.example/",
        "https://b\u{fc}cher.example/",
        "https://xn--bcher-kva.example/",
        "https://93.184.216.34/",
        "https://[2606:4700::1111]/",
        "https://a.example/?q#f",
    ] {
        assert!(destination(text, NO).is_ok(), "{text}");
    }
    for text in [
        "http://schemas.example/",
        "http://93.184.216.34/",
        "ftp://schemas.example/",
        "file:///etc/passwd",
        "data:text/plain,x",
        "https://user@schemas.example/",
        "https://user:secret@schemas.example/",
        "https://:secret@schemas.example/",
        "https://schemas.example./",
        "https://_.schemas.example/",
        "https://-schemas.example/",
        "http://localhost:8080/schema.json",
        "http://127.0.0.1/",
        "http://[::1]/",
    ] {
        let error = destination(text, NO).expect_err(text);
        assert_eq!(*error.code(), Code::UrlNotAllowed, "{text}");
        assert_eq!(error.url(), Some(&url(text)));
    }
}

#[test]
fn addresses_in_urls_are_what_they_mean() {
    for text in [
        "https://127.0.0.1/",
        "https://127.1/",
        "https://0x7f.0.0.1/",
        "https://0x7f000001/",
        "https://0177.0.0.1/",
        "https://017700000001/",
        "https://2130706433/",
        "https://127.0.0.1./",
        "https://%31%32%37.0.0.1/",
        "https://\u{ff11}27.0.0.1/",
        "https://127\u{3002}0\u{3002}0\u{3002}1/",
        "https://10.0.0.5/",
        "https://169.254.169.254/latest",
        "https://0/",
        "https://192.168.257/",
        "https://[::1]/",
        "https://[::]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[0:0:0:0:0:0:0:1]/",
        "https://[fd00::1]/",
        "https://[64:ff9b::a00:1]/",
        "https://[2002:7f00:1::]/",
    ] {
        let error = destination(text, NO).expect_err(text);
        assert_eq!(*error.code(), Code::AddressNotAllowed, "{text}");
    }
    // Zone identifiers and numbers out of range are no URLs at all.
    for text in [
        "https://[fe80::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://256.0.0.1/",
        "https://1.2.3.4.5/",
        "https://0x100000000/",
    ] {
        assert!(Url::parse(text).is_err(), "{text}");
    }
}

#[test]
fn every_address_of_a_name_is_checked() {
    let named = destination("https://mixed.example/schema.json", NO).unwrap();
    let checked = named
        .check(&[ip("93.184.216.34"), ip("2606:4700::1111")])
        .unwrap();
    assert!(checked.admits(ip("93.184.216.34")));
    assert!(checked.admits(ip("2606:4700::1111")));
    // Bound anew after it was checked, to whatever.
    assert!(!checked.admits(ip("10.0.0.7")));
    assert!(!checked.admits(ip("1.1.1.1")));
    for addresses in [
        &["93.184.216.34", "127.0.0.1"][..],
        &["127.0.0.1", "93.184.216.34"],
        &["93.184.216.34", "::ffff:93.184.216.34"],
        &["10.10.0.5"],
        &["fd00::1"],
    ] {
        let addresses: Vec<_> = addresses.iter().map(|text| ip(text)).collect();
        let error = named.check(&addresses).unwrap_err();
        assert_eq!(*error.code(), Code::AddressNotAllowed, "{addresses:?}");
        assert!(!error.retryable());
    }
    assert_eq!(*named.check(&[]).unwrap_err().code(), Code::NameNotResolved);
}

#[test]
fn local_development_is_for_literal_hosts_and_loopback() {
    for text in [
        "http://localhost:8080/schema.json",
        "http://127.0.0.1:1/",
        "http://[::1]/",
        "https://localhost/",
        "https://127.0.0.1/",
    ] {
        let local = destination(text, LOCAL).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(local.check(&[ip("127.0.0.1")]).is_ok(), "{text}");
        assert!(local.permits(ip("::1")), "{text}");
        // Only loopback, not the world.
        for other in ["93.184.216.34", "10.0.0.1", "::ffff:127.0.0.1", "0.0.0.0"] {
            assert!(!local.permits(ip(other)), "{text} {other}");
        }
    }
    for text in [
        "http://dev.example:8080/schema.json",
        "http://localhost.example/",
        "http://localhost./",
        "http://127.0.0.2/",
        "http://10.0.0.1/",
        "http://[::ffff:127.0.0.1]/",
    ] {
        assert!(destination(text, LOCAL).is_err(), "{text}");
    }
    // Another spelling of the same address is the same host.
    assert!(destination("http://127.1/", LOCAL).is_ok());
    // A name that leads to loopback does not qualify.
    let alias = destination("https://dev.example/", LOCAL).unwrap();
    assert!(alias.check(&[ip("127.0.0.1")]).is_err());
    // Without the switch, the name localhost is a name as others.
    let named = destination("https://localhost/", NO).unwrap();
    assert!(named.check(&[ip("127.0.0.1")]).is_err());
}

fn follow(from: &str, method: &Method, status: u16, to: &[&str]) -> Result<Option<Url>, Error> {
    let mut headers = HeaderMap::new();
    for to in to {
        headers.append(
            header::LOCATION,
            HeaderValue::from_bytes(to.as_bytes()).expect(to),
        );
    }
    let status = StatusCode::from_u16(status).expect("a status");
    Redirects::new(&url(from)).follow(method, status, &headers)
}

#[test]
fn redirects_stay_at_home() {
    let from = "https://schemas.example/a/schema.json?x";
    for (to, expected) in [
        (
            "https://schemas.example/v2/schema.json",
            "https://schemas.example/v2/schema.json",
        ),
        (
            "https://SCHEMAS.example:443/v2",
            "https://schemas.example/v2",
        ),
        ("/v2", "https://schemas.example/v2"),
        ("v2", "https://schemas.example/a/v2"),
        ("../v2", "https://schemas.example/v2"),
        ("?y", "https://schemas.example/a/schema.json?y"),
        ("//schemas.example/v2", "https://schemas.example/v2"),
        ("/v2#part", "https://schemas.example/v2"),
    ] {
        for status in [301, 302, 303, 307, 308] {
            let next = follow(from, &Method::GET, status, &[to]).unwrap();
            assert_eq!(next, Some(url(expected)), "{status} {to}");
        }
    }
    for to in [
        &["https://cdn.example/schema.json"][..],
        &["https://schemas.example:8443/"],
        &["https://schemas.example.evil.example/"],
        &["https://sub.schemas.example/"],
        &["//cdn.example/schema.json"],
        &["\\\\cdn.example/schema.json"],
        &["http://schemas.example/schema.json"],
        &["http://schemas.example:443/"],
        &["https://user@schemas.example/"],
        &["https://user:secret@schemas.example/"],
        &["https://schemas.example@cdn.example/"],
        &["file:///etc/passwd"],
        &["data:application/schema+json,{}"],
        &["javascript:alert(1)"],
        &["https://"],
        &["https://[::1"],
        &[""],
        &["/caf\u{e9}"],
        &["/a", "/b"],
        &[],
        // Circles.
        &["https://schemas.example/a/schema.json?x"],
        &["https://schemas.example/a/schema.json?x#other"],
        &["#other"],
    ] {
        let error = follow(from, &Method::GET, 302, to).expect_err("a refusal");
        assert_eq!(*error.code(), Code::RedirectRefused, "{to:?}");
        assert_eq!(error.status(), Some(302));
    }
}

#[test]
fn a_redirect_never_changes_the_method() {
    let from = "https://a.example/search";
    for status in [301, 302, 303] {
        let error = follow(from, &Method::POST, status, &["/b"]).expect_err("a refusal");
        assert_eq!(*error.code(), Code::RedirectRefused, "{status}");
    }
    for status in [307, 308] {
        assert!(
            follow(from, &Method::POST, status, &["/b"])
                .unwrap()
                .is_some()
        );
    }
    for status in [200, 300, 304, 305, 306, 309, 404] {
        assert_eq!(
            follow(from, &Method::GET, status, &["/b"]).unwrap(),
            None,
            "{status}"
        );
    }
}

#[test]
fn five_redirects_and_no_sixth() {
    let mut redirects = Redirects::new(&url("https://a.example/0"));
    let mut to = |path: String| {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::LOCATION,
            HeaderValue::try_from(path).expect("a path"),
        );
        redirects.follow(&Method::GET, StatusCode::FOUND, &headers)
    };
    for n in 1..=5 {
        assert!(to(format!("/{n}")).unwrap().is_some(), "{n}");
    }
    assert_eq!(
        *to("/6".to_owned()).unwrap_err().code(),
        Code::RedirectRefused
    );
}

#[test]
fn credentials_are_of_one_origin() {
    let origin = ServiceOrigin::parse("https://a.example", NO).unwrap();
    let mut credentials = Credentials::new();
    for name in ["authorization", "aep-authorization"] {
        let name = http::HeaderName::from_static(name);
        credentials.insert(origin.clone(), name, HeaderValue::from_static("secret"));
    }
    let sent = |text, class| {
        let fields = credentials.for_request(&url(text), class);
        fields.map_or(0, HeaderMap::len)
    };
    for class in [
        Class::Page,
        Class::Search,
        Class::Offering,
        Class::Invoke,
        Class::Definitions,
    ] {
        assert_eq!(sent("https://a.example/odp", class), 2);
        assert_eq!(sent("https://a.example:443/odp", class), 2);
        for other in [
            "https://b.example/",
            "https://a.example:444/",
            "http://a.example/",
            "https://a.example.b.example/",
        ] {
            assert_eq!(sent(other, class), 0, "{other}");
        }
    }
    for class in [Class::AttributeSchema, Class::OpenApi, Class::Image] {
        assert_eq!(sent("https://a.example/schema", class), 0);
    }
    assert!(!format!("{credentials:?}").contains("secret"));
}
