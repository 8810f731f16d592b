//! What a caller may not see does not exist for that caller: a view is the catalog of what it shows.
//!
//! The oracle is a second catalog that holds the visible records alone, without the ids of hidden Collections in them. `ACCESS_CASES` sets how many
//! random catalogs are compared.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod catalog_support;

use catalog_support::{body, catalog, collection, offering, options, pointers, read};
use proptest::prelude::*;
use proptest::sample::subsequence;
use purvey_catalog::catalog::{
    Catalog, DefinitionPage, ListRequest, Listing, Options, Page, Precondition, SearchRequest,
    Snapshot,
};
use purvey_catalog::fs::Durability;
use purvey_catalog::manifest::Manifest;
use purvey_catalog::record::Record;
use purvey_catalog::{Access, Error};
use purvey_odp::capability::Kind;
use purvey_odp::identity::ResourceType::{self, Collection, Offering};
use purvey_odp::language::AcceptLanguage;
use purvey_odp::offering::Representation::{self, Full, Terse};
use purvey_odp::request::{CollectionSearchRequest, OfferingSearchRequest};
use purvey_odp::service::{Authentication, Operation};
use serde_json::{Value, json};
use std::path::Path;

const NONE: Precondition = Precondition::None;
/// Filters from where Collections are named, alone and beside others, and from elsewhere.
const FILTERS: &str = r#"
filters = [
    { id = "members", title = "F", description = "F.", type = "string", operators = ["eq", "in", "exists"], refinable = true, path = "/collection_ids" },
    { id = "first", title = "F", description = "F.", type = "string", operators = ["eq", "in", "exists"], refinable = true, path = "/collection_ids/0" },
    { id = "mixed", title = "F", description = "F.", type = "string", operators = ["eq", "in", "exists"], refinable = true, paths = ["/name", "/collection_ids"] },
    { id = "url", title = "F", description = "F.", type = "string", operators = ["eq", "in", "exists"], refinable = true, path = "/web_url" },
    { id = "deep", title = "F", description = "F.", type = "string", operators = ["eq", "in", "exists"], refinable = true, paths = ["/collection_ids/1", "/language"] },
]
sorts = [
    { id = "up", title = "S", description = "S.", keys = [{ filter_id = "members", direction = "ascending", missing = "first" }] },
    { id = "down", title = "S", description = "S.", keys = [{ filter_id = "mixed", direction = "descending", missing = "last" }, { filter_id = "deep", direction = "ascending", missing = "last" }] },
]
"#;
const AUDIENCES: [&str; 2] = ["staff", "trade"];

fn access(audiences: &[&str]) -> Access {
    Access::new(audiences.iter().map(|name| (*name).to_owned()))
}

fn put(catalog: &Catalog, kind: ResourceType, value: &Value) {
    let id = value["id"].as_str().unwrap();
    catalog.put(kind, id, value.clone(), NONE).unwrap();
}

fn with(mut value: Value, member: &str, content: Value) -> Value {
    value[member] = content;
    value
}

fn list(
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
fn ids(catalog: &Catalog, operation: &Listing, access: &Access) -> Vec<String> {
    read(&list(catalog, operation, Terse, 100, None, access).unwrap()).0
}

/// One step of the life of a random catalog.
#[derive(Clone, Debug)]
enum Step {
    Put(ResourceType, Value),
    Delete(ResourceType, String),
    Publish,
}

fn audience() -> impl Strategy<Value = Vec<&'static str>> {
    prop_oneof![
        2 => Just(Vec::new()),
        3 => subsequence(&AUDIENCES[..], 1..=2),
    ]
}

