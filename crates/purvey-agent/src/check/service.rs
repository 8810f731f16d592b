//! The Service Document: its rules, its languages, how it is served.

use super::documents::Refusal;
use super::probe::{Ask, Exhausted, Probe, Reply};
use super::rules;
use http::{HeaderName, Method, header};
use purvey_odp::decode::Bounds;
use purvey_odp::identity::ServiceOrigin;
use purvey_odp::language::LanguageTag;
use purvey_odp::limits;
use purvey_odp::service::ServiceDocument;
use std::collections::HashMap;

/// Checks the Service Document. Nothing when there is none that an Agent could use.
pub(super) async fn check(probe: &mut Probe<'_>) -> Result<Option<ServiceDocument>, Exhausted> {
    probe.step("the Service Document");
    let mut url = probe.origin.as_url().clone();
    url.set_path(crate::service::WELL_KNOWN);
    let ask = Ask::get(url)
        .byte_limit(limits::SERVICE_DOCUMENT_BYTES)
        .anonymous();
    let Some(reply) = probe.ask(ask.clone()).await? else {
        let request = format!("GET {}", ask.url);
        probe.hold_at(&rules::SERVICE_REACHABLE, &request, "", false, || {
            "No response came.".to_owned()
        });
        return Ok(None);
    };
    let reached = reply.status.as_u16() == 200;
    probe.hold(&rules::SERVICE_REACHABLE, &reply, reached, || {
        format!("The status is {}.", reply.status)
    });
    if !reached {
        return Ok(None);
    }
    if let Ok(origin) = ServiceOrigin::from_url(&reply.url, probe.local()) {
        probe.origin = origin;
    }
    let Some(value) = probe.document(&reply, Bounds::SERVICE_DOCUMENT) else {
        return Ok(None);
    };
    let validated = ServiceDocument::validate(value.clone());
    probe.valid(&reply, None, validated.as_ref().err());
    // What only a later version could mean costs no more than itself.
    let Some(document) = validated
        .ok()
        .or_else(|| ServiceDocument::receive(value).ok().map(|(read, _)| read))
    else {
        return Ok(None);
    };
    let mut ask = ask;
    ask.url = reply.url.clone();
    delivery(probe, &ask, &reply).await?;
    languages(probe, &ask, &reply, &document).await?;
    Ok(Some(document))
}

async fn delivery(probe: &mut Probe<'_>, ask: &Ask, reply: &Reply) -> Result<(), Exhausted> {
    let readable = reply.header(header::ACCESS_CONTROL_ALLOW_ORIGIN).is_some();
    probe.hold(&rules::SERVICE_CORS, reply, readable, || {
        "There is no Access-Control-Allow-Origin.".to_owned()
    });
    let etag = reply.header(header::ETAG).is_some();
    probe.hold(&rules::SERVICE_ETAG, reply, etag, || {
        "There is no ETag.".to_owned()
    });
    probe.conditional(ask, reply).await?;
    probe.head(ask, reply).await?;
    let html = ask.clone().header(header::ACCEPT, "text/html");
    let refusal = Refusal::new(&rules::HTTP_NOT_ACCEPTABLE, &[406]);
    probe.refused(html, refusal).await?;
    probe.method_refused(ask).await
}

async fn languages(
    probe: &mut Probe<'_>,
    ask: &Ask,
    reply: &Reply,
    document: &ServiceDocument,
) -> Result<(), Exhausted> {
    let tags = document.localizations().tags();
    probe.language(reply, tags, Some(document.language()));
    let mut etags: HashMap<String, LanguageTag> = HashMap::new();
    for tag in tags {
        let asked = ask.clone().header(header::ACCEPT_LANGUAGE, tag.as_str());
        let Some(reply) = probe.ask(asked).await? else {
            continue;
        };
        let served = reply.status.as_u16() == 200;
        let language = content_language(&reply);
        let kept = served && language.as_ref() == Some(tag);
        probe.hold(&rules::LANGUAGE_LOOKUP, &reply, kept, || match served {
            false => format!("The status is {}.", reply.status),
            true => format!("The language is {}.", shown(language.as_ref())),
        });
        if let (true, Some(etag)) = (kept, reply.header(header::ETAG)) {
            let before = etags.insert(etag.to_owned(), tag.clone());
            probe.hold(&rules::LANGUAGE_ETAG, &reply, before.is_none(), || {
                format!("The ETag {etag} is that of {} too.", shown(before.as_ref()))
            });
        }
    }
    let unknown = ["tlh", "qya"].iter().find(|text| {
        tags.iter()
            .all(|tag| !tag.as_str().eq_ignore_ascii_case(text))
    });
    let asked = ask
        .clone()
        .header(header::ACCEPT_LANGUAGE, unknown.unwrap_or(&"art-x-none"));
    let Some(reply) = probe.ask(asked).await? else {
        return Ok(());
    };
    let language = content_language(&reply);
    let kept = reply.status.as_u16() == 200
        && language
            .as_ref()
            .is_none_or(|found| found == document.language());
    probe.hold(&rules::LANGUAGE_FALLBACK, &reply, kept, || {
        let found = shown(language.as_ref());
        format!("The status is {}, the language {found}.", reply.status)
    });
    Ok(())
}

