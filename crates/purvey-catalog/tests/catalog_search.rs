//! The facade's searches over real catalogs on disk find what the oracle finds by looking at every record, whatever is written, merged or restarted between pages.
//!
//! `SEARCH_CASES` sets how many random catalogs there are.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "helpers of tests"
)]

mod catalog_support;
mod search_common;

use catalog_support::{body, pointers};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use purvey_catalog::Error;
use purvey_catalog::access::Access;
use purvey_catalog::catalog::{
    Catalog, Change, DefinitionPage, Listing, Options, Page, Precondition, SearchRequest,
};
use purvey_catalog::clock::ManualClock;
use purvey_catalog::fs::Durability;
use purvey_catalog::generation::Generations;
use purvey_catalog::manifest::Manifest;
use purvey_catalog::segment::Entry;
use purvey_odp::capability::{Kind, SearchCapabilities};
use purvey_odp::identity::ResourceType;
use purvey_odp::language::{AcceptLanguage, LanguageTag};
use purvey_odp::limits;
use purvey_odp::offering::Representation;
use purvey_odp::request::{CollectionSearchRequest, OfferingSearchRequest};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use search_common::oracle::expected;
use search_common::request::{Asked, asked};
use search_common::values::{Random, record};
use search_common::{FILTERS, Filter};

const NOW: u64 = 1_800_000_000;
/// Collections with their parents; `shoes` has a filter and sorts of its own.
const COLLECTIONS: [(&str, &[&str]); 6] = [
    ("shoes", &[]),
    ("hats", &["shoes"]),
    ("a", &["b", "c"]),
    ("b", &["hats"]),
    ("c", &["hats", "shoes"]),
    ("d", &[]),
];

fn options(clock: &Arc<ManualClock>) -> Options {
    Options {
        clock: Arc::clone(clock) as _,
        durability: Durability::Off,
        ..Options::default()
    }
}

fn open(dir: &Path, clock: &Arc<ManualClock>) -> Catalog {
    Catalog::open(dir, options(clock)).unwrap()
}

fn filter_table(place: &str, filter: &Filter) -> String {
    let definition = filter.definition().to_value();
    let paths: Vec<String> = filter
        .paths
        .iter()
        .map(|path| format!("/{}", path.join("/")))
        .collect();
    format!(
        "[[{place}filters]]\nid = {:?}\ntitle = \"T\"\ndescription = \"D.\"\ntype = {:?}\noperators = {}\nrefinable = true\npaths = {:?}\n",
        filter.id,
        filter.scalar_type.as_str(),
        definition["operators"],
        paths
    )
}

fn sort_table(place: &str, id: &str, keys: &Value) -> String {
    let mut out =
        format!("[[{place}sorts]]\nid = {id:?}\ntitle = \"T\"\ndescription = \"D.\"\nkeys = [");
    for key in keys.as_array().unwrap() {
        write!(
            out,
            "{{ filter_id = {}, direction = {}, missing = {} }},",
            key["filter_id"], key["direction"], key["missing"]
        )
        .unwrap();
    }
    out + "]\n"
}

/// A manifest with the filters of the oracle and these sorts, each of the Service or of `shoes`.
fn manifest(sorts: &[(String, bool, Value)]) -> Manifest {
    let mut text = String::from(
        "[service]\nname = \"S\"\ndescription = \"D.\"\nlanguage = \"en\"\n[schemas]\n\"/any.json\" = { inline = '{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\"}' }\n",
    );
    for filter in FILTERS.iter().filter(|filter| !filter.is_local) {
        text += &filter_table("", filter);
    }
    for (id, _, keys) in sorts.iter().filter(|(_, is_local, _)| !is_local) {
        text += &sort_table("", id, keys);
    }
    for (id, parents) in COLLECTIONS {
        write!(
            text,
            "[[collections]]\nid = {id:?}\nname = \"Collection {id}\"\n"
        )
        .unwrap();
        if !parents.is_empty() {
            writeln!(text, "parent_ids = {parents:?}").unwrap();
        }
        if id == "shoes" {
            for filter in FILTERS.iter().filter(|filter| filter.is_local) {
                text += &filter_table("collections.", filter);
            }
            for (id, _, keys) in sorts.iter().filter(|(_, is_local, _)| *is_local) {
                text += &sort_table("collections.", id, keys);
            }
        }
    }
    Manifest::parse(&text, Path::new(".")).unwrap_or_else(|error| panic!("{error}"))
}

/// A valid Offering with what the oracle's random record has.
fn offering(random: &mut Random, id: &str) -> Value {
    let many = random.chance(50);
    let mut value = record(random, many);
    let map = value.as_object_mut().unwrap();
    map.insert("id".into(), json!(id));
    if map["name"] == "" {
        map["name"] = json!("x");
    }
    map.insert("schema".into(), json!({"url": "/any.json"}));
    let has_word = search_common::score(&Value::Object(map.clone())).is_some();
    let description = if has_word { "A needle" } else { "Hay" };
    map.insert("description".into(), json!(description));
    let amount = map.get("price").map(|price| price["amount"].clone());
    if let Some(amount) = amount {
        map.shift_remove("price");
        if !amount.as_str().unwrap().starts_with('-') {
            let price = json!({"type": "fixed", "amount": amount, "currency": "EUR"});
            map.insert("price".into(), price);
        }
    }
    value
}