fn decorated(
    kind: ResourceType,
    number: usize,
    named: &[usize],
    audience: &[&str],
    shape: u8,
) -> Value {
    let (prefix, member) = match kind {
        Collection => ("c", "parent_ids"),
        Offering => ("o", "collection_ids"),
    };
    let mut value = json!({"id": format!("{prefix}{number}"), "name": format!("Number {number}")});
    if !named.is_empty() {
        value[member] = named.iter().map(|n| format!("c{n}")).collect();
    }
    if shape & 1 != 0 {
        value["description"] = json!("Something.");
    }
    if shape & 6 == 2 {
        value["language"] = json!("fr");
    }
    if shape & 6 == 4 {
        value["translations"] = json!({"de": {"name": "Nummer"}, "tlh": {"name": "mI'"}});
    }
    if shape & 8 != 0 {
        value["web_url"] = json!("https://shop.example/x");
    }
    if !audience.is_empty() {
        value["audience"] = json!(audience);
    }
    value
}

/// Collections name earlier ones only, so that there is no cycle.
fn step() -> impl Strategy<Value = Step> {
    let parents = subsequence((0..6).collect::<Vec<usize>>(), 0..=3);
    prop_oneof![
        4 => (0..6_usize, parents.clone(), audience(), 0..16_u8).prop_map(|(n, mut named, audience, shape)| {
            named.retain(|parent| *parent < n);
            Step::Put(Collection, decorated(Collection, n, &named, &audience, shape))
        }),
        8 => (0..9_usize, parents, audience(), 0..16_u8)
            .prop_map(|(n, named, audience, shape)| Step::Put(Offering, decorated(Offering, n, &named, &audience, shape))),
        1 => (0..9_usize).prop_map(|n| Step::Delete(Offering, format!("o{n}"))),
        1 => (0..6_usize).prop_map(|n| Step::Delete(Collection, format!("c{n}"))),
        2 => Just(Step::Publish),
    ]
}

fn fast() -> Options {
    Options {
        durability: Durability::Off,
        ..options()
    }
}

fn open(dir: &Path, manifest: &Manifest) -> Catalog {
    let catalog = Catalog::open(dir, fast()).unwrap();
    catalog.set_manifest(manifest).unwrap();
    catalog
}

