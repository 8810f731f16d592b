//! The Agent, and how it is set up.

use crate::cache::Cache;
use crate::service::Service;
use crate::transport::{Guarded, Operation, Transport};
use crate::{Code, Error};
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use purvey_odp::language::LanguageTag;
use purvey_odp::reference::ResourceReference;
use purvey_retry::Policy;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use url::Url;

/// What the cache of the usual transport holds at most.
const CACHE_BYTES: usize = 32 * 1_048_576;
/// Results of a list or a search when nothing else is said.
const RESULTS: usize = 50;
/// Pages of one traversal when nothing else is said.
const PAGES: usize = 10_000;
/// Services that are asked at the same time when nothing else is said.
const SERVICES: usize = 8;
/// Collections of one hierarchy when nothing else is said.
const COLLECTIONS: usize = 100_000;

/// Reads Services. Cheap to clone; clones share one transport.
#[derive(Clone)]
pub struct Agent {
    pub(crate) settings: Arc<Settings>,
}

/// How an Agent behaves; see [`AgentBuilder`] for what each setting means.
pub(crate) struct Settings {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) accept_language: Option<String>,
    pub(crate) local: LocalDevelopment,
    pub(crate) results: usize,
    pub(crate) pages: usize,
    pub(crate) services: usize,
    pub(crate) collections: usize,
    policy: Policy,
    deadline: Option<Duration>,
}

impl Settings {
    /// The budget of one operation that begins now.
    pub(crate) fn operation(&self) -> Operation {
        let deadline = self.deadline.and_then(|d| SystemTime::now().checked_add(d));
        match deadline {
            Some(deadline) => Operation::with_deadline(&self.policy, deadline),
            None => Operation::new(&self.policy),
        }
    }
}

impl Agent {
    /// An Agent to be set up.
    pub fn builder() -> AgentBuilder {
        AgentBuilder::default()
    }

    /// Fetches the Service Document at `origin` and gives a handle on the Service (ODP §2). `origin` is a scheme, a host and
    /// perhaps a port, such as `https://market.example`; a trailing slash is fine. The Service's identity is the origin of the
    /// URL that answered.
    ///
    /// # Errors
    /// [`Code::InvalidRequest`] for what is no origin, [`Code::InvalidDocument`] or [`Code::UnsupportedVersion`] for a
    /// document that is not to be used, and whatever the transport says.
    pub async fn service(&self, origin: &str) -> Result<Service, Error> {
        let origin = parse_origin(origin, self.settings.local)?;
        Service::open(self.settings.clone(), &origin).await
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").finish_non_exhaustive()
    }
}

/// The origin that a caller names; more lenient in form than a document has to be, and no less strict in meaning.
pub(crate) fn parse_origin(text: &str, local: LocalDevelopment) -> Result<ServiceOrigin, Error> {
    let refused = || {
        let rule = "Must be an https origin, such as https://market.example, without a path.";
        Error::new(Code::InvalidRequest, rule)
    };
    let url = Url::parse(text).map_err(|_| refused())?;
    let bare = matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    if !bare {
        return Err(refused());
    }
    let origin = ServiceOrigin::from_url(&url, local).map_err(|_| refused())?;
    // Another spelling of a local address does not qualify, though parsing a URL makes it one that does.
    if url.scheme() == "http" && ResourceReference::parse(text, local).is_err() {
        return Err(refused());
    }
    Ok(origin)
}

/// Sets up an [`Agent`].
pub struct AgentBuilder {
    transport: Option<Arc<dyn Transport>>,
    languages: Vec<String>,
    local: LocalDevelopment,
    results: usize,
    pages: usize,
    services: usize,
    collections: usize,
    policy: Policy,
    deadline: Option<Duration>,
}

impl Default for AgentBuilder {
    fn default() -> Self {
        Self {
            transport: None,
            languages: Vec::new(),
            local: LocalDevelopment::Refused,
            results: RESULTS,
            pages: PAGES,
            services: SERVICES,
            collections: COLLECTIONS,
            policy: Policy::default(),
            deadline: None,
        }
    }
}