fn request<R>(request: R, representation: Representation) -> SearchRequest<R> {
    SearchRequest {
        request,
        representation,
        accept_language: AcceptLanguage::default(),
        access: Access::public(),
    }
}

fn search(catalog: &Catalog, body: &Value) -> Result<Page, Error> {
    let body = OfferingSearchRequest::validate(body.clone()).unwrap();
    catalog.search_offerings(&request(body, Representation::Terse))
}

fn resume(catalog: &Catalog, cursor: &str) -> Result<Page, Error> {
    catalog.resume_search_offerings(cursor, &Access::public())
}

fn ids(page: &Page) -> Vec<String> {
    let body = body(&page.bytes);
    let items = body["items"].as_array().unwrap().iter();
    items
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect()
}

fn cursor(page: &Page) -> Option<String> {
    let next = body(&page.bytes).get("next")?.as_str().unwrap().to_owned();
    assert!(next.len() <= limits::NEXT_CHARS);
    Some(next.split_once("?cursor=").unwrap().1.to_owned())
}

/// All ids of a search.
fn found(catalog: &Catalog, body: &Value) -> Vec<String> {
    let mut page = search(catalog, body).unwrap();
    let mut all = ids(&page);
    while let Some(cursor) = cursor(&page) {
        page = resume(catalog, &cursor).unwrap();
        all.extend(ids(&page));
    }
    all
}

/// The Collections below one, itself too, by the table above.
fn below(id: &str) -> BTreeSet<&str> {
    let mut all = BTreeSet::from([id]);
    loop {
        let more: Vec<&str> = COLLECTIONS
            .iter()
            .filter(|(child, parents)| {
                !all.contains(child) && parents.iter().any(|parent| all.contains(parent))
            })
            .map(|(child, _)| *child)
            .collect();
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

/// A catalog on disk beside the records that it should hold.
struct Beside<'a> {
    dir: &'a Path,
    clock: Arc<ManualClock>,
    catalog: Option<Catalog>,
    records: BTreeMap<String, Value>,
    random: Random,
}

impl Beside<'_> {
    fn catalog(&self) -> &Catalog {
        self.catalog.as_ref().unwrap()
    }

    /// Writes and deletes some records, and publishes.
    fn disturb(&mut self, most: usize) {
        let n = self.random.below(most) + 1;
        let mut changes = Vec::new();
        for _ in 0..n {
            let id = format!("o{}", self.random.below(60));
            if self.random.chance(20) && self.records.remove(&id).is_some() {
                let changes = std::mem::take(&mut changes);
                self.put(changes);
                self.catalog()
                    .delete(ResourceType::Offering, &id, Precondition::None, false)
                    .unwrap();
            } else {
                let value = offering(&mut self.random, &id);
                self.records.insert(id, value.clone());
                changes.push(Change {
                    kind: ResourceType::Offering,
                    value,
                });
            }
        }
        self.put(changes);
        self.catalog().publish().unwrap();
        if self.random.chance(10) {
            self.catalog().shutdown();
            self.catalog = None;
            self.catalog = Some(open(self.dir, &self.clock));
        }
    }

    fn put(&self, changes: Vec<Change>) {
        for written in self.catalog().put_many(changes) {
            written.unwrap();
        }
    }

    /// What the oracle says to a request now.
    fn expect(&self, asked: &Asked, descendants: bool) -> search_common::oracle::Expected {
        let scope = asked.collection.as_ref().map(|id| match descendants {
            true => below(id.as_str()),
            false => BTreeSet::from([id.as_str()]),
        });
        let is_in_scope = |record: &Value| {
            let of = record["collection_ids"].as_array();
            let mut of = of.into_iter().flatten().filter_map(Value::as_str);
            scope
                .as_ref()
                .is_none_or(|scope| of.any(|id| scope.contains(id)))
        };
        let records = self
            .records
            .iter()
            .filter(|(_, record)| is_in_scope(record));
        let model = search_common::Catalog {
            segments: vec![
                records
                    .map(|(id, record)| (id.clone(), record.clone()))
                    .collect(),
            ],
            removed: BTreeSet::new(),
        };
        let anywhere = Asked {
            body: asked.body.clone(),
            resolved: asked.resolved.clone(),
            collection: None,
            with_text: asked.with_text,
            limit: asked.limit,
        };
        expected(&model, &anywhere)
    }

    fn check(&mut self, asked: &Asked) -> Result<(), TestCaseError> {
        let mut body_sent = asked.body.clone();
        let descendants = asked.collection.is_some() && self.random.chance(50);
        if descendants {
            body_sent["include_descendants"] = json!(true);
        }
        body_sent["limit"] = json!(asked.limit);
        let expected = self.expect(asked, descendants);
        let records = self.records.clone();
        let representation = match self.random.chance(50) {
            true => Representation::Full,
            false => Representation::Terse,
        };
        let sent = OfferingSearchRequest::validate(body_sent.clone()).unwrap();
        let sent = request(sent, representation);
        let mut page = self.catalog().search_offerings(&sent).unwrap();
        let first = body(&page.bytes);
        let groups = first.get("refinements").cloned().unwrap_or(json!([]));
        prop_assert_eq!(&groups, &json!(expected.groups), "{}", &body_sent);
        let mut all = Vec::new();
        loop {
            let read = body(&page.bytes);
            prop_assert_eq!(&read["odp_version"], "1.0");
            for item in read["items"].as_array().unwrap() {
                let id = item["id"].as_str().unwrap();
                if representation == Representation::Full {
                    prop_assert_eq!(item, &records[id]);
                }
                prop_assert_eq!(&item["name"], &records[id]["name"]);
                all.push(id.to_owned());
            }
            let Some(cursor) = cursor(&page) else { break };
            prop_assert_eq!(read["items"].as_array().unwrap().len(), asked.limit);
            if self.random.chance(40) {
                self.disturb(6);
            }
            page = resume(self.catalog(), &cursor).unwrap();
            prop_assert!(body(&page.bytes).get("refinements").is_none());
        }
        let mut wanted = expected.ids;
        if asked.with_text && asked.resolved.sort().is_none() {
            // The Service decides what is most relevant; each comes once all the same.
            wanted.sort_unstable();
            all.sort_unstable();
        }
        prop_assert_eq!(&all, &wanted, "{}", &body_sent);
        Ok(())
    }
}

