//! Pages of a list or a search (ODP §3).

use crate::identity::{LocalDevelopment, LocalId, ServiceOrigin};
use crate::reference::ResourceReference;
use crate::report::{Invalid, Place, Report};
use crate::version::ProtocolVersion;
use crate::{limits, shape};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use url::Url;

/// How many items a client asks for: 1 through 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Limit(u64);

impl Limit {
    const RULE: &'static str = "Must be an integer from 1 through 100.";

    /// The limit, when it is within its bounds.
    pub fn new(limit: u64) -> Option<Self> {
        limits::PAGE_LIMIT.contains(&limit).then_some(Self(limit))
    }

    /// The limit in a query parameter: decimal digits alone, without leading zeros.
    ///
    /// # Errors
    /// When `text` is anything else, at the pointer `""`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let digits = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
        digits
            .then(|| text.parse().ok())
            .flatten()
            .and_then(Self::new)
            .ok_or_else(|| Invalid::one("", Self::RULE))
    }

    /// Reads the limit in a request body; notes what breaks the rule.
    #[expect(clippy::needless_pass_by_value, reason = "the form of all readers")]
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let limit = small_integer(&value).and_then(Self::new);
        if limit.is_none() {
            report.add(place, Self::RULE);
        }
        limit
    }

    /// The number of items.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A JSON number that is a small non-negative integer, in whatever form: `50`, `50.0` and `5e1` are the same number.
pub(crate) fn small_integer(value: &Value) -> Option<u64> {
    let number = value.as_number()?;
    number.as_u64().or_else(|| {
        let float = number.as_f64()?;
        // Beyond 2^53 a float does not say which integer it was; such numbers are out of every bound anyway.
        let exact = float.fract() == 0.0 && (0.0..=9_007_199_254_740_991.0).contains(&float);
        exact.then_some(float as u64)
    })
}

/// A page's `next`: a Resource Reference of at most 2,048 ASCII characters that stays at the Service's origin. Opaque; followed
/// with GET, exactly as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Next(ResourceReference);

impl Next {
    const RULE: &'static str =
        "Must be at most 2,048 characters and stay at the origin of the Service.";

    /// The continuation `text` of the Service at `origin`.
    ///
    /// # Errors
    /// When `text` is no Resource Reference, too long or leads to another origin; at the pointer `""`.
    pub fn parse(text: &str, origin: &ServiceOrigin) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let next = Self::read(&mut report, &Place::ROOT, text.into(), origin);
        report.finish(next)
    }

    /// Reads a JSON string; notes what breaks the rule.
    pub fn read(
        report: &mut Report,
        place: &Place<'_>,
        value: Value,
        origin: &ServiceOrigin,
    ) -> Option<Self> {
        // A Service that is itself under local development may name itself in full.
        let local = match origin.as_url().scheme() {
            "http" => LocalDevelopment::Allowed,
            _ => LocalDevelopment::Refused,
        };
        let reference = ResourceReference::read_with(report, place, value, local)?;
        if reference.as_str().len() > limits::NEXT_CHARS || !reference.is_same_origin(origin) {
            report.add(place, Self::RULE);
            return None;
        }
        Some(Self(reference))
    }

    /// The continuation as the Service wrote it.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The URL to fetch.
    pub fn resolve(&self, origin: &ServiceOrigin) -> Url {
        self.0.resolve(origin)
    }

    /// Whether the continuation leads on: it is not `own`, the URL of the page that holds it.
    pub fn advances(&self, origin: &ServiceOrigin, own: &Url) -> bool {
        self.resolve(origin) != *own
    }
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Next {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A page: the members that all pages share.
#[derive(Clone, Debug, PartialEq)]
pub struct PageEnvelope<T> {
    /// At most 100; an empty page need not be the last.
    pub items: Vec<T>,
    /// Where the sequence goes on; the last page alone has none.
    pub next: Option<Next>,
    /// Whether authentication can bring more items, or more of them.
    pub auth_expands: bool,
}

impl<T> PageEnvelope<T> {
    /// Takes the members of the envelope out of a page of the Service at `origin`; other members stay in `map`.
    pub fn take(
        report: &mut Report,
        place: &Place<'_>,
        map: &mut Map<String, Value>,
        origin: &ServiceOrigin,
        read_item: impl FnMut(&mut Report, &Place<'_>, Value) -> Option<T>,
    ) -> Option<Self> {
        let before = report.len();
        ProtocolVersion::take(report, place, map);
        let items = shape::required(report, place, map, "items", |report, place, value| {
            shape::list(report, place, value, 0..=limits::PAGE_ITEMS, read_item)
        });
        let next = shape::optional(report, place, map, "next", |report, place, value| {
            Next::read(report, place, value, origin)
        });
        let auth_expands = shape::optional(report, place, map, "auth_expands", read_true);
        let items = items?;
        (report.len() == before).then_some(Self {
            items,
            next,
            auth_expands: auth_expands.is_some(),
        })
    }

    /// The page in `value`, of the Service at `origin`. Members that are not of the envelope are ignored.
    ///
    /// # Errors
    /// Every rule that the page or an item breaks.
    pub fn validate(
        value: Value,
        origin: &ServiceOrigin,
        read_item: impl FnMut(&mut Report, &Place<'_>, Value) -> Option<T>,
    ) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let page = shape::object(&mut report, &Place::ROOT, value)
            .and_then(|mut map| Self::take(&mut report, &Place::ROOT, &mut map, origin, read_item));
        report.finish(page)
    }
}

impl<T: Serialize> Serialize for PageEnvelope<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut page = serializer.serialize_struct("PageEnvelope", 4)?;
        page.serialize_field(crate::version::MEMBER, &ProtocolVersion::V1_0)?;
        page.serialize_field("items", &self.items)?;
        if let Some(next) = &self.next {
            page.serialize_field("next", next)?;
        }
        if self.auth_expands {
            page.serialize_field("auth_expands", &true)?;
        }
        page.end()
    }
}

