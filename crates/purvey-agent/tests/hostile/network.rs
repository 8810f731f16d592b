//! Names, addresses and proxies.

use super::transport_support::{Server, code, document, fetch, local, page, response};
use futures_util::future::BoxFuture;
use purvey_agent::Code;
use purvey_agent::transport::{Guarded, Resolve};
use std::io;
use std::net::IpAddr;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use url::Url;

/// Answers each question with the next of its answers, the last one again and again.
#[derive(Clone)]
struct Scripted {
    answers: Arc<Vec<Vec<IpAddr>>>,
    asked: Arc<AtomicUsize>,
    names: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    fn new(answers: &[&[&str]]) -> Self {
        let parse = |answer: &&[&str]| {
            answer
                .iter()
                .map(|text| text.parse().expect(text))
                .collect()
        };
        Self {
            answers: Arc::new(answers.iter().map(parse).collect()),
            asked: Arc::default(),
            names: Arc::default(),
        }
    }
}

impl Resolve for Scripted {
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.names.lock().unwrap().push(name.to_owned());
        let number = self
            .asked
            .fetch_add(1, Ordering::SeqCst)
            .min(self.answers.len() - 1);
        let answer = self.answers[number].clone();
        Box::pin(async move { Ok(answer) })
    }
}

fn url(text: &str) -> Url {
    Url::parse(text).expect(text)
}

#[tokio::test]
async fn no_answer_with_a_private_address_becomes_a_connection() {
    for (name, answer) in [
        ("private", &["10.0.0.1"][..]),
        ("loopback", &["127.0.0.1"]),
        ("loopback in IPv6", &["::1"]),
        ("metadata", &["169.254.169.254"]),
        ("unspecified", &["0.0.0.0"]),
        ("unique local", &["fd00::1"]),
        ("mapped", &["::ffff:10.0.0.1"]),
        ("NAT64", &["64:ff9b::a00:1"]),
        ("public, then private", &["93.184.216.34", "10.0.0.1"]),
        ("private, then public", &["10.0.0.1", "93.184.216.34"]),
        (
            "public in IPv6, private in IPv4",
            &["2606:4700::1111", "192.168.1.1"],
        ),
        ("broadcast", &["255.255.255.255"]),
    ] {
        let resolver = Scripted::new(&[answer]);
        // The switch for local development changes nothing about names.
        for transport in [
            Guarded::builder()
                .resolver(resolver.clone())
                .build()
                .unwrap(),
            local().resolver(resolver.clone()).build().unwrap(),
        ] {
            let result = fetch(&transport, page(url("https://service.example/odp"))).await;
            assert_eq!(code(&result), Code::AddressNotAllowed, "{name}");
            let error = result.unwrap_err();
            assert!(error.message().contains("service.example"), "{error}");
            assert!(!error.retryable());
        }
        assert_eq!(*resolver.names.lock().unwrap(), ["service.example"; 2]);
    }
}

#[tokio::test]
async fn a_name_without_address() {
    let transport = Guarded::builder()
        .resolver(Scripted::new(&[&[]]))
        .build()
        .unwrap();
    let result = fetch(&transport, page(url("https://service.example/"))).await;
    assert_eq!(code(&result), Code::NameNotResolved);

    struct Failing;
    impl Resolve for Failing {
        fn resolve(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            Box::pin(async { Err(io::Error::other("no such host")) })
        }
    }
    let transport = Guarded::builder().resolver(Failing).build().unwrap();
    let result = fetch(&transport, page(url("https://service.example/"))).await;
    assert_eq!(code(&result), Code::NameNotResolved);
    assert!(result.unwrap_err().retryable());
}

#[tokio::test]
async fn a_resolver_that_does_not_answer() {
    struct Silent;
    impl Resolve for Silent {
        fn resolve(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            Box::pin(std::future::pending())
        }
    }
    let transport = local().resolver(Silent).build().unwrap();
    let result = fetch(&transport, page(url("https://service.example/"))).await;
    assert_eq!(code(&result), Code::Timeout);
}

