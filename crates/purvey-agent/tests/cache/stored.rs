//! What is stored, and for whom.

use super::{body, counting, credential, transport};
use crate::transport_support::{
    ODP, Server, Step, TestClock, code, fetch, head, local, page, response,
};
use http::{HeaderMap, HeaderValue, Method};
use purvey_agent::Code;
use purvey_agent::cache::{Cache, Context, Key};
use purvey_agent::transport::{Class, Fetch, Guarded};
use url::Url;

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
        let nameless = Fetch {
            anonymous: true,
            ..page(server.url("/"))
        };
        assert_eq!(body(&one, nameless).await, "{\"n\":0}");
    }
    assert_eq!(
        body(&with("Bearer one"), page(server.url("/"))).await,
        "{\"n\":1}"
    );
}

#[tokio::test]
async fn an_anonymous_fetch_uses_no_credential() {
    let server = Server::start(|_, _| response("200 OK", &[ODP], b"{}")).await;
    let transport = credential(local(), &server, "Bearer one");
    for (class, anonymous, sent) in [
        (Class::Page, false, true),
        (Class::Page, true, false),
        (Class::Invoke, false, true),
        (Class::Invoke, true, false),
    ] {
        let request = Fetch {
            anonymous,
            ..Fetch::get(server.url("/"), class)
        };
        fetch(&transport, request).await.unwrap();
        let seen = server.seen().pop().unwrap();
        assert_eq!(seen.field("authorization").is_some(), sent);
    }
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