/// The requests, and their sorts under names of their own.
fn requests(random: &mut Random, count: usize) -> (Vec<Asked>, Vec<(String, bool, Value)>) {
    let mut sorts = Vec::new();
    let mut all = Vec::new();
    while all.len() < count {
        let mut asked = asked(random);
        if asked.with_text {
            asked.body["query"] = json!(random.pick(&["needle", "Needles", "a needle", "nee"]));
        }
        if let Some(sort) = asked.resolved.sort() {
            let id = format!("by{}", all.len());
            asked.body["sort"] = json!(id);
            sorts.push((
                id,
                asked.collection.is_some(),
                sort.to_value()["keys"].clone(),
            ));
        }
        all.push(asked);
    }
    (all, sorts)
}

fn check_catalog(seed: u64) -> Result<(), TestCaseError> {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(seed);
    let (asked, sorts) = requests(&mut random, 12);
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = open(dir.path(), &clock);
    catalog.set_manifest(&manifest(&sorts)).unwrap();
    let mut beside = Beside {
        dir: dir.path(),
        clock,
        catalog: Some(catalog),
        records: BTreeMap::new(),
        random,
    };
    beside.disturb(40);
    for asked in &asked {
        beside.disturb(12);
        beside.check(asked)?;
    }
    beside.catalog().shutdown();
    Ok(())
}

fn cases() -> u32 {
    let cases = std::env::var("SEARCH_CASES").ok();
    cases.and_then(|cases| cases.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn random_catalogs_and_requests(seed in any::<u64>()) {
        check_catalog(seed)?;
    }
}

/// Five things with a number each, one without, in two Collections.
fn things(dir: &Path, clock: &Arc<ManualClock>) -> Catalog {
    let catalog = open(dir, clock);
    let keys = json!([{"filter_id": "rank", "direction": "descending", "missing": "last"}]);
    let local = json!([{"filter_id": "size", "direction": "ascending", "missing": "first"}]);
    let sorts = [
        ("down".to_owned(), false, keys),
        ("small".to_owned(), true, local),
    ];
    catalog.set_manifest(&manifest(&sorts)).unwrap();
    let thing = |id: &str, rank: i64, collections: &[&str]| {
        json!({
            "id": id, "name": format!("Thing {id}"), "collection_ids": collections,
            "schema": {"url": "/any.json"}, "attributes": {"rank": rank, "tags": ["t", id]}
        })
    };
    let mut values = vec![
        thing("one", 1, &["shoes"]),
        thing("two", 2, &["hats"]),
        thing("three", 3, &["a"]),
        thing("four", 4, &["d"]),
        thing("five", 5, &["shoes", "a"]),
    ];
    values.push(json!({"id": "none", "name": "Nothing to count"}));
    for value in values {
        let kind = ResourceType::Offering;
        for written in catalog.put_many(vec![Change { kind, value }]) {
            written.unwrap();
        }
        catalog.publish().unwrap();
    }
    catalog
}

#[test]
fn scope_is_the_collection_alone_or_with_all_below_it() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = things(dir.path(), &clock);
    let any = json!([{"id": "rank", "operator": "gte", "value": 0}]);
    let within = |id: &str, descendants: bool| {
        let mut body =
            json!({"odp_version": "1.0", "filters": any, "collection_id": id, "sort": "down"});
        if descendants {
            body["include_descendants"] = json!(true);
        }
        found(&catalog, &body)
    };
    assert_eq!(within("shoes", false), ["five", "one"]);
    assert_eq!(within("shoes", true), ["five", "three", "two", "one"]);
    assert_eq!(within("hats", true), ["five", "three", "two"]);
    assert_eq!(within("d", true), ["four"]);
    assert_eq!(within("b", false), [""; 0]);
    // Moving a Collection moves what is below it, and writes no Offering.
    let moved = json!({"id": "hats", "name": "Hats", "parent_ids": ["d"]});
    let kind = ResourceType::Collection;
    catalog
        .put(kind, "hats", moved, Precondition::None)
        .unwrap();
    let published = catalog.publish().unwrap();
    assert_eq!(within("d", true), ["five", "four", "three", "two"]);
    assert_eq!(within("shoes", true), ["five", "three", "one"]);
    let offerings = published.generation.segments(ResourceType::Offering);
    assert_eq!(offerings.map(|segment| segment.len()).sum::<u32>(), 6);
}

