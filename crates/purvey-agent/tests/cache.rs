//! What is stored, for whom, and for how long.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

mod transport_support;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use purvey_agent::Code;
use purvey_agent::cache::{Cache, Context, Key};
use purvey_agent::transport::{Class, Fetch, Guarded};
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use std::fs;
use std::path::Path;
use std::time::Duration;
use transport_support::{ODP, Server, Step, TestClock, code, fetch, head, local, page, response};
use url::Url;

/// A server that answers with these fields and a body that tells the number of the request.
async fn counting(fields: &'static [(&'static str, &'static str)]) -> Server {
    Server::start(move |number, _| {
        let mut all = vec![ODP];
        all.extend(fields);
        response("200 OK", &all, format!("{{\"n\":{number}}}").as_bytes())
    })
    .await
}

fn transport(clock: &TestClock, cache: &Cache) -> Guarded {
    local()
        .clock(clock.clone())
        .cache(cache.clone())
        .build()
        .unwrap()
}

async fn body(transport: &Guarded, request: Fetch) -> String {
    let fetched = fetch(transport, request).await.unwrap();
    String::from_utf8(fetched.body.to_vec()).unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Whether the second of two fetches, so many seconds apart, is answered without the server.
async fn is_reused(
    class: Class,
    fields: &'static [(&'static str, &'static str)],
    apart: u64,
) -> bool {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = counting(fields).await;
    let transport = transport(&clock, &cache);
    for _ in 0..2 {
        fetch(&transport, Fetch::get(server.url("/"), class))
            .await
            .unwrap();
        clock.advance(seconds(apart));
    }
    server.requests() == 1
}

#[tokio::test]
async fn http_decides_first() {
    // The clock of the test begins at 08:53:20.
    const DATE: (&str, &str) = ("Date", "Thu, 09 Oct 2025 08:53:20 GMT");
    for (fields, fresh_for) in [
        (&[("Cache-Control", "max-age=10")][..], 10),
        (&[("Cache-Control", "Max-Age=10")], 10),
        (&[("Cache-Control", "public, max-age=\"10\"")], 10),
        (&[("Cache-Control", "private, max-age=10")], 10),
        (&[("Cache-Control", "max-age=10, s-maxage=0")], 10),
        (
            &[
                ("Cache-Control", "max-age=10"),
                ("Cache-Control", "max-age=20"),
            ],
            10,
        ),
        (&[("Cache-Control", "max-age=20, max-age=10")], 10),
        (&[("Cache-Control", "x=\"a, max-age=99\", max-age=10")], 10),
        (&[("Cache-Control", "max-age=10, must-revalidate")], 10),
        (&[("Cache-Control", "max-age=10"), ("Expires", "0")], 10),
        (
            &[("Cache-Control", "max-age=10"), ("Set-Cookie", "a=b")],
            10,
        ),
        (
            &[
                ("Cache-Control", "max-age=10"),
                ("Vary", "Accept-Encoding, Accept, accept-language"),
            ],
            10,
        ),
        (
            &[("Cache-Control", "max-age=10"), ("Pragma", "no-cache")],
            10,
        ),
        (
            &[("Cache-Control", "max-age=99999999999999999999")],
            2_147_483_648,
        ),
        (&[("Cache-Control", "max-age=30"), ("Age", "20")], 10),
        (
            &[
                ("Cache-Control", "max-age=30"),
                ("Date", "Thu, 09 Oct 2025 08:53:00 GMT"),
            ],
            10,
        ),
        (
            &[
                ("Cache-Control", "max-age=30"),
                ("Age", "5"),
                ("Date", "Thu, 09 Oct 2025 08:53:00 GMT"),
            ],
            10,
        ),
        (&[DATE, ("Expires", "Thu, 09 Oct 2025 08:53:30 GMT")], 10),
    ] {
        assert!(
            is_reused(Class::Offering, fields, fresh_for - 1).await,
            "{fields:?}"
        );
        assert!(
            !is_reused(Class::Offering, fields, fresh_for).await,
            "{fields:?}"
        );
    }
    for fields in [
        &[("Cache-Control", "no-store")][..],
        &[("Cache-Control", "No-Store, max-age=10")],
        &[
            ("Cache-Control", "max-age=10"),
            ("Cache-Control", "no-store"),
        ],
        &[("Cache-Control", "no-cache")],
        &[("Cache-Control", "no-cache=\"set-cookie\", max-age=10")],
        &[("Cache-Control", "max-age=0")],
        &[("Cache-Control", "max-age=-1")],
        &[("Cache-Control", "max-age=ten")],
        &[("Cache-Control", "max-age")],
        &[("Pragma", "no-cache")],
        &[("Expires", "0")],
        &[("Expires", "never")],
        &[DATE, ("Expires", "Thu, 09 Oct 2025 08:53:20 GMT")],
        &[
            DATE,
            ("Expires", "Thu, 09 Oct 2025 09:53:20 GMT"),
            ("Expires", "0"),
        ],
        &[("Vary", "*"), ("Cache-Control", "max-age=10")],
        &[("Vary", "Accept, *"), ("Cache-Control", "max-age=10")],
        &[
            ("Age", "99999999999999999999"),
            ("Cache-Control", "max-age=10"),
        ],
        &[("Cache-Control", "max-age=\u{e9}")],
    ] {
        assert!(
            !is_reused(Class::ServiceDocument, fields, 0).await,
            "{fields:?}"
        );
    }
}

#[tokio::test]
async fn what_says_nothing_is_fresh_as_its_class_says() {
    for (class, fresh_for) in [
        (Class::ServiceDocument, 14_400),
        (Class::Collection, 3_600),
        (Class::Offering, 300),
        (Class::Page, 300),
        (Class::CollectionPage, 3_600),
        (Class::Definitions, 3_600),
    ] {
        for fields in [
            &[][..],
            &[("Cache-Control", "private")],
            &[("Cache-Control", "s-maxage=1")],
            &[("Last-Modified", "Thu, 09 Oct 2015 08:53:20 GMT")],
        ] {
            assert!(
                is_reused(class, fields, fresh_for - 1).await,
                "{class:?} {fields:?}"
            );
            assert!(
                !is_reused(class, fields, fresh_for).await,
                "{class:?} {fields:?}"
            );
        }
    }
    assert!(!is_reused(Class::Search, &[], 0).await);
    assert!(is_reused(Class::Search, &[("Cache-Control", "max-age=9")], 1).await);
    assert!(!is_reused(Class::Invoke, &[("Cache-Control", "max-age=9")], 0).await);
}

#[tokio::test]
async fn schemas_keep_for_a_day() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = Server::start(|_, _| {
        response(
            "200 OK",
            &[("Content-Type", "application/schema+json")],
            b"{}",
        )
    })
    .await;
    let transport = transport(&clock, &cache);
    let schema = || Fetch::get(server.url("/schema"), Class::AttributeSchema);
    fetch(&transport, schema()).await.unwrap();
    clock.advance(seconds(86_399));
    let again = fetch(&transport, schema()).await.unwrap();
    assert!(again.from_cache);
    assert_eq!(again.headers["age"], "86399");
    clock.advance(seconds(1));
    assert!(!fetch(&transport, schema()).await.unwrap().from_cache);
}

