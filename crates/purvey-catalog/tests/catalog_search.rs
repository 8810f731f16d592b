//! The rules of searches through the facade: scopes, refusals, continuations, text, pages.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "helpers of tests"
)]

mod catalog_search_common;
mod catalog_support;
mod search_common;

use catalog_search_common::{
    NOW, collections, cursor, found, ids, manifest, open, request, resume, search, things,
};
use catalog_support::{body, pointers};
use purvey_catalog::Error;
use purvey_catalog::access::Access;
use purvey_catalog::catalog::{Change, DefinitionPage, Listing, Page, Precondition};
use purvey_catalog::clock::ManualClock;
use purvey_catalog::fs::Durability;
use purvey_catalog::generation::Generations;
use purvey_catalog::segment::Entry;
use purvey_odp::capability::Kind;
use purvey_odp::identity::ResourceType;
use purvey_odp::language::LanguageTag;
use purvey_odp::limits;
use purvey_odp::offering::Representation;
use purvey_odp::request::OfferingSearchRequest;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

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
