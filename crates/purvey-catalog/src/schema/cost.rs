//! How much work it is to hold a value to a schema, before any is held to it: each level of a schema that refers twice to the next doubles
//! the work, and a kilobyte of that takes longer than anybody lives.
//!
//! Counted are the schemas that a value meets, each way to a schema anew, and those that the values within it meet, down to the deepest
//! that a document can have. A value is an array, an object or neither, and a member has one name: only what can apply together is added.
//! So a tree whose children are reached by a name or by one of several patterns costs what it is deep, unless a name is met by both.

use jsonschema::{Registry, Uri};
use purvey_odp::keywords;
use purvey_odp::limits;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::ptr;
use url::Url;

/// Most schemas that a value and one chain of values within it may meet.
const MEETINGS: u64 = 10_000;
/// Most schemas within schemas on the way to one value: evaluation is recursive.
const DEPTH: usize = 256;
/// Most pairs of a schema and a level that are looked at.
const KNOWN: usize = 400_000;
/// Most pairs of a name and a pattern of one schema that are held against each other; of more, each pattern counts for each name.
const PAIRS: usize = 10_000;
/// Most memory of a compiled pattern, in bytes; a larger one counts for each name.
const PATTERN_BYTES: usize = 1 << 20;

/// Why the schema at `url` asks for too much; nothing when it does not, or refers to what is not there.
pub(super) fn excess(registry: &Registry<'_>, url: &str, schema: &Value) -> Option<&'static str> {
    let base = Url::parse(url).ok()?;
    let mut counter = Counter {
        registry,
        known: HashMap::new(),
        patterns: HashMap::new(),
    };
    counter.any(schema, &base, limits::JSON_DEPTH, 0).err()
}

/// What keywords for the values within apply to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Array,
    Object,
}

struct Counter<'r> {
    registry: &'r Registry<'r>,
    /// By schema, levels below and kind; nothing while it is being counted.
    known: HashMap<(*const Value, usize, Kind), Option<u64>>,
    /// Nothing for what cannot be compiled here.
    patterns: HashMap<&'r str, Option<Regex>>,
}