#[tokio::test]
async fn fallbacks_are_configurable() {
    let (clock, server) = (TestClock::default(), counting(&[]).await);
    let transport = local()
        .clock(clock.clone())
        .cache(Cache::memory(1_000_000))
        .freshness(Class::Offering, seconds(10))
        .freshness(Class::Page, Duration::ZERO)
        .build()
        .unwrap();
    let offering = || Fetch::get(server.url("/offering"), Class::Offering);
    assert_eq!(body(&transport, offering()).await, "{\"n\":0}");
    clock.advance(seconds(9));
    assert_eq!(body(&transport, offering()).await, "{\"n\":0}");
    clock.advance(seconds(1));
    assert_eq!(body(&transport, offering()).await, "{\"n\":1}");
    assert_eq!(
        body(&transport, page(server.url("/page"))).await,
        "{\"n\":2}"
    );
    assert_eq!(
        body(&transport, page(server.url("/page"))).await,
        "{\"n\":3}"
    );
}

#[tokio::test]
async fn without_a_cache_nothing_is_stored() {
    let server = counting(&[("Cache-Control", "max-age=100")]).await;
    let transport = local().build().unwrap();
    for n in 0..3 {
        assert_eq!(
            body(&transport, page(server.url("/"))).await,
            format!("{{\"n\":{n}}}")
        );
    }
}

