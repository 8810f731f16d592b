//! One page.

use super::probe::{Probe, Reply};
use super::rules;
use purvey_odp::collection::{Collection, TerseCollection};
use purvey_odp::decode::Bounds;
use purvey_odp::filter::FilterDefinition;
use purvey_odp::limits;
use purvey_odp::offering::{Offering, Placement, Representation, TerseOffering};
use purvey_odp::page::{Next, PageEnvelope};
use purvey_odp::report::{Place, Report};
use purvey_odp::sort::SortDefinition;
use serde_json::Value;
use url::Url;

/// What stands on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Collections(Representation),
    Offerings(Representation),
    Filters,
    Sorts,
}

impl Kind {
    fn representation(self) -> Option<Representation> {
        match self {
            Self::Collections(of) | Self::Offerings(of) => Some(of),
            Self::Filters | Self::Sorts => None,
        }
    }

    fn read(self, report: &mut Report, place: &Place<'_>, value: Value) -> Option<()> {
        use Representation::{Full, Terse};
        let embedded = Placement::Embedded;
        match self {
            Self::Collections(Full) => Collection::read(report, place, value, embedded).map(|_| ()),
            Self::Collections(Terse) => {
                TerseCollection::read(report, place, value, embedded).map(|_| ())
            }
            Self::Offerings(Full) => Offering::read(report, place, value, embedded).map(|_| ()),
            Self::Offerings(Terse) => {
                TerseOffering::read(report, place, value, embedded).map(|_| ())
            }
            Self::Filters => FilterDefinition::read(report, place, value).map(|_| ()),
            Self::Sorts => SortDefinition::read(report, place, value).map(|_| ()),
        }
    }
}

/// A page as far as it can be read; its faults are findings already.
#[derive(Clone, Debug)]
pub(super) struct PageSeen {
    pub(super) request: String,
    pub(super) url: Url,
    pub(super) items: Vec<Value>,
    pub(super) next: Option<Url>,
    pub(super) refinements: Option<Value>,
}

impl PageSeen {
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.items.iter().filter_map(id_of)
    }
}

/// The identifier of an item.
pub(super) fn id_of(item: &Value) -> Option<&str> {
    item.get("id")?.as_str()
}

impl Probe<'_> {
    /// Reads the page in a successful response. Nothing when it is none.
    pub(super) fn page(
        &mut self,
        reply: &Reply,
        kind: Kind,
        limit: Option<usize>,
    ) -> Option<PageSeen> {
        let mut value = self.document(reply, Bounds::PAGE)?;
        let next = value
            .as_object_mut()
            .and_then(|map| map.shift_remove("next"));
        let refinements = value
            .as_object_mut()
            .and_then(|map| map.shift_remove("refinements"));
        let validated = PageEnvelope::validate(value.clone(), &self.origin, |report, place, v| {
            kind.read(report, place, v)
        });
        self.valid(reply, kind.representation(), validated.as_ref().err());
        let Some(Value::Array(items)) = value
            .as_object_mut()
            .and_then(|map| map.shift_remove("items"))
        else {
            return None;
        };
        if let Some(limit) = limit {
            self.hold_at(
                &rules::PAGE_LIMIT,
                &reply.request,
                "/items",
                items.len() <= limit,
                || format!("The page has {} items.", items.len()),
            );
        }
        let next = match next {
            Some(next) => self.next(reply, &next),
            None => None,
        };
        Some(PageSeen {
            request: reply.request.clone(),
            url: reply.url.clone(),
            items,
            next,
            refinements,
        })
    }

    /// Where a page leads on, if it may be followed.
    fn next(&mut self, reply: &Reply, next: &Value) -> Option<Url> {
        let (request, pointer) = (&reply.request, "/next");
        let text = next.as_str();
        let url = text.and_then(|text| self.origin.as_url().join(text).ok());
        let elsewhere = url
            .as_ref()
            .is_some_and(|url| !self.origin.is_origin_of(url));
        self.hold_at(
            &rules::PAGE_NEXT_ORIGIN,
            request,
            pointer,
            !elsewhere,
            || format!("next is {next}."),
        );
        if elsewhere {
            return None;
        }
        let read = text.map(|text| Next::parse(text, &self.origin));
        let kept = matches!(read, Some(Ok(_)));
        self.hold_at(&rules::PAGE_NEXT_VALID, request, pointer, kept, || {
            let length = text.map_or(0, str::len);
            match length > limits::NEXT_CHARS {
                true => format!("next has {length} characters."),
                false => format!("next is {next}."),
            }
        });
        let url = read?.ok()?.resolve(&self.origin);
        let leads_on = url != reply.url;
        self.hold_at(
            &rules::PAGE_NEXT_OWN_URL,
            request,
            pointer,
            leads_on,
            || format!("next is {next}."),
        );
        leads_on.then_some(url)
    }
}
