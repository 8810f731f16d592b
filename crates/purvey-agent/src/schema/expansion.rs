//! How much work it is to compile a schema, before it is done.
//!
//! The validator compiles each schema once, wherever it is referred to. But where something is said about what was not
//! evaluated, it follows every way through the schemas at the same place anew, and ways multiply. They are counted here, each
//! schema once.

use super::index::Index;
use crate::issue::{Fault, IssueCode};
use purvey_odp::keywords;
use serde_json::Value;
use std::collections::HashMap;
use std::ptr;

/// Most schemas that are compiled, each time counted.
const COMPILED: u64 = 100_000;

/// Refuses a schema that would take too much work to compile.
pub(super) fn check<'a>(index: &Index<'a>, root: &'a Value) -> Result<(), Fault> {
    let mut counter = Counter {
        index,
        compiled: HashMap::new(),
        ways: HashMap::new(),
    };
    let mut total = counter.compiled(root)?;
    for target in index.targets() {
        total = total.saturating_add(counter.compiled(target)?);
        if total > COMPILED {
            return Err(too_costly());
        }
    }
    Ok(())
}

fn too_costly() -> Fault {
    let message = "The schema takes too many steps to compile.";
    Fault::new(IssueCode::TooCostly, message)
}

struct Counter<'i, 'a> {
    index: &'i Index<'a>,
    compiled: HashMap<*const Value, u64>,
    /// Nothing while it is being counted.
    ways: HashMap<*const Value, Option<u64>>,
}

impl<'a> Counter<'_, 'a> {
    /// Schemas that are compiled for `schema`, without what it refers to.
    fn compiled(&mut self, schema: &'a Value) -> Result<u64, Fault> {
        let Value::Object(map) = schema else {
            return Ok(1);
        };
        if let Some(known) = self.compiled.get(&ptr::from_ref(schema)) {
            return Ok(*known);
        }
        let mut count = 1_u64;
        for inner in keywords::within(map) {
            count = count.saturating_add(self.compiled(inner)?);
        }
        for keyword in ["unevaluatedProperties", "unevaluatedItems"] {
            if map.contains_key(keyword) {
                count = count.saturating_add(self.ways(schema)?);
            }
        }
        if count > COMPILED {
            return Err(too_costly());
        }
        self.compiled.insert(ptr::from_ref(schema), count);
        Ok(count)
    }

    /// Schemas that are compiled to know what `schema` evaluates.
    fn ways(&mut self, schema: &'a Value) -> Result<u64, Fault> {
        let Value::Object(map) = schema else {
            return Ok(1);
        };
        match self.ways.get(&ptr::from_ref(schema)) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => return Err(too_costly()),
            None => {}
        }
        self.ways.insert(ptr::from_ref(schema), None);
        let mut count = 1_u64;
        for (keyword, held) in map {
            for inner in keywords::held(keyword, held) {
                count = count.saturating_add(self.compiled(inner)?);
                if keywords::is_in_place(keyword) {
                    count = count.saturating_add(self.ways(inner)?);
                }
            }
            let mut most = 0;
            for target in self.index.referred(schema, keyword, held) {
                most = most.max(self.ways(target)?);
            }
            count = count.saturating_add(most);
        }
        if count > COMPILED {
            return Err(too_costly());
        }
        self.ways.insert(ptr::from_ref(schema), Some(count));
        Ok(count)
    }
}