fn run(catalog: &Catalog, steps: &[Step]) {
    for n in 0..6 {
        put(catalog, Collection, &decorated(Collection, n, &[], &[], 0));
    }
    for step in steps {
        match step {
            Step::Put(kind, value) => {
                let id = value["id"].as_str().unwrap();
                match catalog.put(*kind, id, value.clone(), NONE) {
                    // It names a Collection that was deleted.
                    Ok(_) | Err(Error::Invalid(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Delete(kind, id) => match catalog.delete(*kind, id, NONE, true) {
                Ok(_) | Err(Error::NotFound) => {}
                Err(error) => panic!("{error}"),
            },
            Step::Publish => drop(catalog.publish().unwrap()),
        }
    }
    catalog.publish().unwrap();
}

/// Everything in a catalog, as it is stored.
fn records(catalog: &Catalog) -> Vec<(ResourceType, Value)> {
    let mut found = Vec::new();
    for n in 0..9 {
        for (kind, prefix) in [(Collection, "c"), (Offering, "o")] {
            if let Some(stored) = catalog.record(kind, &format!("{prefix}{n}")).unwrap() {
                found.push((kind, serde_json::from_slice(&stored.bytes).unwrap()));
            }
        }
    }
    found
}

/// The records that a caller sees, without their audience and without what names a Collection that the caller does not see.
fn visible(records: &[(ResourceType, Value)], audiences: &[&str]) -> Vec<(ResourceType, Value)> {
    let sees = |value: &Value| match value.get("audience") {
        None => true,
        Some(names) => {
            let mut names = names.as_array().unwrap().iter();
            names.any(|name| audiences.contains(&name.as_str().unwrap()))
        }
    };
    let collections: Vec<&str> = records
        .iter()
        .filter(|(kind, value)| *kind == Collection && sees(value))
        .map(|(_, value)| value["id"].as_str().unwrap())
        .collect();
    let mut seen: Vec<(ResourceType, Value)> = records
        .iter()
        .filter(|(_, value)| sees(value))
        .cloned()
        .collect();
    for (_, value) in &mut seen {
        let map = value.as_object_mut().unwrap();
        map.shift_remove("audience");
        for member in ["parent_ids", "collection_ids"] {
            let Some(named) = map.get_mut(member) else {
                continue;
            };
            let named = named.as_array_mut().unwrap();
            named.retain(|id| collections.contains(&id.as_str().unwrap()));
            if named.is_empty() {
                map.shift_remove(member);
            }
        }
    }
    seen
}

/// A response without the text of its continuation.
fn bare(page: &Page) -> String {
    let text = String::from_utf8(page.bytes.to_vec()).unwrap();
    match text.split_once("\"next\":\"") {
        None => text,
        Some((before, after)) => format!("{before}{}", after.split_once('"').unwrap().1),
    }
}

/// Every response to a caller: whole lists in all forms, and every document that may exist.
fn everything(catalog: &Catalog, access: &Access) -> Vec<String> {
    let mut all = Vec::new();
    let mut listings = vec![Listing::Collections, Listing::Offerings];
    listings.extend((0..6).map(|n| Listing::CollectionOfferings(format!("c{n}"))));
    for language in [None, Some("de"), Some("tlh, fr;q=0.5"), Some("fr")] {
        for representation in [Terse, Full] {
            for operation in &listings {
                let mut page = list(catalog, operation, representation, 2, language, access);
                loop {
                    match &page {
                        Err(Error::NotFound) => all.push("404".to_owned()),
                        Err(error) => panic!("{error}"),
                        Ok(found) => {
                            all.push(format!("{} {:?}", bare(found), found.languages));
                            if let (_, Some(cursor)) = read(found) {
                                page = catalog.resume(operation, &cursor, access);
                                continue;
                            }
                        }
                    }
                    break;
                }
            }
            for (kind, prefix) in [(Collection, "c"), (Offering, "o")] {
                for n in 0..9 {
                    let accept = AcceptLanguage::parse(language);
                    let id = format!("{prefix}{n}");
                    all.push(
                        match catalog.get(kind, &id, representation, &accept, access) {
                            Ok(found) => {
                                let text = String::from_utf8(found.bytes.to_vec()).unwrap();
                                format!("{text} {:?}", found.language)
                            }
                            Err(Error::NotFound) => format!("404 {id}"),
                            Err(error) => panic!("{error}"),
                        },
                    );
                }
            }
        }
    }
    all
}

/// How much of everything there is.
fn counts(snapshot: &Snapshot) -> Vec<u64> {
    let generation = &snapshot.generation;
    let mut counts = vec![generation.count(Collection), generation.count(Offering)];
    for n in 0..6 {
        let id = format!("c{n}");
        counts.push(u64::from(generation.contains(Collection, &id)));
        counts.push(generation.count_members(Offering, &id));
        counts.push(generation.count_members(Collection, &id));
    }
    counts
}

/// Requests that everything about membership goes into.
fn requests() -> Vec<Value> {
    let filters = ["members", "first", "mixed", "url", "deep"];
    let scopes = [
        None,
        Some(("c0", false)),
        Some(("c0", true)),
        Some(("c2", true)),
    ];
    let mut all = Vec::new();
    for (n, filter) in filters.iter().enumerate() {
        for scope in scopes {
            for expression in [
                json!({"id": filter, "operator": "exists", "value": true}),
                json!({"id": filter, "operator": "exists", "value": false}),
                json!({"id": filter, "operator": "eq", "value": format!("c{n}")}),
                json!({"id": filter, "operator": "in", "value": ["c1", "c2", "c5", "Number 3"]}),
            ] {
                let mut request = json!({"odp_version": "1.0", "filters": [expression], "refinements": filters, "limit": 2});
                if let Some((id, below)) = scope {
                    request["collection_id"] = json!(id);
                    request["include_descendants"] = json!(below);
                }
                if n != 4 {
                    request["sort"] = json!(["up", "down"][n % 2]);
                }
                all.push(request);
            }
        }
    }
    all
}

/// The items of a page and its refinements.
fn body_of(page: &Page) -> (Vec<Value>, Value) {
    let mut body = body(&page.bytes);
    let items = body["items"].as_array().unwrap().clone();
    (items, body["refinements"].take())
}

/// Every answer to these requests, and to searches for Collections.
fn searches(catalog: &Catalog, access: &Access) -> Vec<String> {
    fn request<R>(request: R, representation: Representation, access: &Access) -> SearchRequest<R> {
        SearchRequest {
            request,
            representation,
            accept_language: AcceptLanguage::default(),
            access: access.clone(),
        }
    }
    let mut all = Vec::new();
    let mut follow = |first: Result<Page, Error>, next: &dyn Fn(&str) -> Result<Page, Error>| {
        let mut page = first;
        loop {
            match page {
                Ok(found) => {
                    all.push(bare(&found));
                    match read(&found).1 {
                        Some(cursor) => page = next(&cursor),
                        None => return,
                    }
                }
                Err(Error::NotFound) => return all.push("404".to_owned()),
                Err(error) => panic!("{error}"),
            }
        }
    };
    for (n, body) in requests().into_iter().enumerate() {
        let parsed = OfferingSearchRequest::validate(body).unwrap();
        let representation = [Terse, Full][n % 2];
        follow(
            catalog.search_offerings(&request(parsed, representation, access)),
            &|cursor| catalog.resume_search_offerings(cursor, access),
        );
    }
    for parent in [Value::Null, json!("c0"), json!("c1"), json!("c2")] {
        let parsed = CollectionSearchRequest::validate(
            json!({"odp_version": "1.0", "parent_id": parent, "limit": 2}),
        );
        follow(
            catalog.search_collections(&request(parsed.unwrap(), Full, access)),
            &|cursor| catalog.resume_search_collections(cursor, access),
        );
    }
    for id in ["c0", "c1"] {
        let first = DefinitionPage::First { limit: None };
        let page = catalog.definitions(Some(id), Kind::Filters, first, access);
        follow(page, &|_| panic!("one page"));
    }
    // How well a text matches depends on all documents: here only what matches is compared.
    for text in ["number", "number 3", "something", "num", "c1", "mi'"] {
        let body =
            json!({"odp_version": "1.0", "query": text, "limit": 100, "refinements": ["members"]});
        let parsed = OfferingSearchRequest::validate(body).unwrap();
        let found = catalog
            .search_offerings(&request(parsed, Full, access))
            .unwrap();
        let found = body_of(&found);
        let mut items: Vec<String> = found.0.iter().map(Value::to_string).collect();
        items.sort();
        all.push(format!("{text}: {items:?} {}", found.1));
    }
    all
}

fn cases() -> u32 {
    let cases = std::env::var("ACCESS_CASES").ok();
    cases.and_then(|text| text.parse().ok()).unwrap_or(12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_view_is_the_catalog_of_what_it_shows(steps in prop::collection::vec(step(), 1..40), terse in any::<bool>()) {
        let terse = if terse { "[\"/collection_ids\", \"/web_url\"]" } else { "[\"/description\"]" };
        let text = format!("{FILTERS}[service]\nname = \"S\"\ndescription = \"S.\"\nlanguage = \"en\"\n[search]\nterse = {terse}\ncollection_terse = [\"/description\"]\n");
        let manifest = Manifest::parse(&text, Path::new(".")).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let catalog = open(dir.path(), &manifest);
        run(&catalog, &steps);
        let stored = records(&catalog);
        for audiences in [&[][..], &["staff"], &["trade"], &["staff", "trade"], &["nobody"]] {
            let expected = tempfile::tempdir().unwrap();
            let expected = open(expected.path(), &manifest);
            let mut seen = visible(&stored, audiences);
            // Parents first: they have smaller numbers.
            seen.sort_by_key(|(kind, value)| (*kind != Collection, value["id"].as_str().unwrap().to_owned()));
            for (kind, value) in &seen {
                put(&expected, *kind, value);
            }
            expected.publish().unwrap();
            let caller = access(audiences);
            let view = catalog.view(&caller).unwrap();
            prop_assert_eq!(counts(&view), counts(&expected.current()));
            prop_assert_eq!(everything(&catalog, &caller), everything(&expected, &Access::public()));
            prop_assert_eq!(searches(&catalog, &caller), searches(&expected, &Access::public()));
        }
        let report = catalog.check().unwrap();
        prop_assert_eq!(report.faults, Vec::<String>::new());
    }
}

/// A public tool, one for staff, one for trade, and one in a Collection for staff alone.
fn small(dir: &Path) -> Catalog {
    let catalog = catalog(dir);
    put(
        &catalog,
        Collection,
        &with(
            collection("secret", &["tools"]),
            "audience",
            json!(["staff"]),
        ),
    );
    put(
        &catalog,
        Collection,
        &collection("below", &["secret", "saws"]),
    );
    put(&catalog, Offering, &offering("a", &["tools"]));
    put(
        &catalog,
        Offering,
        &with(offering("b", &["tools"]), "audience", json!(["staff"])),
    );
    put(
        &catalog,
        Offering,
        &with(
            offering("c", &["tools"]),
            "audience",
            json!(["trade", "staff"]),
        ),
    );
    put(&catalog, Offering, &offering("d", &["secret", "tools"]));
    put(&catalog, Offering, &offering("e", &["secret"]));
    catalog.publish().unwrap();
    catalog
}

#[test]
fn everybody_sees_their_own_part() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = small(dir.path());
    let offerings = |audiences: &[&str]| ids(&catalog, &Listing::Offerings, &access(audiences));
    assert_eq!(offerings(&[]), ["a", "d", "e"]);
    assert_eq!(offerings(&["trade"]), ["a", "c", "d", "e"]);
    assert_eq!(offerings(&["staff"]), ["a", "b", "c", "d", "e"]);
    assert_eq!(offerings(&["trade", "other"]), ["a", "c", "d", "e"]);
    let collections = |audiences: &[&str]| ids(&catalog, &Listing::Collections, &access(audiences));
    assert_eq!(collections(&[]), ["below", "saws", "tools"]);
    assert_eq!(
        collections(&["staff"]),
        ["below", "saws", "secret", "tools"]
    );
    let members = Listing::CollectionOfferings("secret".to_owned());
    assert_eq!(ids(&catalog, &members, &access(&["staff"])), ["d", "e"]);
    assert!(matches!(
        list(&catalog, &members, Terse, 100, None, &Access::public()),
        Err(Error::NotFound)
    ));
}

#[test]
fn nothing_that_is_delivered_names_a_hidden_collection_or_an_audience() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = small(dir.path());
    let get = |kind, id: &str, representation, audiences: &[&str]| {
        let accept = AcceptLanguage::default();
        let found = catalog.get(kind, id, representation, &accept, &access(audiences));
        String::from_utf8(found.unwrap().bytes.to_vec()).unwrap()
    };
    assert_eq!(
        get(Offering, "d", Full, &[]),
        r#"{"odp_version":"1.0","id":"d","name":"Name of d","collection_ids":["tools"]}"#
    );
    assert_eq!(
        get(Offering, "d", Full, &["staff"]),
        r#"{"odp_version":"1.0","id":"d","name":"Name of d","collection_ids":["secret","tools"]}"#
    );
    // The last name goes with its member, and so does the hint that retrieval would show it.
    assert_eq!(
        get(Offering, "e", Full, &[]),
        r#"{"odp_version":"1.0","id":"e","name":"Name of e"}"#
    );
    assert_eq!(
        get(Offering, "e", Terse, &[]),
        r#"{"odp_version":"1.0","id":"e","name":"Name of e"}"#
    );
    assert_eq!(
        get(Offering, "e", Terse, &["staff"]),
        r#"{"odp_version":"1.0","id":"e","name":"Name of e","detail_fields":["/collection_ids"]}"#
    );
    assert_eq!(
        get(Collection, "below", Full, &[]),
        r#"{"odp_version":"1.0","id":"below","name":"Name of below","parent_ids":["saws"]}"#
    );
    assert_eq!(
        get(Offering, "b", Full, &["staff"]),
        r#"{"odp_version":"1.0","id":"b","name":"Name of b","collection_ids":["tools"]}"#
    );
}

#[test]
fn a_cursor_belongs_to_its_caller() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = small(dir.path());
    let operation = Listing::Offerings;
    let first = |caller: &Access| {
        let page = list(&catalog, &operation, Terse, 1, None, caller).unwrap();
        read(&page).1.unwrap()
    };
    let callers = [Access::public(), access(&["staff"]), access(&["trade"])];
    for mine in &callers {
        let cursor = first(mine);
        for other in &callers {
            let page = catalog.resume(&operation, &cursor, other);
            match mine == other {
                true => assert!(page.is_ok()),
                false => assert!(
                    matches!(page, Err(Error::CursorInvalid)),
                    "{mine:?} {other:?}"
                ),
            }
        }
    }
    // The order in which audiences are named makes no other context.
    let both = first(&access(&["trade", "staff"]));
    let again = Access::new(["staff", "trade", "staff"].map(str::to_owned));
    assert!(catalog.resume(&operation, &both, &again).is_ok());
}

#[test]
fn what_is_hidden_meanwhile_is_withdrawn_and_what_is_deleted_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    for n in 0..8 {
        put(
            &catalog,
            Offering,
            &offering(&format!("o{n}"), &["tools", "saws"]),
        );
    }
    catalog.publish().unwrap();
    let public = Access::public();
    let page = list(&catalog, &Listing::Offerings, Full, 2, None, &public).unwrap();
    let (_, cursor) = read(&page);
    let cursor = cursor.unwrap();
    let members = Listing::CollectionOfferings("saws".to_owned());
    let page = list(&catalog, &members, Full, 2, None, &public).unwrap();
    let (_, of_saws) = read(&page);

    put(
        &catalog,
        Offering,
        &with(offering("o3", &["tools"]), "audience", json!(["staff"])),
    );
    catalog.delete(Offering, "o4", NONE, false).unwrap();
    put(
        &catalog,
        Offering,
        &with(offering("o9", &[]), "audience", json!(["staff"])),
    );
    put(&catalog, Offering, &offering("o31", &[]));
    catalog.publish().unwrap();
    let rest = |cursor: &str| {
        let mut seen = Vec::new();
        let mut cursor = Some(cursor.to_owned());
        while let Some(text) = cursor {
            let page = catalog.resume(&Listing::Offerings, &text, &public).unwrap();
            let items = body(&page.bytes)["items"].as_array().unwrap().clone();
            seen.extend(items);
            cursor = read(&page).1;
        }
        seen
    };
    let names = |items: &[Value]| -> Vec<String> {
        let ids = items
            .iter()
            .map(|item| item["id"].as_str().unwrap().to_owned());
        ids.collect()
    };
    let seen = rest(&cursor);
    assert_eq!(names(&seen), ["o2", "o4", "o5", "o6", "o7"]);
    assert_eq!(seen[0]["collection_ids"], json!(["tools", "saws"]));

    // A Collection that is hidden now is not named any more, and nothing goes on in it.
    let saws =
        json!({"id": "saws", "name": "Saws", "parent_ids": ["tools"], "audience": ["staff"]});
    put(&catalog, Collection, &saws);
    catalog.publish().unwrap();
    let seen = rest(&cursor);
    assert_eq!(names(&seen), ["o2", "o4", "o5", "o6", "o7"]);
    for item in &seen {
        assert_eq!(item["collection_ids"], json!(["tools"]));
    }
    assert!(matches!(
        catalog.resume(&members, &of_saws.unwrap(), &public),
        Err(Error::NotFound)
    ));

    // Shown again, it is in the sequence as before.
    put(&catalog, Offering, &offering("o3", &["tools"]));
    catalog.publish().unwrap();
    assert_eq!(names(&rest(&cursor)), ["o2", "o3", "o4", "o5", "o6", "o7"]);
}

#[test]
fn an_audience_is_a_list_of_names_and_stays_with_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    let fault = |audience: Value| {
        let value = with(offering("a", &[]), "audience", audience);
        pointers(&catalog.put(Offering, "a", value, NONE).unwrap_err())
    };
    assert_eq!(fault(json!([])), ["/audience"]);
    assert_eq!(fault(json!("staff")), ["/audience"]);
    assert_eq!(fault(json!(["a b"])), ["/audience/0"]);
    assert_eq!(
        fault(json!(["", "x", "a/b"])),
        ["/audience/0", "/audience/2"]
    );
    assert_eq!(fault(json!(["x", "y", "x"])), ["/audience/2"]);
    assert_eq!(fault(json!(["x".repeat(65)])), ["/audience/0"]);
    let many: Vec<String> = (0..17).map(|n| format!("a{n}")).collect();
    assert_eq!(fault(json!(many)), ["/audience"]);
    let value = with(offering("a", &[]), "audience", json!(many[..16]));
    catalog.put(Offering, "a", value.clone(), NONE).unwrap();
    let stored = catalog.record(Offering, "a").unwrap().unwrap();
    assert_eq!(body(&stored.bytes), value);
    let record = Record::from_stored(value.clone(), Offering).unwrap();
    assert_eq!(record.audience(), &many[..16]);
    assert_eq!(record.into_stored(), value);
}