/// Reads `auth_expands`: only `true` is a value, since `false` is written by leaving it out.
#[expect(clippy::needless_pass_by_value, reason = "the form of all readers")]
fn read_true(report: &mut Report, place: &Place<'_>, value: Value) -> Option<()> {
    if value == Value::Bool(true) {
        return Some(());
    }
    report.add(place, "Must be true or left out.");
    None
}

/// The index of the first element that occurred before: within one traversal, no identity may.
pub fn first_repeated<T: Hash + Eq>(identities: impl IntoIterator<Item = T>) -> Option<usize> {
    let mut seen = HashSet::new();
    identities
        .into_iter()
        .position(|identity| !seen.insert(identity))
}

/// What was met so far, in a traversal that may be long. Each costs 16 bytes (some 40 in the set at most), however long it is: a
/// digest by two keys that are new for each set, so that nobody can make two things look like one.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    keys: [RandomState; 2],
    digests: HashSet<u128>,
}

impl Seen {
    /// Adds a thing; whether it is new.
    pub fn insert(&mut self, thing: &impl Hash) -> bool {
        let digest = self.digest(thing);
        self.digests.insert(digest)
    }

    /// Whether the thing was added before.
    pub fn contains(&self, thing: &impl Hash) -> bool {
        self.digests.contains(&self.digest(thing))
    }

    fn digest(&self, thing: &impl Hash) -> u128 {
        let [high, low] = self.keys.each_ref().map(|key| key.hash_one(thing));
        u128::from(high) << 64 | u128::from(low)
    }
}

/// The identities that one traversal has met so far.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    seen: Seen,
}

impl Sequence {
    /// Takes the identities of the next page.
    ///
    /// # Errors
    /// A violation at `/items/{index}` for each that occurred before, on this page or an earlier one.
    pub fn page<'a>(&mut self, ids: impl IntoIterator<Item = &'a LocalId>) -> Result<(), Invalid> {
        let mut report = Report::new();
        let items = Place::ROOT.key("items");
        for (index, id) in ids.into_iter().enumerate() {
            if !self.seen.insert(id) {
                report.add(
                    &items.index(index),
                    format!("Must not repeat {id} within one traversal."),
                );
            }
        }
        report.finish(Some(()))
    }
}