#[test]
fn a_refusal_names_the_member_and_a_collection_comes_first() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = things(dir.path(), &clock);
    let refused = |members: Value| {
        let mut body = json!({"odp_version": "1.0"});
        body.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        pointers(&search(&catalog, &body).unwrap_err())
    };
    let rank = json!({"id": "rank", "operator": "eq", "value": 1});
    assert_eq!(
        refused(json!({"filters": [rank, {"id": "no", "operator": "eq", "value": 1}]})),
        ["/filters/1/id"]
    );
    // A filter of a Collection is only there when it is named itself.
    let size = json!({"id": "size", "operator": "eq", "value": "1"});
    assert_eq!(refused(json!({"filters": [size]})), ["/filters/0/id"]);
    assert_eq!(
        refused(json!({"filters": [size], "collection_id": "hats"})),
        ["/filters/0/id"]
    );
    assert_eq!(
        refused(
            json!({"filters": [{"id": "tag", "operator": "lt", "value": "a"}], "sort": "up", "refinements": ["rank", "no"]})
        ),
        ["/filters/0/operator", "/sort", "/refinements/1"]
    );
    assert_eq!(
        refused(json!({"filters": [{"id": "rank", "operator": "in", "value": [1, "2", 3]}]})),
        ["/filters/0/value/1"]
    );
    let nowhere = json!({"odp_version": "1.0", "filters": [{"id": "no", "operator": "eq", "value": 1}], "collection_id": "nowhere"});
    assert!(matches!(search(&catalog, &nowhere), Err(Error::NotFound)));
    let page = search(
        &catalog,
        &json!({"odp_version": "1.0", "filters": [size], "collection_id": "shoes", "sort": "small"}),
    );
    assert_eq!(
        page.unwrap().bytes,
        br#"{"odp_version":"1.0","items":[]}"#.as_slice()
    );
}

#[test]
fn counts_leave_out_their_own_filter_and_come_once() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = things(dir.path(), &clock);
    let body_sent = json!({
        "odp_version": "1.0", "limit": 1, "refinements": ["rank", "collection"],
        "filters": [{"id": "rank", "operator": "in", "value": [1, 5]}, {"id": "tag", "operator": "eq", "value": "t"}]
    });
    let page = search(&catalog, &body_sent).unwrap();
    let read = body(&page.bytes);
    assert_eq!(
        read["refinements"],
        json!([
            {"filter_id": "rank", "values": [
                {"value": 1, "count": 1}, {"value": 2, "count": 1}, {"value": 3, "count": 1}, {"value": 4, "count": 1},
                {"value": 5, "count": 1}
            ]},
            {"filter_id": "collection", "values": [{"value": "shoes", "count": 2}, {"value": "a", "count": 1}]}
        ])
    );
    assert_eq!(ids(&page), ["five"]);
    let next = resume(&catalog, &cursor(&page).unwrap()).unwrap();
    assert!(body(&next.bytes).get("refinements").is_none());
    assert_eq!(ids(&next), ["one"]);
    assert_eq!(cursor(&next), None);
}

#[test]
fn a_continuation_belongs_to_its_operation_and_caller_and_lasts_an_hour() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = things(dir.path(), &clock);
    let body_sent = json!({"odp_version": "1.0", "limit": 2, "filters": [{"id": "rank", "operator": "exists", "value": true}]});
    let page = search(&catalog, &body_sent).unwrap();
    let text = cursor(&page).unwrap();
    let public = Access::public();
    let invalid =
        |result: Result<Page, Error>| assert!(matches!(result, Err(Error::CursorInvalid)));
    invalid(catalog.resume_search_collections(&text, &public));
    invalid(catalog.resume(&Listing::Offerings, &text, &public));
    invalid(catalog.resume_search_offerings(&text, &Access::new(["staff".to_owned()]).unwrap()));
    invalid(catalog.definitions(None, Kind::Filters, DefinitionPage::Next(&text), &public));
    let flipped = format!("{}x", &text[..text.len() - 1]);
    invalid(resume(&catalog, &flipped));
    clock.set(NOW + 3_600);
    assert_eq!(ids(&resume(&catalog, &text).unwrap()), ["one", "three"]);
    clock.set(NOW + 3_600 + 900 + 1);
    assert!(matches!(resume(&catalog, &text), Err(Error::CursorExpired)));
    // A list's continuation is none of a search.
    let list = catalog_support::first(&catalog, Listing::Offerings, 2).unwrap();
    let (_, list) = catalog_support::read(&list);
    invalid(resume(&catalog, &list.unwrap()));
}