/// A server with one state for each tag, that honours validators.
async fn validating(
    tags: &'static [&'static str],
    more: &'static [(&'static str, &'static str)],
) -> Server {
    Server::start(move |number, seen| {
        let tag = tags[number.min(tags.len() - 1)];
        let mut fields = vec![("ETag", tag), ("X-Number", "x")];
        fields.extend(more);
        if seen.field("if-none-match") == Some(tag) {
            return vec![Step::Send(head("304 Not Modified", &fields))];
        }
        fields.push(ODP);
        response("200 OK", &fields, tag.as_bytes())
    })
    .await
}

#[tokio::test]
async fn stale_entries_are_confirmed() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = validating(
        &["\"a\"", "\"a\"", "\"b\"", "W/\"c\"", "W/\"c\""],
        &[("Cache-Control", "max-age=10")],
    )
    .await;
    let transport = transport(&clock, &cache);
    let mut told = Vec::new();
    for _ in 0..5 {
        let fetched = fetch(&transport, page(server.url("/"))).await.unwrap();
        told.push((
            String::from_utf8(fetched.body.to_vec()).unwrap(),
            fetched.from_cache,
        ));
        // Confirmed entries are fresh again.
        assert!(
            fetch(&transport, page(server.url("/")))
                .await
                .unwrap()
                .from_cache
        );
        clock.advance(seconds(10));
    }
    let expected = [
        ("\"a\"", false),
        ("\"a\"", true),
        ("\"b\"", false),
        ("W/\"c\"", false),
        ("W/\"c\"", true),
    ];
    assert_eq!(told, expected.map(|(tag, stored)| (tag.to_owned(), stored)));
    let asked: Vec<_> = server
        .seen()
        .iter()
        .map(|seen| seen.field("if-none-match").map(str::to_owned))
        .collect();
    let expected = [
        None,
        Some("\"a\""),
        Some("\"a\""),
        Some("\"b\""),
        Some("W/\"c\""),
    ];
    assert_eq!(asked, expected.map(|tag| tag.map(str::to_owned)));
}

#[tokio::test]
async fn dates_confirm_too() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    const MODIFIED: &str = "Wed, 08 Oct 2025 08:53:20 GMT";
    let server = Server::start(|_, seen| match seen.field("if-modified-since") {
        Some(MODIFIED) => vec![Step::Send(head(
            "304 Not Modified",
            &[("Cache-Control", "max-age=5")],
        ))],
        _ => response(
            "200 OK",
            &[
                ODP,
                ("Last-Modified", MODIFIED),
                ("Cache-Control", "max-age=0"),
            ],
            b"{}",
        ),
    })
    .await;
    let transport = transport(&clock, &cache);
    assert!(
        !fetch(&transport, page(server.url("/")))
            .await
            .unwrap()
            .from_cache
    );
    let confirmed = fetch(&transport, page(server.url("/"))).await.unwrap();
    assert!(confirmed.from_cache);
    // The 304 brought new fields.
    assert_eq!(confirmed.headers["cache-control"], "max-age=5");
    assert_eq!(confirmed.headers["content-type"], "application/odp+json");
    clock.advance(seconds(4));
    fetch(&transport, page(server.url("/"))).await.unwrap();
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn a_confirmation_of_something_else_is_none() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = Server::start(|number, _| match number {
        1 => vec![Step::Send(head(
            "304 Not Modified",
            &[("ETag", "\"other\"")],
        ))],
        _ => response(
            "200 OK",
            &[ODP, ("ETag", "\"a\""), ("Cache-Control", "max-age=0")],
            format!("{{\"n\":{number}}}").as_bytes(),
        ),
    })
    .await;
    let transport = transport(&clock, &cache);
    assert_eq!(body(&transport, page(server.url("/"))).await, "{\"n\":0}");
    assert_eq!(body(&transport, page(server.url("/"))).await, "{\"n\":2}");
    assert_eq!(server.seen()[2].field("if-none-match"), None);
}

