use super::*;
use proptest::prelude::*;

fn filter(id: &str) -> Value {
    json!({"id": id, "title": id, "description": id, "type": "decimal", "operators": ["lte"]})
}

fn sort(id: &str, filter_ids: &[&str]) -> Value {
    let keys: Vec<_> = filter_ids
        .iter()
        .map(|id| json!({"filter_id": id, "direction": "ascending", "missing": "last"}))
        .collect();
    json!({"id": id, "title": id, "description": id, "keys": keys})
}

fn faults(value: Value) -> Vec<String> {
    let mut report = Report::new();
    let capabilities = SearchCapabilities::read(&mut report, &Place::ROOT, value);
    match report.finish(capabilities) {
        Ok(_) => Vec::new(),
        Err(invalid) => invalid
            .into_violations()
            .into_iter()
            .map(|v| v.pointer)
            .collect(),
    }
}

fn read(value: Value) -> SearchCapabilities {
    let mut report = Report::new();
    let capabilities = SearchCapabilities::read(&mut report, &Place::ROOT, value);
    report.finish(capabilities).unwrap()
}

#[test]
fn an_advertisement_comes_back_as_it_was() {
    for value in [
        json!({"filters": {"inline": [filter("region")]}, "sorts": {"inline": [sort("price-low-to-high", &["price"])]}}),
        json!({"filters": {"linked": {"href": "/odp/collections/home-office/filters"}},
            "sorts": {"inline": [sort("processing-fastest", &["processing_days"])]}}),
        json!({"sorts": {"linked": {"href": "https://market.example/sorts?page=1"}}}),
    ] {
        assert_eq!(read(value.clone()).to_value(), value);
    }
}

#[test]
fn every_fault_of_an_advertisement_is_noted_where_it_is() {
    let many = |count: usize| {
        (0..count)
            .map(|i| filter(&format!("f{i}")))
            .collect::<Value>()
    };
    let sorts = |count: usize| {
        (0..count)
            .map(|i| sort(&format!("s{i}"), &["f"]))
            .collect::<Value>()
    };
    for (value, pointers) in [
        (json!({}), vec![""]),
        (json!([]), vec![""]),
        (
            json!({"filters": {"inline": [filter("a")], "linked": {"href": "/f"}}}),
            vec!["/filters"],
        ),
        (json!({"filters": {}}), vec!["/filters"]),
        (
            json!({"filters": {"inline": []}, "sorts": {"inline": []}}),
            vec!["/filters/inline", "/sorts/inline"],
        ),
        (
            json!({"filters": {"inline": many(32)}, "sorts": {"inline": sorts(16)}}),
            vec![],
        ),
        (
            json!({"filters": {"inline": many(33)}, "sorts": {"inline": sorts(17)}}),
            vec!["/filters/inline", "/sorts/inline"],
        ),
        (
            json!({"filters": {"inline": [filter("a"), filter("b"), filter("a")]}}),
            vec!["/filters/inline/2/id"],
        ),
        (
            json!({"filters": {"inline": [filter("a"), filter("A")]}}),
            vec![],
        ),
        (
            json!({"filters": {"inline": [{"id": "a"}]}}),
            vec!["/filters/inline/0"; 4],
        ),
        (json!({"filters": {"linked": {}}}), vec!["/filters/linked"]),
        (
            json!({"filters": {"linked": "/f"}}),
            vec!["/filters/linked"],
        ),
        (
            json!({"filters": {"linked": {"href": "filters"}}}),
            vec!["/filters/linked/href"],
        ),
        (
            json!({"filters": {"linked": {"href": "/f"}, "note": 1}, "note": 2}),
            vec![],
        ),
    ] {
        assert_eq!(faults(value.clone()), pointers, "{value}");
    }
}

#[test]
fn links_stay_at_the_service_origin() {
    let origin = ServiceOrigin::parse("https://market.example", LocalDevelopment::Refused).unwrap();
    let check = |href: &str| {
        let mut report = Report::new();
        read(json!({"filters": {"linked": {"href": href}}})).check_origin(
            &mut report,
            &Place::ROOT,
            &origin,
        );
        report
            .finish(Some(()))
            .map_err(|invalid| invalid.violations()[0].pointer.clone())
    };
    assert_eq!(check("/filters"), Ok(()));
    assert_eq!(check("https://market.example/filters"), Ok(()));
    assert_eq!(
        check("https://other.example/filters"),
        Err("/filters/linked/href".to_owned())
    );
    assert_eq!(
        check("https://market.example:8443/filters"),
        Err("/filters/linked/href".to_owned())
    );
}

#[test]
fn inline_capabilities_are_made_of_definitions() {
    let filters = vec![FilterDefinition::validate(filter("a")).unwrap()];
    let made = SearchCapabilities::inline(&filters, &[]).unwrap().unwrap();
    assert_eq!(
        made.to_value(),
        json!({"filters": {"inline": [filter("a")]}})
    );
    assert_eq!(SearchCapabilities::inline(&[], &[]), Ok(None));
    assert!(SearchCapabilities::inline(&[filters[0].clone(), filters[0].clone()], &[]).is_err());
}

