//! TLS, and HTTP/2 over it.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

mod transport_support;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response, Version};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use purvey_agent::transport::Guarded;
use purvey_agent::{Code, Error};
use rcgen::{CertificateParams, CertifiedKey, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use transport_support::{code, fetch, local, page};
use url::Url;

type Body = BoxBody<Bytes, io::Error>;

/// A service over TLS.
struct Secure {
    port: u16,
    versions: Arc<Mutex<Vec<Version>>>,
    connections: Arc<AtomicUsize>,
}

impl Secure {
    async fn start(
        certificate: &CertifiedKey<KeyPair>,
        protocols: &[&str],
        respond: impl Fn(&Request<Incoming>) -> Response<Body> + Send + Sync + 'static,
    ) -> Self {
        let key = PrivateKeyDer::try_from(certificate.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let secure = Self {
            port: listener.local_addr().unwrap().port(),
            versions: Arc::default(),
            connections: Arc::default(),
        };
        let (versions, connections) = (
            Arc::clone(&secure.versions),
            Arc::clone(&secure.connections),
        );
        let respond = Arc::new(respond);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, versions) = (acceptor.clone(), Arc::clone(&versions));
                let (respond, connections) = (Arc::clone(&respond), Arc::clone(&connections));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    connections.fetch_add(1, Ordering::SeqCst);
                    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                        versions.lock().unwrap().push(request.version());
                        let response = respond(&request);
                        async move { Ok::<_, Infallible>(response) }
                    });
                    let builder = Builder::new(TokioExecutor::new());
                    drop(
                        builder
                            .serve_connection(TokioIo::new(stream), service)
                            .await,
                    );
                });
            }
        });
        secure
    }

    fn url(&self, host: &str, path: &str) -> Url {
        Url::parse(&format!("https://{host}:{}{path}", self.port)).unwrap()
    }
}

fn certificate(names: &[&str]) -> CertifiedKey<KeyPair> {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    rcgen::generate_simple_self_signed(names).unwrap()
}

fn trusting(certificate: &CertifiedKey<KeyPair>) -> Guarded {
    local()
        .root_certificate(certificate.cert.der())
        .build()
        .unwrap()
}

fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed()
}

fn document(body: Body) -> Response<Body> {
    let builder = Response::builder().header("content-type", "application/odp+json");
    builder.body(body).unwrap()
}

#[tokio::test]
async fn a_trusted_service_is_read_over_either_version() {
    let certificate = certificate(&["localhost", "127.0.0.1"]);
    for (protocols, version) in [
        (&["h2", "http/1.1"][..], Version::HTTP_2),
        (&["http/1.1"], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ] {
        let server = Secure::start(&certificate, protocols, |_| document(whole("{}".into()))).await;
        let transport = trusting(&certificate);
        for host in ["localhost", "127.0.0.1"] {
            for _ in 0..3 {
                let fetched = fetch(&transport, page(server.url(host, "/")))
                    .await
                    .unwrap();
                assert_eq!(fetched.body, "{}");
            }
        }
        assert_eq!(*server.versions.lock().unwrap(), [version; 6]);
        assert_eq!(server.connections.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn nobody_else_is() {
    let own = certificate(&["localhost"]);
    let server = Secure::start(&own, &["h2"], |_| document(whole("{}".into()))).await;
    // Not signed by anybody that is trusted.
    for transport in [
        local().build().unwrap(),
        trusting(&certificate(&["localhost"])),
    ] {
        let result = fetch(&transport, page(server.url("localhost", "/"))).await;
        assert_eq!(code(&result), Code::ConnectFailed);
    }
    // Another name than the certificate's.
    let result = fetch(&trusting(&own), page(server.url("127.0.0.1", "/"))).await;
    assert_eq!(code(&result), Code::ConnectFailed);
    assert_eq!(server.versions.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn an_expired_certificate_is_none() {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2019, 1, 1);
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let signing_key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&signing_key).unwrap();
    let expired = CertifiedKey { cert, signing_key };
    let server = Secure::start(&expired, &["h2"], |_| document(whole("{}".into()))).await;
    let result = fetch(&trusting(&expired), page(server.url("localhost", "/"))).await;
    assert_eq!(code(&result), Code::ConnectFailed);
}

#[test]
fn a_certificate_that_is_none() {
    let error: Error = match Guarded::builder().root_certificate(b"none").build() {
        Ok(_) => panic!("it was taken"),
        Err(error) => error,
    };
    assert_eq!(*error.code(), Code::InvalidConfiguration);
}

#[tokio::test]
async fn a_redirect_does_not_leave_tls() {
    let certificate = certificate(&["localhost"]);
    let server = Secure::start(&certificate, &["h2"], |request| {
        let to = match (request.uri().path(), request.uri().port_u16()) {
            ("/down", Some(port)) => format!("http://localhost:{port}/"),
            ("/home", _) => "/end".to_owned(),
            _ => return document(whole("{}".into())),
        };
        Response::builder()
            .status(302)
            .header("location", to)
            .body(whole(Bytes::new()))
            .unwrap()
    })
    .await;
    let transport = trusting(&certificate);
    let result = fetch(&transport, page(server.url("localhost", "/down"))).await;
    assert_eq!(code(&result), Code::RedirectRefused);
    let fetched = fetch(&transport, page(server.url("localhost", "/home")))
        .await
        .unwrap();
    assert_eq!(fetched.url, server.url("localhost", "/end"));
}

#[tokio::test]
async fn http_2_has_the_same_limits() {
    let certificate = certificate(&["localhost"]);
    let server = Secure::start(&certificate, &["h2"], |request| {
        match request.uri().path() {
            "/flood" => {
                let piece = Bytes::from(vec![b' '; 16_384]);
                let pieces = stream::repeat_with(move || Ok(Frame::data(piece.clone())));
                document(BodyExt::boxed(StreamBody::new(pieces)))
            }
            "/stops" => {
                let first = stream::iter([Ok(Frame::data("{".into()))]);
                document(BodyExt::boxed(StreamBody::new(
                    first.chain(stream::pending()),
                )))
            }
            "/breaks" => {
                let pieces = [Ok(Frame::data("{".into())), Err(io::Error::other("lost"))];
                document(BodyExt::boxed(StreamBody::new(stream::iter(pieces))))
            }
            "/long" => {
                let mut response = document(whole("{}".into()));
                response
                    .headers_mut()
                    .insert("content-length", "524289".parse().unwrap());
                response
            }
            path if path.starts_with("/field") => {
                let size = path.trim_start_matches("/field").parse().unwrap();
                let mut response = document(whole("{}".into()));
                let value = "x".repeat(size).parse().unwrap();
                response.headers_mut().insert("x-large", value);
                response
            }
            _ => document(whole("{}".into())),
        }
    })
    .await;
    let transport = trusting(&certificate);
    for (path, expected) in [
        ("/flood", Code::ResponseLimitExceeded),
        ("/stops", Code::Timeout),
        ("/breaks", Code::ConnectionLost),
        ("/long", Code::ResponseLimitExceeded),
        ("/field70000", Code::ResponseLimitExceeded),
        // The protocol below does not tell why.
        ("/field300000", Code::ConnectionLost),
    ] {
        let result = fetch(&transport, page(server.url("localhost", path))).await;
        assert_eq!(
            code(&result),
            expected,
            "{path} {:?}",
            result.unwrap_err().message()
        );
        // One stream's failure is not another's.
        assert!(
            fetch(&transport, page(server.url("localhost", "/")))
                .await
                .is_ok(),
            "{path}"
        );
    }
}
