//! Purvey's catalog, in process: what the server calls, answered with the response body.

use crate::Outcome;
use crate::ask::{Answer, Ask, Counts, Engine, PAGE, Raw};
use purvey_catalog::access::Access;
use purvey_catalog::catalog::{Catalog, ListRequest, Listing, Options, SearchRequest};
use purvey_odp::language::AcceptLanguage;
use purvey_odp::offering::Representation;
use purvey_odp::request::OfferingSearchRequest;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) struct Ours {
    catalog: Catalog,
    access: Access,
    cursors: HashMap<String, String>,
}

impl Ours {
    /// The catalog in `data` as a caller sees it.
    pub(crate) fn open(data: &Path, access: Access) -> Outcome<Self> {
        Ok(Self {
            catalog: Catalog::open(data, Options::default())?,
            access,
            cursors: HashMap::new(),
        })
    }

    fn first(&self, ask: &Ask) -> Outcome<Vec<u8>> {
        let request = SearchRequest {
            request: OfferingSearchRequest::validate(body(ask))?,
            representation: Representation::Terse,
            accept_language: AcceptLanguage::parse(None),
            access: self.access.clone(),
        };
        Ok(self.catalog.search_offerings(&request)?.bytes.to_vec())
    }

    fn next(&self, cursor: &str) -> Outcome<Vec<u8>> {
        let page = self.catalog.resume_search_offerings(cursor, &self.access)?;
        Ok(page.bytes.to_vec())
    }

    /// How long a page of the list of all takes, after `before` others, each time.
    pub(crate) fn list_times(&self, before: usize, runs: usize) -> Outcome<Vec<Duration>> {
        let first = || {
            self.catalog.list(&ListRequest {
                operation: Listing::Offerings,
                representation: Representation::Terse,
                limit: Some(PAGE as u64),
                accept_language: AcceptLanguage::parse(None),
                access: self.access.clone(),
            })
        };
        let next = |cursor: &str| {
            self.catalog
                .resume(&Listing::Offerings, cursor, &self.access)
        };
        let mut at: Option<String> = None;
        for _ in 0..before {
            let page = match &at {
                None => first()?,
                Some(at) => next(at)?,
            };
            at = Some(cursor(&page.bytes)?);
        }
        let mut times = Vec::with_capacity(runs);
        for _ in 0..runs {
            let begin = Instant::now();
            match &at {
                None => first()?,
                Some(at) => next(at)?,
            };
            times.push(begin.elapsed());
        }
        Ok(times)
    }

    /// Any legal request.
    pub(crate) fn search(&self, body: Value) -> Outcome<usize> {
        let request = SearchRequest {
            request: OfferingSearchRequest::validate(body)?,
            representation: Representation::Terse,
            accept_language: AcceptLanguage::parse(None),
            access: self.access.clone(),
        };
        Ok(self.catalog.search_offerings(&request)?.bytes.len())
    }
}

fn body(ask: &Ask) -> Value {
    let mut filters = Vec::new();
    if let Some(registry) = ask.registry {
        filters.push(json!({"id": "registry", "operator": "eq", "value": registry}));
    }
    if let Some(from) = &ask.updated_from {
        filters.push(json!({"id": "updated", "operator": "gte", "value": from}));
    }
    if let Some(from) = ask.major_from {
        filters.push(json!({"id": "major", "operator": "gte", "value": from}));
    }
    if let Some(from) = ask.downloads_from {
        filters.push(json!({"id": "downloads", "operator": "gte", "value": from}));
    }
    let mut body = json!({"odp_version": "1.0", "limit": PAGE});
    if let Some(text) = ask.text {
        body["query"] = text.into();
    }
    if !filters.is_empty() {
        body["filters"] = filters.into();
    }
    if ask.most_downloaded {
        body["sort"] = "most-downloaded".into();
    }
    if !ask.facets.is_empty() {
        let facets: Vec<&str> = ask.facets.iter().map(|facet| facet.name()).collect();
        body["refinements"] = facets.into();
    }
    body
}

fn cursor(page: &[u8]) -> Outcome<String> {
    let page: Value = serde_json::from_slice(page)?;
    let next = page["next"].as_str().ok_or("the page is the last one")?;
    let cursor = next.split("cursor=").nth(1).ok_or("no cursor in next")?;
    Ok(cursor.to_owned())
}

impl Engine for Ours {
    fn name(&self) -> &'static str {
        "purvey"
    }

    fn prepare(&mut self, ask: &Ask) -> Outcome<()> {
        if ask.page > 0 {
            let mut at = cursor(&self.first(&Ask {
                page: 0,
                ..ask.clone()
            })?)?;
            for _ in 1..ask.page {
                at = cursor(&self.next(&at)?)?;
            }
            self.cursors.insert(format!("{ask:?}"), at);
        }
        Ok(())
    }

    fn answer(&mut self, ask: &Ask) -> Outcome<Raw> {
        let body = match self.cursors.get(&format!("{ask:?}")) {
            Some(cursor) => self.next(cursor)?,
            None => self.first(ask)?,
        };
        Ok(Raw::Body(body))
    }
}

/// Reads a page.
pub(crate) fn read(body: &[u8]) -> Outcome<Answer> {
    let page: Value = serde_json::from_slice(body)?;
    let mut answer = Answer::default();
    for item in page["items"].as_array().into_iter().flatten() {
        answer
            .ids
            .push(item["id"].as_str().unwrap_or_default().to_owned());
    }
    for group in page["refinements"].as_array().into_iter().flatten() {
        let mut counts: Counts = Vec::new();
        for bucket in group["values"].as_array().into_iter().flatten() {
            let value = match &bucket["value"] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            counts.push((value, bucket["count"].as_u64().unwrap_or_default()));
        }
        answer.facets.push(counts);
    }
    Ok(answer)
}