impl AgentBuilder {
    /// The way to Services: a [`Guarded`] transport with a cache in memory unless set.
    #[must_use]
    pub fn transport(mut self, transport: impl Transport + 'static) -> Self {
        self.transport = Some(Arc::new(transport));
        self
    }

    /// The languages to ask for, the preferred one first (RFC 5646 tags); none unless set. A Service answers in its default
    /// language when it has none of them.
    #[must_use]
    pub fn languages<T: Into<String>>(mut self, languages: impl IntoIterator<Item = T>) -> Self {
        self.languages = languages.into_iter().map(Into::into).collect();
        self
    }

    /// Whether `http` on the literal hosts `localhost`, `127.0.0.1` and `[::1]` is a Service too (ODP §1). Off unless set. A
    /// transport that is given has a switch of its own for the same.
    #[must_use]
    pub fn local_development(mut self, allowed: bool) -> Self {
        self.local = if allowed {
            LocalDevelopment::Allowed
        } else {
            LocalDevelopment::Refused
        };
        self
    }

    /// Results of a list or a search that says nothing itself; 50 unless set.
    #[must_use]
    pub fn results(mut self, results: usize) -> Self {
        self.results = results;
        self
    }

    /// Most pages of one traversal; 10,000 unless set. The traversal fails at the next one with
    /// [`Code::ResponseLimitExceeded`]: it never ends as if it were complete.
    #[must_use]
    pub fn max_pages(mut self, pages: usize) -> Self {
        self.pages = pages;
        self
    }

    /// Most Services that a search across Services asks at the same time, at least 1; 8 unless set.
    #[must_use]
    pub fn max_services(mut self, services: usize) -> Self {
        self.services = services.max(1);
        self
    }

    /// Most Collections that are read for a hierarchy; 100,000 unless set.
    #[must_use]
    pub fn max_collections(mut self, collections: usize) -> Self {
        self.collections = collections;
        self
    }

    /// When an operation is retried, its nested requests included; the protocol's policy unless set (ODP §8). Each page of a
    /// traversal is an operation of its own.
    #[must_use]
    pub fn retry_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// How long one operation may take with everything in it; unlimited unless set, apart from what the transport bounds.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The Agent.
    ///
    /// # Errors
    /// [`Code::InvalidConfiguration`] for a language that is none, and when the operating system trusts no certificate
    /// authority.
    pub fn build(self) -> Result<Agent, Error> {
        let transport = match self.transport {
            Some(transport) => transport,
            None => Arc::new(
                Guarded::builder()
                    .local_development(self.local)
                    .cache(Cache::memory(CACHE_BYTES))
                    .build()?,
            ),
        };
        Ok(Agent {
            settings: Arc::new(Settings {
                transport,
                accept_language: accept_language(&self.languages)?,
                local: self.local,
                results: self.results,
                pages: self.pages,
                services: self.services,
                collections: self.collections,
                policy: self.policy,
                deadline: self.deadline,
            }),
        })
    }
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder").finish_non_exhaustive()
    }
}

/// `Accept-Language` with falling weights. Only ten of them differ; later languages share the last one, in order.
fn accept_language(languages: &[String]) -> Result<Option<String>, Error> {
    let mut field = String::new();
    for (i, language) in languages.iter().enumerate() {
        let tag = LanguageTag::parse(language).map_err(|_| {
            let message = format!("{language:?} is not a language tag.");
            Error::new(Code::InvalidConfiguration, message)
        })?;
        match i {
            0 => field.push_str(tag.as_str()),
            _ => {
                let weight = 10_usize.saturating_sub(i).max(1);
                field.push_str(&format!(", {};q=0.{weight}", tag.as_str()));
            }
        }
    }
    Ok((!field.is_empty()).then_some(field))
}