#[tokio::test]
async fn a_name_that_is_bound_anew_is_checked_anew() {
    let server = Server::start(|_, _| {
        response(
            "200 OK",
            &[super::transport_support::ODP, ("Connection", "close")],
            b"{}",
        )
    })
    .await;
    let at = url(&format!("http://localhost:{}/", server.address.port()));
    for rebound in ["10.0.0.7", "93.184.216.34", "::ffff:127.0.0.1"] {
        let resolver = Scripted::new(&[&["127.0.0.1"], &[rebound]]);
        let transport = local().resolver(resolver.clone()).build().unwrap();
        assert!(fetch(&transport, page(at.clone())).await.is_ok());
        // The connection was closed, so the next one asks again.
        assert_eq!(
            code(&fetch(&transport, page(at.clone())).await),
            Code::AddressNotAllowed,
            "{rebound}"
        );
        assert_eq!(resolver.asked.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn a_redirect_and_a_retry_are_checked_anew() {
    for first in [
        response(
            "302 Found",
            &[("Location", "/next"), ("Connection", "close")],
            b"",
        ),
        response(
            "503 Busy",
            &[("Retry-After", "0"), ("Connection", "close")],
            b"",
        ),
    ] {
        let server = Server::start(move |number, _| match number {
            0 => first.clone(),
            _ => document(b"{}"),
        })
        .await;
        let resolver = Scripted::new(&[&["127.0.0.1"], &["192.168.0.1"]]);
        let transport = local().resolver(resolver).build().unwrap();
        let at = url(&format!("http://localhost:{}/", server.address.port()));
        assert_eq!(
            code(&fetch(&transport, page(at)).await),
            Code::AddressNotAllowed
        );
        assert_eq!(server.requests(), 1);
    }
}

#[tokio::test]
async fn addresses_in_urls_never_reach_a_socket() {
    let server = Server::start(|_, _| document(b"{}")).await;
    let port = server.address.port();
    let strict = Guarded::builder().build().unwrap();
    for (host, expected) in [
        ("127.0.0.1", Code::AddressNotAllowed),
        ("127.1", Code::AddressNotAllowed),
        ("0x7f.1", Code::AddressNotAllowed),
        ("0177.0.0.1", Code::AddressNotAllowed),
        ("2130706433", Code::AddressNotAllowed),
        ("127.0.0.1.", Code::AddressNotAllowed),
        ("0.0.0.0", Code::AddressNotAllowed),
        ("[::1]", Code::AddressNotAllowed),
        ("[::ffff:127.0.0.1]", Code::AddressNotAllowed),
        ("[64:ff9b::7f00:1]", Code::AddressNotAllowed),
        ("localhost", Code::AddressNotAllowed),
        ("localhost.", Code::UrlNotAllowed),
        ("user@127.0.0.1", Code::UrlNotAllowed),
    ] {
        let result = fetch(&strict, page(url(&format!("https://{host}:{port}/")))).await;
        assert_eq!(code(&result), expected, "{host}");
        let result = fetch(&strict, page(url(&format!("http://{host}:{port}/")))).await;
        assert_eq!(code(&result), Code::UrlNotAllowed, "{host}");
    }
    // In local development, the three hosts and no other.
    let lenient = local().build().unwrap();
    for host in ["0.0.0.0", "127.0.0.2", "[::ffff:127.0.0.1]", "localhost."] {
        let result = fetch(&lenient, page(url(&format!("http://{host}:{port}/")))).await;
        assert_eq!(code(&result), Code::UrlNotAllowed, "{host}");
    }
    assert_eq!(server.connections(), 0);
    for host in ["127.0.0.1", "localhost", "127.1"] {
        assert!(
            fetch(&lenient, page(url(&format!("http://{host}:{port}/"))))
                .await
                .is_ok(),
            "{host}"
        );
    }
}

#[tokio::test]
async fn nobody_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let transport = local().build().unwrap();
    let result = fetch(&transport, page(url(&format!("http://127.0.0.1:{port}/")))).await;
    assert_eq!(code(&result), Code::ConnectFailed);
    assert!(result.unwrap_err().retryable());
}

#[tokio::test]
async fn tls_with_a_server_that_has_none() {
    let server = Server::start(|_, _| document(b"{}")).await;
    let transport = local().build().unwrap();
    let at = url(&format!("https://127.0.0.1:{}/", server.address.port()));
    let result = fetch(&transport, page(at)).await;
    assert!(
        matches!(code(&result), Code::ConnectFailed | Code::Timeout),
        "{result:?}"
    );
    assert_eq!(server.requests(), 0);
}

/// Connections are used again, and not for another origin.
#[tokio::test]
async fn connections_are_kept() {
    let server = Server::start(|_, _| document(b"{}")).await;
    let transport = local().build().unwrap();
    for _ in 0..20 {
        fetch(&transport, page(server.url("/"))).await.unwrap();
    }
    assert_eq!((server.requests(), server.connections()), (20, 1));
}

/// Run in a process of its own, whose environment names a proxy.
#[tokio::test]
#[ignore = "run by proxies_in_the_environment_are_ignored"]
async fn under_a_proxy() {
    let proxy = std::env::var("HTTP_PROXY").expect("a proxy");
    let server = Server::start(|_, _| document(b"{}")).await;
    assert!(!proxy.contains(&server.address.port().to_string()));
    let transport = local().build().unwrap();
    assert!(fetch(&transport, page(server.url("/"))).await.is_ok());
}

#[test]
fn proxies_in_the_environment_are_ignored() {
    let trap = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    trap.set_nonblocking(true).unwrap();
    let proxy = format!("http://{}", trap.local_addr().unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "network::under_a_proxy", "--ignored"]);
    for name in [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ] {
        child.env(name, &proxy);
    }
    for name in ["NO_PROXY", "no_proxy", "REQUEST_METHOD"] {
        child.env_remove(name);
    }
    let output = child.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    assert!(trap.accept().is_err(), "the proxy was asked");
}
