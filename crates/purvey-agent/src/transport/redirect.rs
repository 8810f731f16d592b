//! Where a redirect may lead (ODP §7).

use crate::{Code, Error};
use http::{HeaderMap, Method, StatusCode, header};
use purvey_odp::limits;
use url::Url;

/// The redirects of one fetch: at most five, each within the origin of the request before, none in a circle.
#[derive(Clone, Debug)]
pub struct Redirects {
    at: Url,
    seen: Vec<Url>,
}

impl Redirects {
    /// No redirect yet; the first request goes to `url`.
    pub fn new(url: &Url) -> Self {
        let at = without_fragment(url.clone());
        Self {
            seen: vec![at.clone()],
            at,
        }
    }

    /// The URL to go to after a response, or nothing when the response is no redirect.
    ///
    /// 307 and 308 keep method and body. 301, 302 and 303 are followed for `GET` alone: for other methods they have come to mean
    /// a `GET`, and a search that silently turns into something else, or an Action that does, is worse than an error.
    ///
    /// # Errors
    /// [`Code::RedirectRefused`] for everything else: another scheme, host or port (so every downgrade), a circle, a sixth
    /// redirect, user information, a missing or malformed `Location`.
    pub fn follow(
        &mut self,
        method: &Method,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<Option<Url>, Error> {
        let keeps_method = match status.as_u16() {
            301..=303 => false,
            307 | 308 => true,
            _ => return Ok(None),
        };
        let refuse = |why: &str| {
            Error::new(Code::RedirectRefused, why)
                .with_status(status)
                .with_url(self.at.clone())
        };
        if !keeps_method && method != Method::GET {
            return Err(refuse(
                "The redirect would change the method of the request.",
            ));
        }
        let next = location(&self.at, headers)
            .ok_or_else(|| refuse("The redirect has no Location, or one that is not a URL."))?;
        if !next.username().is_empty() || next.password().is_some() {
            return Err(refuse("The redirect leads to a URL with user information."));
        }
        if !is_same_origin(&self.at, &next) {
            return Err(refuse("The redirect leads to another origin."));
        }
        if self.seen.contains(&next) {
            return Err(refuse("The redirect leads in a circle."));
        }
        // The first URL is among those seen.
        if self.seen.len() > limits::REDIRECTS {
            return Err(refuse("There are more than five redirects."));
        }
        self.seen.push(next.clone());
        self.at = next.clone();
        Ok(Some(next))
    }
}

/// Whether both have the same scheme, host and effective port.
pub fn is_same_origin(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host() == other.host()
        && one.port_or_known_default() == other.port_or_known_default()
}

/// The one `Location`, resolved against the URL that sent it.
fn location(at: &Url, headers: &HeaderMap) -> Option<Url> {
    let mut fields = headers.get_all(header::LOCATION).iter();
    let field = fields.next()?.to_str().ok()?;
    if fields.next().is_some() || field.is_empty() {
        return None;
    }
    at.join(field).ok().map(without_fragment)
}

fn without_fragment(mut url: Url) -> Url {
    url.set_fragment(None);
    url
}