#[test]
fn a_long_request_is_kept_beside_the_index_while_it_can_be_continued() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = things(dir.path(), &clock);
    let many: Vec<String> = (0..100)
        .map(|n| format!("{n:0>500}"))
        .chain(["t".to_owned()])
        .skip(1)
        .collect();
    let body_sent = json!({"odp_version": "1.0", "limit": 2, "filters": [{"id": "tag", "operator": "in", "value": many}], "sort": "down"});
    let kept = || {
        let names = std::fs::read_dir(dir.path().join("requests")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".req")).count()
    };
    assert_eq!(kept(), 0);
    let page = search(&catalog, &body_sent).unwrap();
    assert_eq!(ids(&page), ["five", "four"]);
    assert_eq!(kept(), 1);
    let text = cursor(&page).unwrap();
    assert!(text.len() < 400);
    // It is the same for all pages, and survives a restart.
    assert_eq!(search(&catalog, &body_sent).unwrap(), page);
    catalog.shutdown();
    drop(catalog);
    let catalog = open(dir.path(), &clock);
    clock.set(NOW + 3_600);
    let page = resume(&catalog, &text).unwrap();
    assert_eq!(ids(&page), ["three", "two"]);
    assert_eq!(kept(), 1);
    let last = resume(&catalog, &cursor(&page).unwrap()).unwrap();
    assert_eq!(ids(&last), ["one"]);
    // It goes when no continuation can name it any more, and with it what a crash left.
    std::fs::write(dir.path().join("requests/x.req.tmp"), "half").unwrap();
    clock.set(NOW + 7_200);
    catalog.collect().unwrap();
    assert_eq!(kept(), 1);
    clock.set(NOW + 7_200 + 61);
    catalog.collect().unwrap();
    assert_eq!(kept(), 0);
    assert!(!dir.path().join("requests/x.req.tmp").exists());
    assert!(matches!(resume(&catalog, &text), Err(Error::CursorExpired)));
}

#[test]
fn an_index_that_cannot_be_searched_is_built_again() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = things(dir.path(), &clock);
    let kind = ResourceType::Offering;
    let value = json!({"id": "six", "name": "Six", "collection_ids": ["shoes"]});
    let written = catalog.put(kind, "six", value, Precondition::None).unwrap();
    let epoch = catalog.current().generation.epoch();
    catalog.shutdown();
    drop(catalog);
    // As a version would have published it that knew of no columns and no text.
    let durability = Durability::Off;
    let generations = Generations::open_with(dir.path(), Arc::clone(&clock) as _, durability);
    let generations = generations.unwrap();
    let lock = generations.lock().unwrap();
    let languages = [LanguageTag::parse("en").unwrap()];
    let mut writer = generations.segment_writer(&lock, &languages).unwrap();
    let entry = Entry {
        id: "six",
        terse: br#"{"id":"six","name":"Six"}"#,
        full: br#"{"id":"six","name":"Six","collection_ids":["shoes"]}"#,
        variants: &[],
        language: None,
        postings: &["shoes"],
    };
    writer.push(&entry).unwrap();
    let mut builder = generations.builder(&lock).unwrap();
    builder.add_segment(kind, writer.finish().unwrap()).unwrap();
    let published = generations.publish(&lock, builder, written.generation, epoch);
    drop((published.unwrap(), lock, generations));
    let catalog = open(dir.path(), &clock);
    assert!(catalog.current().generation.epoch() > epoch);
    assert!(catalog.current().generation.number() > written.generation);
    let sent = json!({"odp_version": "1.0", "query": "six"});
    assert_eq!(found(&catalog, &sent), ["six"]);
    assert_eq!(catalog.check().unwrap().faults, [""; 0]);
    // Once is enough.
    let number = catalog.current().generation.number();
    drop(catalog);
    let again = open(dir.path(), &clock);
    assert_eq!(again.current().generation.number(), number);
}

