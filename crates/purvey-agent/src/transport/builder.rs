//! Setting up a [`Guarded`].

use super::connection::Connection;
use super::resolve::Guard;
use super::{Class, Clock, Credentials, Guarded, Limits, Resolve, SystemClock, SystemResolver};
use crate::cache::Cache;
use crate::{Code, Error};
use http::{HeaderName, HeaderValue};
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How long an idle connection is kept. Many servers close theirs after five seconds, and a request that meets such a close is
/// lost.
const IDLE_CONNECTION: Duration = Duration::from_secs(4);

/// What a [`Guarded`] is made of. Every part has a safe default.
#[must_use]
pub struct GuardedBuilder {
    local: LocalDevelopment,
    limits: Limits,
    credentials: Credentials,
    cache: Option<Cache>,
    freshness: HashMap<Class, Duration>,
    resolver: Arc<dyn Resolve>,
    clock: Arc<dyn Clock>,
    user_agent: String,
    roots: Vec<CertificateDer<'static>>,
}

impl Default for GuardedBuilder {
    fn default() -> Self {
        Self {
            local: LocalDevelopment::Refused,
            limits: Limits::default(),
            credentials: Credentials::new(),
            cache: None,
            freshness: HashMap::new(),
            resolver: Arc::new(SystemResolver),
            clock: Arc::new(SystemClock),
            user_agent: concat!("purvey-agent/", env!("CARGO_PKG_VERSION")).to_owned(),
            roots: Vec::new(),
        }
    }
}

impl GuardedBuilder {
    /// Whether `http` may be used, and loopback addresses reached, on the hosts `localhost`, `127.0.0.1` and `[::1]`. Default:
    /// refused.
    pub fn local_development(mut self, local: LocalDevelopment) -> Self {
        self.local = local;
        self
    }

    /// Limits of time and size.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// A field that goes with every request to `origin`, but not to supporting documents there. Default: none.
    pub fn credential(
        mut self,
        origin: ServiceOrigin,
        name: HeaderName,
        value: HeaderValue,
    ) -> Self {
        self.credentials.insert(origin, name, value);
        self
    }

    /// Where responses are stored. Default: nowhere.
    pub fn cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// How long responses of `class` are fresh when they do not say. Default: [`Class::fallback_freshness`].
    pub fn freshness(mut self, class: Class, lifetime: Duration) -> Self {
        self.freshness.insert(class, lifetime);
        self
    }

    /// Who finds addresses. Default: the operating system. What it answers is checked all the same.
    pub fn resolver(mut self, resolver: impl Resolve + 'static) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Where time and chance come from. Default: the machine.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// `User-Agent`. Default: this crate's name and version.
    pub fn user_agent(mut self, user_agent: &str) -> Self {
        user_agent.clone_into(&mut self.user_agent);
        self
    }

    /// A certificate authority (DER) to trust beside those of the operating system.
    pub fn root_certificate(mut self, certificate: &[u8]) -> Self {
        self.roots.push(CertificateDer::from(certificate.to_vec()));
        self
    }

    /// The transport.
    ///
    /// # Errors
    /// [`Code::InvalidConfiguration`] when `user_agent` is no field value, a certificate cannot be read, or the operating system
    /// has no certificate authorities; in local development the last is no error, but then TLS trusts nobody.
    pub fn build(self) -> Result<Guarded, Error> {
        let tls = self.tls()?;
        let guard = Guard {
            resolver: self.resolver,
            local: self.local,
        };
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(guard)
            // Neither the environment nor the system says where requests go.
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .user_agent(self.user_agent)
            .connect_timeout(self.limits.connect)
            .pool_idle_timeout(IDLE_CONNECTION)
            .http1_max_headers(self.limits.header_fields)
            // Past this, HTTP/2 only knows a broken stream; up to it, we can say what is wrong.
            .http2_max_header_list_size(self.limits.header_bytes.saturating_mul(4))
            .build()
            .map_err(|error| configuration(&error))?;
        Ok(Guarded {
            connection: Connection {
                client,
                local: self.local,
                limits: self.limits,
            },
            credentials: self.credentials,
            cache: self.cache,
            freshness: self.freshness,
            clock: self.clock,
        })
    }

    fn tls(&self) -> Result<ClientConfig, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| configuration(&error))?;
        let verifier = Verifier::new_with_extra_roots(self.roots.iter().cloned(), provider);
        let mut config = match verifier {
            Ok(verifier) => config
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
                .with_no_client_auth(),
            Err(_) if self.local == LocalDevelopment::Allowed && self.roots.is_empty() => config
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth(),
            Err(error) => return Err(configuration(&error)),
        };
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn configuration(error: &dyn std::error::Error) -> Error {
    let why = format!(
        "The transport cannot be set up: {}.",
        super::failure::chain(error)
    );
    Error::new(Code::InvalidConfiguration, why)
}