#[tokio::test]
async fn a_confirmation_that_forbids_storing_is_heeded() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = Server::start(|number, seen| match seen.field("if-none-match") {
        Some(_) => vec![Step::Send(head(
            "304 Not Modified",
            &[("ETag", "\"a\""), ("Cache-Control", "no-store")],
        ))],
        None => response(
            "200 OK",
            &[ODP, ("ETag", "\"a\""), ("Cache-Control", "max-age=0")],
            format!("{{\"n\":{number}}}").as_bytes(),
        ),
    })
    .await;
    let transport = transport(&clock, &cache);
    assert_eq!(body(&transport, page(server.url("/"))).await, "{\"n\":0}");
    assert_eq!(body(&transport, page(server.url("/"))).await, "{\"n\":0}");
    assert_eq!(body(&transport, page(server.url("/"))).await, "{\"n\":2}");
}

#[tokio::test]
async fn a_stale_entry_never_stands_in_for_a_failure() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = Server::start(|number, _| match number {
        0 => response(
            "200 OK",
            &[
                ODP,
                ("ETag", "\"a\""),
                ("Cache-Control", "max-age=1, stale-if-error=999"),
            ],
            b"{}",
        ),
        1 => response("500 Oops", &[], b""),
        _ => vec![Step::Close],
    })
    .await;
    let transport = transport(&clock, &cache);
    fetch(&transport, page(server.url("/"))).await.unwrap();
    clock.advance(seconds(1));
    assert_eq!(
        code(&fetch(&transport, page(server.url("/"))).await),
        Code::Status
    );
    assert_eq!(
        code(&fetch(&transport, page(server.url("/"))).await),
        Code::ConnectionLost
    );
}

#[tokio::test]
async fn a_caller_may_insist_on_confirmation() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = validating(&["\"a\""], &[("Cache-Control", "max-age=100")]).await;
    let transport = transport(&clock, &cache);
    let insistent = || Fetch {
        no_cache: true,
        ..page(server.url("/"))
    };
    assert!(
        !fetch(&transport, page(server.url("/")))
            .await
            .unwrap()
            .from_cache
    );
    assert!(fetch(&transport, insistent()).await.unwrap().from_cache);
    assert_eq!(server.requests(), 2);
    let seen = &server.seen()[1];
    assert_eq!(
        (seen.field("cache-control"), seen.field("if-none-match")),
        (Some("no-cache"), Some("\"a\""))
    );
}

#[tokio::test]
async fn each_representation_is_stored_for_itself() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = counting(&[
        ("Cache-Control", "max-age=100"),
        ("Vary", "Accept-Language"),
    ])
    .await;
    let transport = transport(&clock, &cache);
    let languages = |languages: Option<&str>| Fetch {
        accept_language: languages.map(str::to_owned),
        ..page(server.url("/"))
    };
    for _ in 0..2 {
        assert_eq!(body(&transport, languages(Some("de"))).await, "{\"n\":0}");
        assert_eq!(body(&transport, languages(Some("en"))).await, "{\"n\":1}");
        assert_eq!(body(&transport, languages(None)).await, "{\"n\":2}");
    }
    // A fragment is not of the request; the query is.
    assert_eq!(body(&transport, page(server.url("/#x"))).await, "{\"n\":2}");
    assert_eq!(body(&transport, page(server.url("/?x"))).await, "{\"n\":3}");
    // The same bytes under another class must still be what that class accepts.
    let schema = fetch(
        &transport,
        Fetch::get(server.url("/"), Class::AttributeSchema),
    )
    .await;
    assert_eq!(code(&schema), Code::UnexpectedMediaType);
}