#[test]
fn writes_are_found_while_a_large_merge_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = open(dir.path(), &clock);
    catalog.set_manifest(&manifest(&[])).unwrap();
    let kind = ResourceType::Offering;
    let thing = |n: usize, rank: usize| {
        json!({
            "id": format!("o{n:05}"), "name": format!("Thing {n}"), "schema": {"url": "/any.json"},
            "attributes": {"rank": rank, "count": n}
        })
    };
    let wait = Duration::from_secs(120);
    catalog.start_indexer().unwrap();
    for from in 0..10 {
        let values = (0..1_200).map(|at| thing(at * 10 + from, 0));
        let changes = values.map(|value| Change { kind, value }).collect();
        let written = catalog.put_many(changes).pop().unwrap().unwrap();
        assert!(catalog.wait_published(written.generation, wait));
    }
    let mut is_merged = false;
    for round in 1..1_700 {
        let (id, value) = (format!("o{:05}", round * 7), thing(round * 7, round));
        let written = catalog.put(kind, &id, value, Precondition::None).unwrap();
        assert!(catalog.wait_published(written.generation, wait));
        let sent = json!({
            "odp_version": "1.0", "filters": [{"id": "rank", "operator": "eq", "value": round}],
            "refinements": ["rank"], "limit": 100
        });
        let page = search(&catalog, &sent).unwrap();
        assert_eq!(ids(&page), [id]);
        let groups = body(&page.bytes)["refinements"][0]["values"].clone();
        assert_eq!(groups[0], json!({"value": 0, "count": 12_000 - round}));
        is_merged = catalog.current().generation.segments(kind).len() < 9;
        if is_merged {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(is_merged);
    catalog.shutdown();
    assert_eq!(catalog.check().unwrap().faults, [""; 0]);
}

fn collections(catalog: &Catalog, members: &Value) -> Result<Page, Error> {
    let mut body = json!({"odp_version": "1.0"});
    body.as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    let body = CollectionSearchRequest::validate(body).unwrap();
    catalog.search_collections(&request(body, Representation::Terse))
}

#[test]
fn text_finds_words_and_relevance_orders() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = open(dir.path(), &clock);
    catalog.set_manifest(&manifest(&[])).unwrap();
    let put = |id: &str, name: &str, description: &str| {
        let value =
            json!({"id": id, "name": name, "description": description, "collection_ids": ["hats"]});
        catalog
            .put(ResourceType::Offering, id, value, Precondition::None)
            .unwrap();
        catalog.publish().unwrap();
    };
    put("b", "Lamp", "For the desk");
    put("a", "Desk", "Of oak, with a lamp");
    put("c", "Lamp", "For the desk");
    put("d", "Chair", "Of oak");
    let ask = |text: &str| json!({"odp_version": "1.0", "query": text, "limit": 1});
    // A name counts more than a description; between equals the id decides.
    assert_eq!(found(&catalog, &ask("lamps")), ["b", "c", "a"]);
    assert_eq!(found(&catalog, &ask("oak desk")), ["a"]);
    assert_eq!(found(&catalog, &ask("lam")), ["b", "c", "a"]);
    assert_eq!(found(&catalog, &ask("?! -")), [""; 0]);
    assert_eq!(found(&catalog, &ask("stool")), [""; 0]);
    let scoped = json!({"odp_version": "1.0", "query": "oak", "collection_id": "shoes", "include_descendants": true});
    // The shorter text says it more.
    assert_eq!(found(&catalog, &scoped), ["d", "a"]);
    let direct = json!({"odp_version": "1.0", "query": "oak", "collection_id": "shoes"});
    assert_eq!(found(&catalog, &direct), [""; 0]);
    // The same continuation after other documents came and a restart.
    let page = search(&catalog, &ask("lamp")).unwrap();
    let text = cursor(&page).unwrap();
    put("aa", "Lamp lamp", "Lamp");
    catalog.shutdown();
    let catalog = open(dir.path(), &clock);
    let next = resume(&catalog, &text).unwrap();
    let last = resume(&catalog, &cursor(&next).unwrap()).unwrap();
    assert_eq!(
        [ids(&page), ids(&next), ids(&last)].concat(),
        ["b", "c", "a"]
    );
    assert!(catalog.check().unwrap().faults.is_empty());
}

#[test]
fn collections_are_found_by_their_text() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = things(dir.path(), &clock);
    let among = |members: Value| ids(&collections(&catalog, &members).unwrap());
    let mut all = among(json!({"query": "collections"}));
    all.sort_unstable();
    assert_eq!(all, ["a", "b", "c", "d", "hats", "shoes"]);
    assert_eq!(among(json!({"query": "shoe"})), ["shoes"]);
    assert_eq!(among(json!({"query": "hats", "parent_id": null})), [""; 0]);
    assert_eq!(
        among(json!({"query": "hats", "parent_id": "shoes"})),
        ["hats"]
    );
}

#[test]
fn collections_are_found_by_their_parent() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = things(dir.path(), &clock);
    let among = |members: Value| ids(&collections(&catalog, &members).unwrap());
    assert_eq!(among(json!({"parent_id": null})), ["d", "shoes"]);
    assert_eq!(among(json!({"parent_id": "shoes"})), ["c", "hats"]);
    assert_eq!(among(json!({"parent_id": "a"})), [""; 0]);
    let nowhere = collections(&catalog, &json!({"parent_id": "nowhere"}));
    assert!(matches!(nowhere, Err(Error::NotFound)));
    let page = collections(&catalog, &json!({"parent_id": null, "limit": 1})).unwrap();
    let text = cursor(&page).unwrap();
    let later = json!({"id": "e", "name": "Later"});
    let kind = ResourceType::Collection;
    catalog.put(kind, "e", later, Precondition::None).unwrap();
    catalog.publish().unwrap();
    let next = catalog
        .resume_search_collections(&text, &Access::public())
        .unwrap();
    assert_eq!(
        (ids(&page), ids(&next)),
        (vec!["d".to_owned()], vec!["shoes".to_owned()])
    );
    assert!(matches!(resume(&catalog, &text), Err(Error::CursorInvalid)));
    assert_eq!(among(json!({"parent_id": null})), ["d", "e", "shoes"]);
}

