//! In a directory.

use super::{body, bulky, counting, credential, files, seconds, transport, validating};
use crate::transport_support::{ODP, Server, TestClock, fetch, local, page, response};
use purvey_agent::cache::Cache;
use std::fs;

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