fn credential(
    builder: purvey_agent::transport::GuardedBuilder,
    server: &Server,
    value: &'static str,
) -> Guarded {
    let origin = ServiceOrigin::from_url(&server.url("/"), LocalDevelopment::Allowed).unwrap();
    let name = HeaderName::from_static("authorization");
    builder
        .credential(origin, name, HeaderValue::from_static(value))
        .build()
        .unwrap()
}

#[tokio::test]
async fn each_caller_has_entries_of_his_own() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = counting(&[("Cache-Control", "public, max-age=100")]).await;
    let with = |value| {
        credential(
            local().clock(clock.clone()).cache(cache.clone()),
            &server,
            value,
        )
    };
    let (anonymous, one, other) = (
        transport(&clock, &cache),
        with("Bearer one"),
        with("Bearer other"),
    );
    for _ in 0..2 {
        assert_eq!(body(&anonymous, page(server.url("/"))).await, "{\"n\":0}");
        assert_eq!(body(&one, page(server.url("/"))).await, "{\"n\":1}");
        assert_eq!(body(&other, page(server.url("/"))).await, "{\"n\":2}");
    }
    assert_eq!(
        body(&with("Bearer one"), page(server.url("/"))).await,
        "{\"n\":1}"
    );
}

#[test]
fn a_key_is_reusable_only_for_its_like() {
    let url = Url::parse("https://a.example/odp/offerings?limit=2").unwrap();
    let fields = |language: &'static str| {
        let mut fields = HeaderMap::new();
        fields.insert("accept", HeaderValue::from_static("application/odp+json"));
        fields.insert("accept-language", HeaderValue::from_static(language));
        fields
    };
    let token = |value: &'static str| {
        let mut fields = HeaderMap::new();
        fields.insert("authorization", HeaderValue::from_static(value));
        Context::of(Some(&fields))
    };
    let key = Key::new(Method::GET, &url, &fields("de"), token("a"));
    let same = Key::new(
        Method::GET,
        &url.join("#part").unwrap(),
        &fields("de"),
        token("a"),
    );
    assert!(key.is_reusable_for(&same));
    for other in [
        Key::new(Method::POST, &url, &fields("de"), token("a")),
        Key::new(
            Method::GET,
            &url.join("?limit=3").unwrap(),
            &fields("de"),
            token("a"),
        ),
        Key::new(Method::GET, &url, &fields("en"), token("a")),
        Key::new(Method::GET, &url, &HeaderMap::new(), token("a")),
        Key::new(Method::GET, &url, &fields("de"), token("b")),
        Key::new(Method::GET, &url, &fields("de"), Context::ANONYMOUS),
    ] {
        assert!(!key.is_reusable_for(&other), "{other:?}");
    }
    assert_eq!(Context::of(None), Context::ANONYMOUS);
    assert_eq!(Context::of(Some(&HeaderMap::new())), Context::ANONYMOUS);
    assert!(!format!("{:?}", token("super-secret")).contains("secret"));
}

#[tokio::test]
async fn only_whole_and_successful_documents_are_stored() {
    let steps = [
        response("404 Not Found", &[("Cache-Control", "max-age=100")], b""),
        response(
            "301 Moved",
            &[("Location", "/x"), ("Cache-Control", "max-age=100")],
            b"",
        ),
        vec![
            Step::Send(head("200 OK", &[ODP, ("Content-Length", "9")])),
            Step::Send(b"{}".into()),
            Step::Close,
        ],
        response(
            "200 OK",
            &[
                ODP,
                ("Content-Encoding", "gzip"),
                ("Cache-Control", "max-age=100"),
            ],
            b"{}",
        ),
        response(
            "200 OK",
            &[
                ("Content-Type", "text/html"),
                ("Cache-Control", "max-age=100"),
            ],
            b"{}",
        ),
        response(
            "200 OK",
            &[ODP, ("Cache-Control", "max-age=100")],
            &[b' '; 524_289],
        ),
        response(
            "206 Partial",
            &[ODP, ("Cache-Control", "max-age=100")],
            b"{}",
        ),
    ];
    for steps in steps {
        let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
        let server = Server::start(move |_, seen| match seen.path() {
            "/" => steps.clone(),
            _ => response("404 Not Found", &[], b""),
        })
        .await;
        let transport = transport(&clock, &cache);
        for _ in 0..2 {
            assert!(fetch(&transport, page(server.url("/"))).await.is_err());
        }
        assert_eq!(
            server
                .seen()
                .iter()
                .filter(|seen| seen.path() == "/")
                .count(),
            2
        );
    }
}