#[test]
fn the_manifest_gives_audiences_to_collections_and_rows() {
    let text = r#"
        [service]
        name = "S"
        description = "S."
        language = "en"
        [[collections]]
        id = "inner"
        name = "Inner"
        audience = ["staff"]
        [records]
        id = "sku"
        name = "title"
        audience = { column = "groups", split = "," }
    "#;
    let manifest = Manifest::parse(text, Path::new(".")).unwrap();
    assert_eq!(manifest.collections()[0].audience(), ["staff"]);
    let dir = tempfile::tempdir().unwrap();
    let rows = dir.path().join("rows.csv");
    std::fs::write(
        &rows,
        "sku,title,groups\na,A,\nb,B,\"staff, trade\"\nc,C,trade\n",
    )
    .unwrap();
    let data = dir.path().join("data");
    let report = purvey_catalog::import::import(
        &data,
        &manifest,
        &[purvey_catalog::reader::Source::of(rows.to_str().unwrap())],
        &purvey_catalog::import::ImportOptions::default(),
        &(),
    )
    .unwrap();
    assert_eq!((report.offerings, report.rejected), (3, 0));
    let catalog = Catalog::open(&data, options()).unwrap();
    let offerings = |audiences: &[&str]| ids(&catalog, &Listing::Offerings, &access(audiences));
    assert_eq!(offerings(&[]), ["a"]);
    assert_eq!(offerings(&["staff"]), ["a", "b"]);
    assert_eq!(offerings(&["trade"]), ["a", "b", "c"]);
    assert_eq!(
        ids(&catalog, &Listing::Collections, &Access::public()),
        Vec::<String>::new()
    );

    // Exported and imported again, it is the same.
    let out = dir.path().join("out");
    purvey_catalog::export::export(&data, &out, false, &options()).unwrap();
    let exported = std::fs::read_to_string(out.join("catalog.toml")).unwrap();
    let again = Manifest::parse(&exported, &out).unwrap();
    assert_eq!(again.collections()[0].audience(), ["staff"]);
    let copy = dir.path().join("copy");
    purvey_catalog::import::import(
        &copy,
        &again,
        &[purvey_catalog::reader::Source::of(
            out.join("offerings.ndjson").to_str().unwrap(),
        )],
        &purvey_catalog::import::ImportOptions::default(),
        &(),
    )
    .unwrap();
    let copy = Catalog::open(&copy, options()).unwrap();
    for audiences in [&[][..], &["staff"], &["trade"]] {
        let caller = access(audiences);
        assert_eq!(
            ids(&copy, &Listing::Offerings, &caller),
            ids(&catalog, &Listing::Offerings, &caller)
        );
    }
}

