//! For how long.

use super::{body, counting, seconds, transport};
use crate::transport_support::{Server, TestClock, fetch, local, page, response};
use purvey_agent::cache::Cache;
use purvey_agent::transport::{Class, Fetch};
use std::time::Duration;

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