#[tokio::test]
async fn a_redirect_is_asked_again_and_its_end_is_stored() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = Server::start(|_, seen| match seen.path() {
        "/start" => response("302 Found", &[("Location", "/end")], b""),
        _ => response("200 OK", &[ODP, ("Cache-Control", "max-age=100")], b"{}"),
    })
    .await;
    let transport = transport(&clock, &cache);
    for _ in 0..2 {
        let fetched = fetch(&transport, page(server.url("/start"))).await.unwrap();
        assert_eq!(fetched.url, server.url("/end"));
    }
    let paths: Vec<_> = server
        .seen()
        .iter()
        .map(|seen| seen.path().to_owned())
        .collect();
    assert_eq!(paths, ["/start", "/end", "/start"]);
}

#[tokio::test]
async fn a_search_is_not_stored() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = counting(&[("Cache-Control", "max-age=100")]).await;
    let transport = transport(&clock, &cache);
    for n in 0..2 {
        let search = Fetch::post(server.url("/"), Class::Search, "{}".into());
        assert_eq!(body(&transport, search).await, format!("{{\"n\":{n}}}"));
    }
    assert_eq!(
        body(&transport, Fetch::get(server.url("/"), Class::Search)).await,
        "{\"n\":2}"
    );
}

#[tokio::test]
async fn an_action_makes_what_is_stored_doubtful() {
    let directory = tempfile::tempdir().unwrap();
    for cache in [
        Cache::memory(1_000_000),
        Cache::directory(directory.path(), 1_000_000).unwrap(),
    ] {
        let clock = TestClock::default();
        let server = counting(&[("Cache-Control", "max-age=100")]).await;
        let transport = transport(&clock, &cache);
        assert_eq!(body(&transport, page(server.url("/a"))).await, "{\"n\":0}");
        assert_eq!(body(&transport, page(server.url("/b"))).await, "{\"n\":1}");
        let mut action = Fetch::get(server.url("/a"), Class::Invoke);
        action.method = Method::POST;
        assert_eq!(body(&transport, action).await, "{\"n\":2}");
        assert_eq!(body(&transport, page(server.url("/a"))).await, "{\"n\":3}");
        assert_eq!(body(&transport, page(server.url("/b"))).await, "{\"n\":1}");
    }
}

#[tokio::test]
async fn what_may_not_be_fetched_is_not_answered_from_the_cache() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = counting(&[("Cache-Control", "max-age=100")]).await;
    fetch(&transport(&clock, &cache), page(server.url("/")))
        .await
        .unwrap();
    let strict = Guarded::builder()
        .clock(clock)
        .cache(cache)
        .build()
        .unwrap();
    assert_eq!(
        code(&fetch(&strict, page(server.url("/"))).await),
        Code::UrlNotAllowed
    );
}

/// A server whose documents have 1,000 bytes.
async fn bulky() -> Server {
    Server::start(|_, _| {
        response(
            "200 OK",
            &[ODP, ("Cache-Control", "max-age=100")],
            &[b' '; 1_000],
        )
    })
    .await
}

