//! Callers, and catalogs of which they see different parts.
#![allow(dead_code, reason = "every test file uses its part")]

pub(crate) mod steps;

use crate::catalog_support::{options, read};
use purvey_catalog::catalog::{Catalog, ListRequest, Listing, Options, Page, Precondition};
use purvey_catalog::fs::Durability;
use purvey_catalog::manifest::Manifest;
use purvey_catalog::{Access, Error};
use purvey_odp::identity::ResourceType;
use purvey_odp::language::AcceptLanguage;
use purvey_odp::offering::Representation::{self, Terse};
use serde_json::Value;
use std::path::Path;

pub(crate) const NONE: Precondition = Precondition::None;

pub(crate) fn access(audiences: &[&str]) -> Access {
    Access::new(audiences.iter().map(|name| (*name).to_owned())).unwrap()
}

pub(crate) fn put(catalog: &Catalog, kind: ResourceType, value: &Value) {
    let id = value["id"].as_str().unwrap();
    catalog.put(kind, id, value.clone(), NONE).unwrap();
}

pub(crate) fn with(mut value: Value, member: &str, content: Value) -> Value {
    value[member] = content;
    value
}

pub(crate) fn list(
    catalog: &Catalog,
    operation: &Listing,
    representation: Representation,
    limit: u64,
    language: Option<&str>,
    access: &Access,
) -> Result<Page, Error> {
    catalog.list(&ListRequest {
        operation: operation.clone(),
        representation,
        limit: Some(limit),
        accept_language: AcceptLanguage::parse(language),
        access: access.clone(),
    })
}

/// The ids of a list for a caller, in one page.
pub(crate) fn ids(catalog: &Catalog, operation: &Listing, access: &Access) -> Vec<String> {
    read(&list(catalog, operation, Terse, 100, None, access).unwrap()).0
}

pub(crate) fn fast() -> Options {
    Options {
        durability: Durability::Off,
        ..options()
    }
}

pub(crate) fn open(dir: &Path, manifest: &Manifest) -> Catalog {
    let catalog = Catalog::open(dir, fast()).unwrap();
    catalog.set_manifest(manifest).unwrap();
    catalog
}