#[test]
fn the_manifest_says_where_authentication_counts() {
    let service = |more: &str| {
        format!("[service]\nname = \"S\"\ndescription = \"S.\"\nlanguage = \"en\"\n{more}\n")
    };
    let parse = |more: &str| Manifest::parse(&service(more), Path::new("."));
    let enrollment = "protocols = { enrollment = [{ name = \"aep\" }] }\n";
    let authentication =
        "authentication = { list-offerings = \"optional\", get-offering = \"required\" }";
    assert_eq!(
        pointers(&parse(authentication).unwrap_err()),
        [
            "/service/authentication/list-offerings",
            "/service/authentication/get-offering"
        ]
    );
    assert_eq!(
        pointers(
            &parse(&format!(
                "{enrollment}authentication = {{ sell = \"optional\", list-offerings = \"maybe\" }}"
            ))
            .unwrap_err()
        ),
        [
            "/service/authentication/sell",
            "/service/authentication/list-offerings"
        ]
    );
    assert_eq!(
        pointers(&parse("auth_expands = [\"sell\"]").unwrap_err()),
        ["/service/auth_expands/0"]
    );
    assert_eq!(
        pointers(&parse("auth_expands = false").unwrap_err()),
        ["/service/auth_expands"]
    );
    let manifest = parse(&format!(
        "{enrollment}{authentication}\nauth_expands = [\"list-offerings\"]"
    ))
    .unwrap();
    assert_eq!(
        manifest.service().authentication(Operation::GetOffering),
        Authentication::Required
    );
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path(), &manifest);
    put(&catalog, Offering, &offering("a", &[]));
    put(&catalog, Offering, &offering("b", &[]));
    catalog.publish().unwrap();
    let document = catalog
        .service_document(&AcceptLanguage::default())
        .unwrap();
    let document = body(&document.bytes);
    let of = |name: &str| {
        let operations = document["operations"].as_array().unwrap().iter();
        let mut found = operations.filter(|operation| operation["name"] == name);
        found.next().unwrap()["authentication"].clone()
    };
    assert_eq!(of("list-offerings"), "optional");
    assert_eq!(of("get-offering"), "required");
    assert_eq!(of("list-collections"), "not-required");

    // Pages say it to the anonymous, continuations too; nothing else does, and nobody else is told.
    let page =
        |access: &Access| list(&catalog, &Listing::Offerings, Terse, 1, None, access).unwrap();
    let first = page(&Access::public());
    assert_eq!(body(&first.bytes)["auth_expands"], true);
    let (_, cursor) = read(&first);
    let last = catalog
        .resume(&Listing::Offerings, &cursor.unwrap(), &Access::public())
        .unwrap();
    assert_eq!(
        last.bytes,
        r#"{"odp_version":"1.0","items":[{"id":"b","name":"Name of b"}],"auth_expands":true}"#
    );
    assert_eq!(
        body(&page(&access(&["staff"])).bytes).get("auth_expands"),
        None
    );
    let get = |access: &Access| {
        let accept = AcceptLanguage::default();
        catalog
            .get(Offering, "a", Full, &accept, access)
            .unwrap()
            .bytes
    };
    assert_eq!(body(&get(&Access::public())).get("auth_expands"), None);
    let collections = list(
        &catalog,
        &Listing::Collections,
        Terse,
        1,
        None,
        &Access::public(),
    );
    assert_eq!(body(&collections.unwrap().bytes).get("auth_expands"), None);
    let all = parse("auth_expands = true").unwrap();
    catalog.set_manifest(&all).unwrap();
    catalog.publish().unwrap();
    assert_eq!(
        get(&Access::public()),
        r#"{"odp_version":"1.0","auth_expands":true,"id":"a","name":"Name of a"}"#
    );
    let own = with(offering("x", &[]), "auth_expands", json!(true));
    assert_eq!(
        pointers(&catalog.put(Offering, "x", own, NONE).unwrap_err()),
        ["/auth_expands"]
    );
}