#[test]
fn what_can_be_used_is_advertised() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = things(dir.path(), &clock);
    let document = catalog
        .service_document(&AcceptLanguage::default())
        .unwrap();
    let document = body(&document.bytes);
    let names: Vec<&str> = document["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"search-offerings") && names.contains(&"search-collections"));
    let inline = &document["search_capabilities"];
    assert_eq!(inline["filters"]["inline"].as_array().unwrap().len(), 11);
    assert_eq!(inline["sorts"]["inline"][0]["id"], "down");
    let get = |id: &str| {
        let language = AcceptLanguage::default();
        let document = catalog.get(
            ResourceType::Collection,
            id,
            Representation::Full,
            &language,
            &Access::public(),
        );
        body(&document.unwrap().bytes)
    };
    let shoes = get("shoes");
    assert_eq!(
        shoes["search_capabilities"]["filters"]["inline"][0]["id"],
        "size"
    );
    assert_eq!(
        shoes["search_capabilities"]["sorts"]["inline"][0]["id"],
        "small"
    );
    assert!(get("hats").get("search_capabilities").is_none());
}

#[test]
fn what_does_not_fit_is_linked_and_comes_in_pages() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = open(dir.path(), &clock);
    let mut text =
        String::from("[service]\nname = \"S\"\ndescription = \"D.\"\nlanguage = \"en\"\n");
    let filter = |n: usize, description: &str| {
        format!(
            "[[filters]]\nid = \"f{n:03}\"\ntitle = \"T\"\ndescription = {description:?}\ntype = \"integer\"\noperators = [\"eq\"]\npath = \"/attributes/f{n}\"\n"
        )
    };
    for n in 0..250 {
        text += &filter(n, "D.");
    }
    text += "[[collections]]\nid = \"c\"\nname = \"C\"\n[[collections]]\nid = \"plain\"\nname = \"P\"\n";
    let own = |n: usize| filter(n, "D.").replace("[[filters]]", "[[collections.filters]]");
    let text = text.replace(
        "[[collections]]\nid = \"plain\"",
        &(0..33).fold(String::new(), |out, n| out + &own(500 + n)),
    );
    let text = text.replace("\nname = \"P\"\n", "\n");
    let linked = Manifest::parse(&text, Path::new(".")).unwrap_or_else(|error| panic!("{error}"));
    catalog.set_manifest(&linked).unwrap();
    catalog.publish().unwrap();
    let document = catalog
        .service_document(&AcceptLanguage::default())
        .unwrap();
    let capabilities = body(&document.bytes)["search_capabilities"].clone();
    assert_eq!(
        capabilities,
        json!({"filters": {"linked": {"href": "/odp/filters"}}})
    );
    let collection = catalog.get(
        ResourceType::Collection,
        "c",
        Representation::Full,
        &AcceptLanguage::default(),
        &Access::public(),
    );
    assert_eq!(
        body(&collection.unwrap().bytes)["search_capabilities"],
        json!({"filters": {"linked": {"href": "/odp/collections/c/filters"}}})
    );
    let public = Access::public();
    let all = |collection: Option<&str>| {
        let mut page = catalog
            .definitions(
                collection,
                Kind::Filters,
                DefinitionPage::First { limit: None },
                &public,
            )
            .unwrap();
        let mut sizes = vec![ids(&page).len()];
        let mut all = ids(&page);
        while let Some(text) = cursor(&page) {
            page = catalog
                .definitions(
                    collection,
                    Kind::Filters,
                    DefinitionPage::Next(&text),
                    &public,
                )
                .unwrap();
            sizes.push(ids(&page).len());
            all.extend(ids(&page));
        }
        (sizes, all)
    };
    let (sizes, ids_found) = all(None);
    assert_eq!(sizes, [100, 100, 50]);
    assert_eq!(
        ids_found,
        (0..250).map(|n| format!("f{n:03}")).collect::<Vec<_>>()
    );
    assert_eq!(all(Some("c")).0, [33]);
    let none = |collection, kind| {
        catalog.definitions(
            collection,
            kind,
            DefinitionPage::First { limit: None },
            &public,
        )
    };
    assert!(matches!(none(None, Kind::Sorts), Err(Error::NotFound)));
    assert!(matches!(
        none(Some("nowhere"), Kind::Filters),
        Err(Error::NotFound)
    ));
    // A few whose texts are long are linked too: the document has its own bound.
    let long: String = (0..32)
        .map(|n| filter(n, &"\u{20ac}".repeat(1_000)))
        .collect();
    let head = "[service]\nname = \"S\"\ndescription = \"D.\"\nlanguage = \"en\"\n";
    let manifest = Manifest::parse(&format!("{head}{long}"), Path::new(".")).unwrap();
    catalog.set_manifest(&manifest).unwrap();
    catalog.publish().unwrap();
    let document = catalog
        .service_document(&AcceptLanguage::default())
        .unwrap();
    assert!(document.bytes.len() <= limits::SERVICE_DOCUMENT_BYTES);
    let capabilities = body(&document.bytes)["search_capabilities"].clone();
    assert_eq!(
        capabilities,
        json!({"filters": {"linked": {"href": "/odp/filters"}}})
    );
    let mut report = purvey_odp::report::Report::new();
    assert!(
        SearchCapabilities::read(&mut report, &purvey_odp::report::Place::ROOT, capabilities)
            .is_some()
    );
}