#[tokio::test]
async fn memory_is_bounded_and_the_least_used_leaves() {
    let (clock, server) = (TestClock::default(), bulky().await);
    // Room for a few of those documents, which take about 2,300 bytes with what belongs to them.
    let transport = transport(&clock, &Cache::memory(10_000));
    let cached = async |path: &str| {
        fetch(&transport, page(server.url(path)))
            .await
            .unwrap()
            .from_cache
    };
    for path in ["/1", "/2", "/3"] {
        assert!(!cached(path).await);
    }
    for path in ["/1", "/2", "/3"] {
        assert!(cached(path).await, "{path}");
    }
    assert!(cached("/1").await);
    for path in ["/4", "/5"] {
        assert!(!cached(path).await);
    }
    assert!(cached("/5").await);
    assert!(!cached("/2").await);
    // Whatever comes, it stays within its bounds, and so most of it is gone.
    for n in 0..100 {
        cached(&format!("/many/{n}")).await;
    }
    let before = server.requests();
    for n in 0..100 {
        cached(&format!("/many/{n}")).await;
    }
    assert!(server.requests() - before >= 95);
}

#[tokio::test]
async fn what_alone_is_too_large_is_not_stored() {
    let (clock, server) = (TestClock::default(), bulky().await);
    let directory = tempfile::tempdir().unwrap();
    for cache in [
        Cache::memory(900),
        Cache::directory(directory.path(), 900).unwrap(),
        Cache::memory(0),
    ] {
        let transport = transport(&clock, &cache);
        for _ in 0..2 {
            assert!(
                !fetch(&transport, page(server.url("/")))
                    .await
                    .unwrap()
                    .from_cache
            );
        }
    }
}

fn files(path: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(path)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect()
}

#[tokio::test]
async fn a_directory_outlives_its_cache() {
    let (clock, directory) = (TestClock::default(), tempfile::tempdir().unwrap());
    let path = directory.path().join("deep/cache");
    let server = validating(
        &["\"a\""],
        &[("Cache-Control", "max-age=10"), ("Content-Language", "de")],
    )
    .await;
    for n in 0..3 {
        let cache = Cache::directory(&path, 1_000_000).unwrap();
        let fetched = fetch(&transport(&clock, &cache), page(server.url("/")))
            .await
            .unwrap();
        assert_eq!((fetched.body, fetched.from_cache), ("\"a\"".into(), n > 0));
        assert_eq!(fetched.headers["content-language"], "de");
    }
    assert_eq!(server.requests(), 1);
    clock.advance(seconds(10));
    let cache = Cache::directory(&path, 1_000_000).unwrap();
    assert!(
        fetch(&transport(&clock, &cache), page(server.url("/")))
            .await
            .unwrap()
            .from_cache
    );
    assert_eq!(server.requests(), 2);
    assert_eq!(server.seen()[1].field("if-none-match"), Some("\"a\""));
}

#[tokio::test]
async fn a_directory_holds_no_secrets() {
    let (clock, directory) = (TestClock::default(), tempfile::tempdir().unwrap());
    let fields = [
        ODP,
        ("Cache-Control", "max-age=10"),
        ("Set-Cookie", "session=super-secret"),
        ("Vary", "Authorization"),
    ];
    let server = Server::start(move |_, _| response("200 OK", &fields, b"{}")).await;
    let cache = Cache::directory(directory.path(), 1_000_000).unwrap();
    let transport = credential(
        local().clock(clock).cache(cache),
        &server,
        "Bearer super-secret",
    );
    fetch(&transport, page(server.url("/"))).await.unwrap();
    assert!(
        fetch(&transport, page(server.url("/")))
            .await
            .unwrap()
            .from_cache
    );
    let files = files(directory.path());
    assert_eq!(files.len(), 1);
    let text = String::from_utf8_lossy(&fs::read(&files[0]).unwrap()).to_lowercase();
    assert!(
        !text.contains("super-secret") && !text.contains("set-cookie"),
        "{text}"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

#[tokio::test]
async fn a_ruined_file_is_no_entry() {
    let (clock, directory) = (TestClock::default(), tempfile::tempdir().unwrap());
    let server = counting(&[("Cache-Control", "max-age=100")]).await;
    let cache = Cache::directory(directory.path(), 1_000_000).unwrap();
    let transport = transport(&clock, &cache);
    fetch(&transport, page(server.url("/"))).await.unwrap();
    let file = files(directory.path()).remove(0);
    let whole = fs::read(&file).unwrap();
    let mut ruins: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"\n\n\n".to_vec(),
        vec![0; 100_000],
        whole[1..].to_vec(),
        [whole.clone(), b"x".to_vec()].concat(),
    ];
    for cut in (1..whole.len()).step_by(37) {
        ruins.push(whole[..cut].to_vec());
    }
    for at in (0..whole.len()).step_by(29) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        ruins.push(flipped);
    }
    for ruin in &ruins {
        fs::write(&file, ruin).unwrap();
        let before = server.requests();
        assert!(
            !fetch(&transport, page(server.url("/")))
                .await
                .unwrap()
                .from_cache
        );
        assert_eq!(server.requests(), before + 1);
        // And it was stored anew.
        assert!(
            fetch(&transport, page(server.url("/")))
                .await
                .unwrap()
                .from_cache
        );
    }
    // A whole file in another's place is none, either.
    fetch(&transport, page(server.url("/other"))).await.unwrap();
    let other = files(directory.path())
        .into_iter()
        .find(|path| *path != file)
        .unwrap();
    fs::copy(&file, &other).unwrap();
    assert!(
        !fetch(&transport, page(server.url("/other")))
            .await
            .unwrap()
            .from_cache
    );
}