/// Whether a continuation that works for `seconds` after it was issued works long enough.
pub fn is_lifetime(seconds: u64) -> bool {
    seconds >= limits::CONTINUATION_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn origin() -> ServiceOrigin {
        ServiceOrigin::parse("https://market.example", LocalDevelopment::Refused).unwrap()
    }

    fn id_of(report: &mut Report, place: &Place<'_>, value: Value) -> Option<LocalId> {
        let mut map = shape::object(report, place, value)?;
        shape::required(report, place, &mut map, "id", LocalId::read)
    }

    fn page(value: Value) -> Result<PageEnvelope<LocalId>, Vec<String>> {
        PageEnvelope::validate(value, &origin(), id_of)
            .map_err(|e| e.into_violations().into_iter().map(|v| v.pointer).collect())
    }

    #[test]
    fn pages() {
        let next = "/odp/offerings/pages/eyJhZnRlciI6ImEifQ";
        let first =
            page(json!({"odp_version": "1.0", "items": [{"id": "a"}], "next": next})).unwrap();
        assert_eq!(first.items, [LocalId::parse("a").unwrap()]);
        assert_eq!(first.next.as_ref().map(Next::as_str), Some(next));
        assert!(!first.auth_expands);
        assert_eq!(
            serde_json::to_string(&first).unwrap(),
            format!(r#"{{"odp_version":"1.0","items":["a"],"next":"{next}"}}"#)
        );

        let last =
            page(json!({"odp_version": "1.0", "items": [], "auth_expands": true, "later": 1}))
                .unwrap();
        assert!(last.next.is_none() && last.auth_expands);
        assert_eq!(
            serde_json::to_string(&last).unwrap(),
            r#"{"odp_version":"1.0","items":[],"auth_expands":true}"#
        );
    }

    #[test]
    fn broken_pages() {
        let pointers = |value| page(value).unwrap_err();
        assert_eq!(
            pointers(json!({"odp_version": "1.0", "items": [], "next": ""})),
            ["/next"]
        );
        assert_eq!(pointers(json!({"items": []})), [""]);
        assert_eq!(pointers(json!({"odp_version": "1.0"})), [""]);
        assert_eq!(pointers(json!([])), [""]);
        assert_eq!(
            pointers(
                json!({"odp_version": "1.7", "items": [{"id": "a"}, {"id": ".."}], "next": null, "auth_expands": false})
            ),
            ["/odp_version", "/items/1/id", "/next", "/auth_expands"]
        );
        let items = |n: usize| json!({"odp_version": "1.0", "items": vec![json!({"id": "a"}); n]});
        assert_eq!(page(items(100)).unwrap().items.len(), 100);
        assert_eq!(pointers(items(101)), ["/items"]);
    }

    #[test]
    fn continuations_stay_at_the_origin() {
        let ok = |text: &str| Next::parse(text, &origin()).is_ok();
        assert!(ok("/odp/search-pages/eyJxdWVyeSI6ImRlc2sifQ"));
        assert!(ok("https://market.example/pages/abc"));
        assert!(!ok("https://other.example/pages/abc"));
        assert!(!ok("https://market.example:8443/pages/abc"));
        assert!(!ok("?cursor=abc"));
        assert!(ok(&format!("/{}", "a".repeat(2047))));
        assert!(!ok(&format!("/{}", "a".repeat(2048))));

        let local =
            ServiceOrigin::parse("http://localhost:3000", LocalDevelopment::Allowed).unwrap();
        assert!(Next::parse("http://localhost:3000/x", &local).is_ok());
        assert!(Next::parse("http://localhost:3001/x", &local).is_err());
        assert!(Next::parse("http://localhost:3000/x", &origin()).is_err());
    }

    #[test]
    fn a_continuation_advances() {
        let next = Next::parse("/offerings?cursor=b", &origin()).unwrap();
        let at = |text| Url::parse(text).unwrap();
        assert!(next.advances(&origin(), &at("https://market.example/offerings?cursor=a")));
        assert!(!next.advances(&origin(), &at("https://market.example/offerings?cursor=b")));
        assert!(!next.advances(
            &origin(),
            &at("https://market.example:443/x/../offerings?cursor=b")
        ));
    }

    #[test]
    fn limits_of_a_request() {
        for (text, limit) in [("1", 1), ("50", 50), ("100", 100)] {
            assert_eq!(Limit::parse(text).unwrap().get(), limit);
        }
        for text in [
            "0",
            "101",
            "",
            "-1",
            "+1",
            "01",
            "1.0",
            " 1",
            "1e1",
            "99999999999999999999",
            "x",
        ] {
            assert!(Limit::parse(text).is_err(), "{text}");
        }
        let read = |value| Limit::read(&mut Report::new(), &Place::ROOT, value).map(Limit::get);
        assert_eq!(read(json!(1)), Some(1));
        assert_eq!(read(json!(100)), Some(100));
        assert_eq!(read(json!(50.0)), Some(50));
        for value in [
            json!(101),
            json!(0),
            json!(-1),
            json!(1.5),
            json!("1"),
            json!(null),
            json!(true),
            json!(1e300),
        ] {
            assert_eq!(read(value.clone()), None, "{value}");
        }
    }

    #[test]
    fn a_sequence_never_repeats() {
        let ids = |texts: &[&str]| -> Vec<LocalId> {
            texts.iter().map(|t| LocalId::parse(t).unwrap()).collect()
        };
        let mut sequence = Sequence::default();
        assert!(sequence.page(&ids(&["a", "b"])).is_ok());
        assert!(sequence.page(&ids(&["c", "d", "A"])).is_ok());
        let invalid = sequence.page(&ids(&["e", "b", "e"])).unwrap_err();
        let pointers: Vec<_> = invalid
            .violations()
            .iter()
            .map(|v| v.pointer.as_str())
            .collect();
        assert_eq!(pointers, ["/items/1", "/items/2"]);
        assert_eq!(first_repeated(["a", "b", "b", "c"]), Some(2));
        assert_eq!(first_repeated(["a", "b", "c", "d"]), None);
    }

    #[test]
    fn continuations_live_an_hour() {
        assert!(is_lifetime(3600));
        assert!(!is_lifetime(3599));
    }
}