#[test]
fn a_page_stays_within_its_bytes_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = open(dir.path(), &clock);
    catalog.set_manifest(&manifest(&[])).unwrap();
    let large: Vec<Change> = (0..30)
        .map(|n| Change {
            kind: ResourceType::Offering,
            value: json!({
                "id": format!("o{n:02}"), "name": "Large", "schema": {"url": "/any.json"},
                "attributes": {"rank": n % 3, "text": "x".repeat(100_000)}
            }),
        })
        .collect();
    for written in catalog.put_many(large) {
        written.unwrap();
    }
    catalog.publish().unwrap();
    let sent = json!({"odp_version": "1.0", "limit": 100, "filters": [{"id": "rank", "operator": "gte", "value": 1}], "refinements": ["rank"]});
    let sent = OfferingSearchRequest::validate(sent).unwrap();
    let mut page = catalog
        .search_offerings(&request(sent, Representation::Full))
        .unwrap();
    let mut all = Vec::new();
    loop {
        assert!(page.bytes.len() <= limits::PAGE_BYTES);
        all.extend(ids(&page));
        let Some(text) = cursor(&page) else { break };
        assert_eq!(ids(&page).len(), 5);
        page = resume(&catalog, &text).unwrap();
    }
    let wanted = (0..30).filter(|n| n % 3 > 0).map(|n| format!("o{n:02}"));
    assert_eq!(all, wanted.collect::<Vec<_>>());
}

#[test]
fn the_manifest_decides_the_order_when_the_request_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = things(dir.path(), &clock);
    let sent =
        json!({"odp_version": "1.0", "filters": [{"id": "tag", "operator": "eq", "value": "t"}]});
    assert_eq!(
        found(&catalog, &sent),
        ["five", "four", "one", "three", "two"]
    );
    let epoch = catalog.current().generation.epoch();
    let text = catalog.manifest().to_toml() + "\n[search]\ndefault_sort = \"down\"\n";
    catalog
        .set_manifest(&Manifest::parse(&text, Path::new(".")).unwrap())
        .unwrap();
    catalog.publish().unwrap();
    assert_eq!(
        found(&catalog, &sent),
        ["five", "four", "three", "two", "one"]
    );
    // Nothing was built again for that.
    assert_eq!(catalog.current().generation.epoch(), epoch);
}

#[test]
fn a_changed_filter_is_searchable_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = things(dir.path(), &clock);
    let text = catalog.manifest().to_toml();
    assert!(text.contains("/attributes/rank"));
    let text = text.replace("\"/attributes/rank\"", "\"/attributes/place\"");
    catalog
        .set_manifest(&Manifest::parse(&text, Path::new(".")).unwrap())
        .unwrap();
    catalog.publish().unwrap();
    let sent = json!({"odp_version": "1.0", "filters": [{"id": "rank", "operator": "exists", "value": true}]});
    assert_eq!(found(&catalog, &sent), [""; 0]);
    let value = json!({"id": "new", "name": "New", "schema": {"url": "/any.json"}, "attributes": {"place": 1}});
    catalog
        .put(ResourceType::Offering, "new", value, Precondition::None)
        .unwrap();
    catalog.publish().unwrap();
    assert_eq!(found(&catalog, &sent), ["new"]);
}

#[test]
fn an_explanation_says_how_and_not_what() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = things(dir.path(), &clock);
    let sent = json!({
        "odp_version": "1.0", "filters": [{"id": "tag", "operator": "eq", "value": "five"}], "collection_id": "shoes",
        "include_descendants": true, "sort": "down", "refinements": ["rank"]
    });
    let sent = OfferingSearchRequest::validate(sent).unwrap();
    let explained = catalog
        .explain(&request(sent, Representation::Terse))
        .unwrap();
    let value = serde_json::to_value(&explained).unwrap();
    assert_eq!(
        value["generation"],
        json!(catalog.current().generation.number())
    );
    assert_eq!(value["order"], json!(["rank descending"]));
    assert_eq!(value["filters"], json!(["tag eq"]));
    assert_eq!(
        (value["scope"].as_str(), value["items"].as_u64()),
        (Some("descendants"), Some(1))
    );
    let segments = value["trace"]["segments"].as_array().unwrap();
    let sum = |member: &str| {
        segments
            .iter()
            .map(|s| s[member].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!((sum("candidates"), sum("matching")), (4, 1));
    let counted = segments
        .iter()
        .flat_map(|s| s["refinements"].as_array().unwrap());
    assert!(
        counted
            .clone()
            .all(|r| r["filter_id"] == "rank" && r["plan"].is_string())
    );
    assert_eq!(counted.count(), 1);
    assert!(!value.to_string().contains("five"));
}