#[tokio::test]
async fn a_directory_is_bounded_and_leaves_others_files_alone() {
    let (clock, server) = (TestClock::default(), bulky().await);
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("notes.txt"), vec![b'x'; 100_000]).unwrap();
    let cache = Cache::directory(directory.path(), 20_000).unwrap();
    let transport = transport(&clock, &cache);
    for n in 0..100 {
        fetch(&transport, page(server.url(&format!("/{n}"))))
            .await
            .unwrap();
        let entries = files(directory.path())
            .into_iter()
            .filter(|path| path.extension().is_none());
        let size: u64 = entries.map(|path| fs::metadata(path).unwrap().len()).sum();
        assert!(size <= 20_000, "{size}");
    }
    assert!(
        fetch(&transport, page(server.url("/99")))
            .await
            .unwrap()
            .from_cache
    );
    assert!(
        !fetch(&transport, page(server.url("/0")))
            .await
            .unwrap()
            .from_cache
    );
    assert!(directory.path().join("notes.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_shared() {
    let (clock, directory) = (TestClock::default(), tempfile::tempdir().unwrap());
    let server = Server::start(|_, seen| {
        let body = format!("{{\"path\":\"{}\"}}", seen.path());
        response(
            "200 OK",
            &[
                ODP,
                ("Cache-Control", "max-age=0"),
                ("X-Pad", &"x".repeat(500)),
            ],
            body.as_bytes(),
        )
    })
    .await;
    // Each with a cache of its own, as processes would have, and little room.
    let workers = (0..6).map(|_| {
        let cache = Cache::directory(directory.path(), 12_000).unwrap();
        let transport = transport(&clock, &cache);
        let server = &server;
        async move {
            for n in 0..60 {
                let path = format!("/{}", n % 12);
                let text = body(&transport, page(server.url(&path))).await;
                assert_eq!(text, format!("{{\"path\":\"{path}\"}}"));
            }
        }
    });
    futures_util::future::join_all(workers).await;
}

#[test]
fn a_directory_that_cannot_be() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(Cache::directory(&file, 1_000).is_err());
    assert!(Cache::directory(file.join("below"), 1_000).is_err());
}

#[tokio::test]
async fn a_directory_that_vanishes_only_costs_time() {
    let (clock, directory) = (TestClock::default(), tempfile::tempdir().unwrap());
    let server = counting(&[("Cache-Control", "max-age=100")]).await;
    let path = directory.path().join("cache");
    let transport = transport(&clock, &Cache::directory(&path, 1_000_000).unwrap());
    fs::remove_dir(&path).unwrap();
    for n in 0..2 {
        assert_eq!(
            body(&transport, page(server.url("/"))).await,
            format!("{{\"n\":{n}}}")
        );
    }
}
