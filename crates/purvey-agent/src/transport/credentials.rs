//! What proves who the caller is, bound to one origin each (ODP §11).

use super::Class;
use http::{HeaderMap, HeaderName, HeaderValue};
use purvey_odp::identity::ServiceOrigin;
use std::collections::BTreeMap;
use std::fmt;
use url::Url;

/// Request fields that are sent to one origin alone, and never for a supporting document.
#[derive(Clone, Default)]
pub struct Credentials(BTreeMap<ServiceOrigin, HeaderMap>);

impl Credentials {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field for requests to `origin`; one of the same name is replaced.
    pub fn insert(&mut self, origin: ServiceOrigin, name: HeaderName, mut value: HeaderValue) {
        value.set_sensitive(true);
        self.0.entry(origin).or_default().insert(name, value);
    }

    /// The fields for a request to `url`: those of its origin, unless the class is a supporting document's.
    pub fn for_request(&self, url: &Url, class: Class) -> Option<&HeaderMap> {
        if class.is_anonymous() {
            return None;
        }
        self.0
            .iter()
            .find(|(origin, _)| origin.is_origin_of(url))
            .map(|(_, fields)| fields)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
