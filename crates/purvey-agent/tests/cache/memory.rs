//! In memory.

use super::{bulky, transport};
use crate::transport_support::{TestClock, fetch, page};
use purvey_agent::cache::Cache;

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
