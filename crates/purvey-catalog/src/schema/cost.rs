//! How much work it is to hold a value to a schema, before any is held to it: each level of a schema that refers twice to the next doubles
//! the work, and a kilobyte of that takes longer than anybody lives.
//!
//! Counted are the schemas that a value meets, each way to a schema anew, and those that the values within it meet, down to the deepest
//! that a document can have. A value is an array, an object or neither, and a member has one name: only what can apply together is added.

use jsonschema::{Registry, Uri};
use purvey_odp::keywords;
use purvey_odp::limits;
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

/// Why the schema at `url` asks for too much; nothing when it does not, or refers to what is not there.
pub(super) fn excess(registry: &Registry<'_>, url: &str, schema: &Value) -> Option<&'static str> {
    let base = Url::parse(url).ok()?;
    let mut counter = Counter {
        registry,
        known: HashMap::new(),
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
        let (mut most, mut all) = (0_u64, 0_u64);
        for (keyword, held) in map {
            // Of these a value within meets one at most, of the others each.
            let alone = match (keyword.as_str(), kind) {
                ("properties" | "additionalProperties", Kind::Object)
                | ("prefixItems" | "items", Kind::Array) => true,
                ("patternProperties" | "unevaluatedProperties" | "propertyNames", Kind::Object)
                | ("contains" | "unevaluatedItems", Kind::Array) => false,
                _ => continue,
            };
            for inner in keywords::held(keyword, held) {
                let count = self.any(inner, base, levels, depth)?;
                if alone {
                    most = most.max(count);
                } else {
                    all = all.saturating_add(count);
                }
            }
        }
        Ok(most.saturating_add(all))
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