impl<'r> Counter<'r> {
    /// Meetings of a value of whatever kind with `levels` of values below it.
    fn any(
        &mut self,
        schema: &'r Value,
        base: &Url,
        levels: usize,
        depth: usize,
    ) -> Result<u64, &'static str> {
        let array = self.of(schema, base, levels, Kind::Array, depth)?;
        let object = self.of(schema, base, levels, Kind::Object, depth)?;
        Ok(array.max(object))
    }

    fn of(
        &mut self,
        schema: &'r Value,
        base: &Url,
        levels: usize,
        kind: Kind,
        depth: usize,
    ) -> Result<u64, &'static str> {
        let Value::Object(map) = schema else {
            return Ok(1);
        };
        let key = (ptr::from_ref(schema), levels, kind);
        match self.known.get(&key) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => return Err("refers to itself without end"),
            None => {}
        }
        if depth >= DEPTH || self.known.len() >= KNOWN {
            return Err("is too deep or too large to evaluate");
        }
        self.known.insert(key, None);
        let named = map.get("$id").and_then(Value::as_str);
        let own = named.and_then(|id| base.join(id).ok());
        let base = own.as_ref().unwrap_or(base);
        let mut count = 1_u64;
        for (keyword, held) in map {
            if keywords::is_in_place(keyword) {
                for inner in keywords::held(keyword, held) {
                    count = count.saturating_add(self.of(inner, base, levels, kind, depth + 1)?);
                }
            }
            if let ("$ref" | "$dynamicRef", Some(reference)) = (keyword.as_str(), held.as_str())
                && let Some((target, base)) = self.referred(base, reference)
            {
                count = count.saturating_add(self.of(target, &base, levels, kind, depth + 1)?);
            }
        }
        if let Some(levels) = levels.checked_sub(1) {
            count = count.saturating_add(self.within(map, base, levels, kind, depth + 1)?);
        }
        if count > MEETINGS {
            return Err("takes too many steps to evaluate");
        }
        self.known.insert(key, Some(count));
        Ok(count)
    }

    /// Meetings of the value within that has most.
    fn within(
        &mut self,
        map: &'r Map<String, Value>,
        base: &Url,
        levels: usize,
        kind: Kind,
        depth: usize,
    ) -> Result<u64, &'static str> {
        match kind {
            Kind::Array => self.item(map, base, levels, depth),
            Kind::Object => self.member(map, base, levels, depth),
        }
    }

    fn item(
        &mut self,
        map: &'r Map<String, Value>,
        base: &Url,
        levels: usize,
        depth: usize,
    ) -> Result<u64, &'static str> {
        let (mut most, mut all) = (0_u64, 0_u64);
        for (keyword, held) in map {
            for inner in keywords::held(keyword, held) {
                match keyword.as_str() {
                    // An item meets one of these, and each of the others.
                    "prefixItems" | "items" => {
                        most = most.max(self.any(inner, base, levels, depth)?);
                    }
                    "contains" | "unevaluatedItems" => {
                        all = all.saturating_add(self.any(inner, base, levels, depth)?);
                    }
                    _ => {}
                }
            }
        }
        Ok(most.saturating_add(all))
    }

    fn member(
        &mut self,
        map: &'r Map<String, Value>,
        base: &Url,
        levels: usize,
        depth: usize,
    ) -> Result<u64, &'static str> {
        let mut listed = Vec::new();
        let mut patterns = Vec::new();
        let (mut most, mut always) = (0_u64, 0_u64);
        for (keyword, held) in map {
            match (keyword.as_str(), held) {
                ("properties", Value::Object(schemas)) => {
                    for (name, inner) in schemas {
                        listed.push((name.as_str(), self.any(inner, base, levels, depth)?));
                    }
                }
                ("patternProperties", Value::Object(schemas)) => {
                    for (pattern, inner) in schemas {
                        patterns.push((pattern.as_str(), self.any(inner, base, levels, depth)?));
                    }
                }
                // Of no other name that is listed or matches.
                ("additionalProperties", inner) => {
                    most = most.max(self.any(inner, base, levels, depth)?);
                }
                ("unevaluatedProperties", inner) => {
                    always = self.any(inner, base, levels, depth)?;
                }
                // A name is a value of its own, with nothing within.
                ("propertyNames", inner) => most = most.max(self.any(inner, base, 0, depth)?),
                _ => {}
            }
        }
        let compared = listed.len().saturating_mul(patterns.len()) <= PAIRS;
        for (name, own) in listed {
            let met = patterns
                .iter()
                .filter(|(pattern, _)| !compared || self.matches(pattern, name));
            most = most.max(sum(met).saturating_add(own));
        }
        // Of a name that is not listed it is known only how those begin that a pattern matches.
        for (pattern, _) in &patterns {
            let begin = beginning(pattern);
            let met = patterns
                .iter()
                .filter(|(other, _)| begin.starts_with(beginning(other)));
            most = most.max(sum(met));
        }
        Ok(most.saturating_add(always))
    }

    /// Whether a pattern may match a name.
    fn matches(&mut self, pattern: &'r str, name: &str) -> bool {
        let compiled = self.patterns.entry(pattern).or_insert_with(|| {
            let mut builder = RegexBuilder::new(pattern);
            builder.size_limit(PATTERN_BYTES).build().ok()
        });
        // Beyond ASCII the dialects of patterns differ.
        !name.is_ascii() || compiled.as_ref().is_none_or(|regex| regex.is_match(name))
    }

    /// The schema that `reference` means at `base`, and its own base.
    fn referred(&self, base: &Url, reference: &str) -> Option<(&'r Value, Url)> {
        let base = jsonschema::uri::from_str(base.as_str()).ok()?;
        let resolved = self.registry.resolver(base).lookup(reference).ok()?;
        let own: &Uri<String> = &resolved.resolver().base_uri();
        let own = Url::parse(own.as_str()).ok()?;
        Some((resolved.contents(), own))
    }
}

fn sum<'p, 's: 'p>(patterns: impl Iterator<Item = &'p (&'s str, u64)>) -> u64 {
    patterns.fold(0, |sum, (_, count)| sum.saturating_add(*count))
}

/// What every name begins with that the pattern matches, as far as that is plain to see.
fn beginning(pattern: &str) -> &str {
    let Some(rest) = pattern.strip_prefix('^').filter(|rest| !rest.contains('|')) else {
        return "";
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '/' | ' ');
    let end = rest.find(|c| !is_plain(c)).unwrap_or(rest.len());
    // Where the last may be absent.
    let may_lack = rest[end..].starts_with(['?', '*', '{']);
    &rest[..end - usize::from(may_lack && end > 0)]
}