fn content_language(reply: &Reply) -> Option<LanguageTag> {
    LanguageTag::parse(reply.header(header::CONTENT_LANGUAGE)?).ok()
}

fn shown(language: Option<&LanguageTag>) -> &str {
    language.map_or("not told", LanguageTag::as_str)
}

impl Probe<'_> {
    /// Whether a response says which language it is in, one of those that are there; `expected` when nothing was asked for.
    pub(super) fn language(
        &mut self,
        reply: &Reply,
        tags: &[LanguageTag],
        expected: Option<&LanguageTag>,
    ) {
        let language = content_language(reply);
        let kept = language.as_ref().is_some_and(|found| {
            tags.contains(found) && expected.is_none_or(|expected| expected == found)
        });
        self.hold(&rules::LANGUAGE_CONTENT, reply, kept, || {
            format!("Content-Language is {}.", shown(language.as_ref()))
        });
        let vary = reply.headers.get_all(header::VARY);
        let named = vary
            .iter()
            .filter_map(|field| field.to_str().ok())
            .any(|field| {
                let mut names = field.split(',').map(str::trim);
                names.any(|name| name == "*" || name.eq_ignore_ascii_case("accept-language"))
            });
        self.hold(&rules::LANGUAGE_VARY, reply, named, || {
            "Vary does not name it.".to_owned()
        });
    }

    /// Whether a response with an ETag is confirmed by it.
    pub(super) async fn conditional(&mut self, ask: &Ask, reply: &Reply) -> Result<(), Exhausted> {
        let Some(etag) = reply.header(header::ETAG) else {
            return Ok(());
        };
        let ask = ask.clone().header(header::IF_NONE_MATCH, etag);
        if let Some(reply) = self.ask(ask).await? {
            let kept = reply.status.as_u16() == 304;
            self.hold(&rules::ETAG_NOT_MODIFIED, &reply, kept, || {
                format!("The status is {}.", reply.status)
            });
        }
        Ok(())
    }

    /// Whether `HEAD` says what `GET` said.
    pub(super) async fn head(&mut self, ask: &Ask, get: &Reply) -> Result<(), Exhausted> {
        let Some(head) = self.ask(ask.clone().method(Method::HEAD)).await? else {
            return Ok(());
        };
        let same = |name: HeaderName| head.header(name.clone()) == get.header(name);
        let kept = head.status == get.status && same(header::CONTENT_TYPE) && same(header::ETAG);
        self.hold(&rules::HTTP_HEAD, &head, kept, || {
            let etag = head.header(header::ETAG).unwrap_or("none");
            let media_type = head.media_type();
            format!(
                "The status is {}, the media type {media_type}, the ETag {etag}.",
                head.status
            )
        });
        Ok(())
    }

    /// Whether a method that no Service has is refused.
    pub(super) async fn method_refused(&mut self, ask: &Ask) -> Result<(), Exhausted> {
        let Ok(method) = Method::from_bytes(b"PROPFIND") else {
            return Ok(());
        };
        let Some(reply) = self.ask(ask.clone().method(method)).await? else {
            return Ok(());
        };
        let status = reply.status.as_u16();
        self.hold(
            &rules::HTTP_METHOD,
            &reply,
            matches!(status, 405 | 501),
            || format!("The status is {}.", reply.status),
        );
        if status == 405 {
            let listed = reply.header(header::ALLOW).is_some();
            self.hold(&rules::HTTP_ALLOW, &reply, listed, || {
                "There is no Allow.".to_owned()
            });
        }
        Ok(())
    }
}