fn definitions(ids: &[&str]) -> Vec<FilterDefinition> {
    ids.iter()
        .map(|id| FilterDefinition::validate(filter(id)).unwrap())
        .collect()
}

fn numbered(range: std::ops::Range<usize>) -> Vec<FilterDefinition> {
    let ids: Vec<_> = range.map(|i| format!("f{i}")).collect();
    definitions(&ids.iter().map(String::as_str).collect::<Vec<_>>())
}

fn scope(filters: &[&str], sorts: &[(&str, &[&str])]) -> ScopeCapabilities {
    ScopeCapabilities {
        filters: Fetched::Definitions(definitions(filters)),
        sorts: Fetched::Definitions(
            sorts
                .iter()
                .map(|(id, ids)| SortDefinition::validate(sort(id, ids)).unwrap())
                .collect(),
        ),
    }
}

fn ids(effective: &EffectiveCapabilities) -> (Vec<&str>, Vec<&str>, Vec<String>) {
    (
        effective
            .filters()
            .iter()
            .map(|d| d.id().as_str())
            .collect(),
        effective.sorts().iter().map(|d| d.id().as_str()).collect(),
        effective.issues().iter().map(ToString::to_string).collect(),
    )
}

#[test]
fn only_the_named_collection_adds_to_the_service() {
    let effective =
        EffectiveCapabilities::merge(scope(&["price"], &[]), Some(scope(&["material"], &[])));
    assert_eq!(ids(&effective), (vec!["price", "material"], vec![], vec![]));
    let effective = EffectiveCapabilities::merge(scope(&["price"], &[]), None);
    assert_eq!(ids(&effective), (vec!["price"], vec![], vec![]));
}

#[test]
fn what_two_sources_publish_is_quarantined_with_what_depends_on_it() {
    let service = scope(
        &["price", "available"],
        &[("price-low-to-high", &["price"]), ("ready", &["available"])],
    );
    let collection = scope(
        &["price", "material"],
        &[("by-material", &["material", "price"])],
    );
    let effective = EffectiveCapabilities::merge(service.clone(), Some(collection.clone()));
    assert_eq!(
        ids(&effective),
        (
            vec!["available", "material"],
            vec!["ready"],
            vec![
                "filters-conflict:price".to_owned(),
                "sort-reference:price-low-to-high".to_owned(),
                "sort-reference:by-material".to_owned(),
            ]
        )
    );
    assert!(effective.filter("price").is_none() && effective.sort("price-low-to-high").is_none());
    assert!(effective.filter("material").is_some() && effective.sort("ready").is_some());
    assert_eq!(
        EffectiveCapabilities::check(service.clone(), Some(collection))
            .unwrap_err()
            .len(),
        3
    );
    assert!(EffectiveCapabilities::check(service, None).is_ok());

    let twice = scope(&["price"], &[("cheap", &["price"])]);
    let effective = EffectiveCapabilities::merge(
        twice,
        Some(scope(
            &["size"],
            &[("cheap", &["size"]), ("small", &["size"])],
        )),
    );
    assert_eq!(
        ids(&effective),
        (
            vec!["price", "size"],
            vec!["small"],
            vec!["sorts-conflict:cheap".to_owned()]
        )
    );
}

#[test]
fn a_sort_may_use_filters_of_either_scope() {
    let service = scope(&["price"], &[("by-size", &["size"])]);
    let alone = EffectiveCapabilities::merge(service.clone(), None);
    assert_eq!(
        ids(&alone),
        (
            vec!["price"],
            vec![],
            vec!["sort-reference:by-size".to_owned()]
        )
    );
    let named = EffectiveCapabilities::merge(
        service,
        Some(scope(&["size"], &[("both", &["price", "size"])])),
    );
    assert_eq!(
        ids(&named),
        (vec!["price", "size"], vec!["by-size", "both"], vec![])
    );
}

#[test]
fn a_failed_source_takes_nothing_else_along() {
    let mut collection = scope(
        &["material"],
        &[("by-material", &["material"]), ("by-price", &["price"])],
    );
    collection.filters = Fetched::Failed("timeout".to_owned());
    let effective = EffectiveCapabilities::merge(scope(&["price"], &[]), Some(collection));
    assert_eq!(
        ids(&effective),
        (
            vec!["price"],
            vec!["by-price"],
            vec![
                "filters-source:collection".to_owned(),
                "sort-reference:by-material".to_owned()
            ]
        )
    );
    let mut service = scope(&[], &[]);
    service.filters = Fetched::Definitions(definitions(&["a", "b", "a"]));
    let effective = EffectiveCapabilities::merge(service, Some(scope(&["b"], &[])));
    assert_eq!(
        ids(&effective),
        (vec!["b"], vec![], vec!["filters-source:service".to_owned()])
    );
    let linked = read(json!({"sorts": {"linked": {"href": "/sorts"}}}));
    let effective = EffectiveCapabilities::merge(ScopeCapabilities::from(&linked), None);
    assert_eq!(
        ids(&effective),
        (vec![], vec![], vec!["sorts-source:service".to_owned()])
    );
}

#[test]
fn the_source_that_overflows_is_left_out() {
    let service = |range| ScopeCapabilities {
        filters: Fetched::Definitions(numbered(range)),
        sorts: Fetched::Absent,
    };
    let merged = EffectiveCapabilities::merge(service(0..1024), None);
    assert_eq!((merged.filters().len(), merged.issues().len()), (1024, 0));
    let merged = EffectiveCapabilities::merge(service(0..1000), Some(service(1000..1024)));
    assert_eq!((merged.filters().len(), merged.issues().len()), (1024, 0));
    let merged = EffectiveCapabilities::merge(service(0..1000), Some(service(1000..1025)));
    assert_eq!(merged.filters().len(), 1000);
    assert_eq!(
        merged.issues()[0].to_string(),
        "filters-overflow:collection"
    );
    let merged = EffectiveCapabilities::merge(service(0..1025), Some(service(0..5)));
    assert_eq!(merged.filters().len(), 5);
    assert_eq!(merged.issues()[0].to_string(), "filters-overflow:service");
    // A shared identifier takes one place, and is quarantined.
    let merged = EffectiveCapabilities::merge(service(0..1024), Some(service(7..8)));
    assert_eq!(merged.filters().len(), 1023);
    assert_eq!(merged.issues()[0].to_string(), "filters-conflict:f7");

    let sorts = |range: std::ops::Range<usize>| ScopeCapabilities {
        filters: Fetched::Absent,
        sorts: Fetched::Definitions(
            range
                .map(|i| SortDefinition::validate(sort(&format!("s{i}"), &["f"])).unwrap())
                .collect(),
        ),
    };
    let mut service = sorts(0..128);
    service.filters = Fetched::Definitions(definitions(&["f"]));
    let merged = EffectiveCapabilities::merge(service, Some(sorts(128..129)));
    assert_eq!(merged.sorts().len(), 128);
    assert_eq!(merged.issues()[0].to_string(), "sorts-overflow:collection");
}

#[test]
fn a_linked_source_comes_whole_or_not_at_all() {
    let mut source = LinkedSource::new(&[]);
    source.push(definitions(&["material"]), true).unwrap();
    source
        .push(definitions(&["processing_days"]), false)
        .unwrap();
    assert_eq!(
        source.finish().unwrap(),
        definitions(&["material", "processing_days"])
    );

    let mut source = LinkedSource::new(&[]);
    source.push(definitions(&["material"]), true).unwrap();
    let repeated = source.push(definitions(&["material"]), false);
    assert_eq!(
        repeated,
        Err(LinkedFault::Repeated(
            CapabilityId::parse("material").unwrap()
        ))
    );
    assert_eq!(source.finish(), Err(LinkedFault::Sequence));

    let mut source = LinkedSource::new(&[]);
    source.push(definitions(&["a"]), false).unwrap();
    assert_eq!(
        source.push(definitions(&["b"]), false),
        Err(LinkedFault::Sequence)
    );
}

#[test]
fn a_linked_source_is_bounded() {
    let mut source = LinkedSource::<FilterDefinition>::new(&[]);
    for i in 0..15 {
        source.push(numbered(i..i + 1), true).unwrap();
    }
    assert_eq!(source.push(numbered(15..16), true), Err(LinkedFault::Pages));

    let mut source = LinkedSource::<FilterDefinition>::new(&[]);
    for i in 0..16 {
        source.push(numbered(i..i + 1), i < 15).unwrap();
    }
    assert_eq!(source.finish().unwrap().len(), 16);

    assert_eq!(
        LinkedSource::new(&[]).push(numbered(0..101), false),
        Err(LinkedFault::PageItems)
    );

    let mut source = LinkedSource::new(&numbered(0..1000));
    assert_eq!(source.push(numbered(990..1024), true), Ok(()));
    assert_eq!(
        source.push(numbered(1024..1025), false),
        Err(LinkedFault::Overflow)
    );
}

proptest! {
    #[test]
    fn merging_is_set_algebra(a in prop::collection::hash_set("[a-f]", 0..6), b in prop::collection::hash_set("[a-f]", 0..6)) {
        let list = |set: &HashSet<String>| definitions(&set.iter().map(String::as_str).collect::<Vec<_>>());
        let scope = |set| ScopeCapabilities { filters: Fetched::Definitions(list(set)), sorts: Fetched::Absent };
        let effective = EffectiveCapabilities::merge(scope(&a), Some(scope(&b)));
        let found: HashSet<String> = effective.filters().iter().map(|d| d.id().to_string()).collect();
        let expected: HashSet<String> = a.symmetric_difference(&b).cloned().collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(effective.issues().len(), a.intersection(&b).count());
    }
}
