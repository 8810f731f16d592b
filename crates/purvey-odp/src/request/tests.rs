#![allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]

use super::*;
use crate::capability::{Fetched, ScopeCapabilities};

fn faults<T: std::fmt::Debug>(result: Result<T, Invalid>) -> Vec<String> {
    match result {
        Ok(_) => Vec::new(),
        Err(invalid) => invalid
            .into_violations()
            .into_iter()
            .map(|v| v.pointer)
            .collect(),
    }
}

/// A request with this further to `odp_version` and `query`.
fn offerings(members: Value) -> Result<OfferingSearchRequest, Invalid> {
    let mut body = json!({"odp_version": "1.0", "query": "standing desk"});
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    OfferingSearchRequest::validate(body)
}

fn definition(
    id: &str,
    scalar_type: &str,
    operators: &[&str],
    refinable: bool,
) -> FilterDefinition {
    let mut value = json!({"id": id, "title": id, "description": id, "type": scalar_type, "operators": operators});
    if refinable {
        value["refinable"] = json!(true);
    }
    FilterDefinition::validate(value).unwrap()
}

fn effective() -> EffectiveCapabilities {
    let sort = json!({"id": "cheapest", "title": "C", "description": "C.",
        "keys": [{"filter_id": "price", "direction": "ascending", "missing": "last"}]});
    let service = ScopeCapabilities {
        filters: Fetched::Definitions(vec![
            definition("material", "string", &["eq", "in", "exists"], true),
            definition("made_to_order", "boolean", &["eq"], true),
            definition("price", "decimal", &["eq", "in", "gte", "lte"], false),
            definition("height", "integer", &["in", "lt"], false),
            definition("since", "date-time", &["in"], false),
            definition("both", "string", &["eq"], true),
        ]),
        sorts: Fetched::Definitions(vec![SortDefinition::validate(sort).unwrap()]),
    };
    let collection = ScopeCapabilities {
        filters: Fetched::Definitions(vec![definition("both", "string", &["eq"], true)]),
        sorts: Fetched::Absent,
    };
    EffectiveCapabilities::merge(service, Some(collection))
}

#[test]
fn well_formed_offering_searches() {
    for body in [
        json!({"odp_version": "1.0", "query": "standing desk", "limit": 50}),
        json!({"odp_version": "1.0", "query": "standing desk", "collection_id": "home-office"}),
        json!({"odp_version": "1.0", "query": "standing desk", "collection_id": "home-office", "include_descendants": true}),
        json!({"odp_version": "1.0", "filters": [{"id": "material", "operator": "eq", "value": "walnut"}]}),
        json!({"odp_version": "1.0", "query": "desk", "filters": [
                {"id": "price", "operator": "gte", "value": "10"},
                {"id": "price", "operator": "lte", "value": "20.00"},
                {"id": "material", "operator": "in", "value": ["oak", "walnut"]},
                {"id": "material", "operator": "exists", "value": true}],
            "sort": "cheapest", "refinements": ["material", "made_to_order"], "limit": 1}),
    ] {
        let request = OfferingSearchRequest::validate(body.clone()).unwrap();
        assert_eq!(request.to_value(), body);
        assert_eq!(request.resolve(&effective()).map(|_| ()), Ok(()));
    }
    let request = offerings(
        json!({"future": 1, "limit": 20.0, "include_descendants": false, "collection_id": "a"}),
    )
    .unwrap();
    assert_eq!(
        (request.limit(), request.include_descendants()),
        (Some(20), false)
    );
}

#[test]
fn faults_of_syntax_are_noted_where_they_are() {
    for (members, pointers) in [
        (json!({"odp_version": "1.1"}), vec!["/odp_version"]),
        (json!({"query": ""}), vec!["/query"]),
        (
            json!({"query": " \t\u{a0}\u{2003}\u{feff}"}),
            vec!["/query"],
        ),
        (json!({"query": "é".repeat(256)}), vec![]),
        (json!({"query": "é".repeat(257)}), vec!["/query"]),
        (json!({"query": null}), vec!["/query"]),
        (json!({"filters": []}), vec!["/filters"]),
        (json!({"filters": {}}), vec!["/filters"]),
        (json!({"filters": [1]}), vec!["/filters/0"]),
        (
            json!({"filters": [{"id": "a/b", "operator": "near", "value": null}]}),
            vec!["/filters/0/id", "/filters/0/operator"],
        ),
        (
            json!({"filters": [{"id": "a", "operator": "eq", "value": null}]}),
            vec!["/filters/0/value"],
        ),
        (
            json!({"filters": [{"id": "a", "operator": "in", "value": [1, 2, 3, 4, 5, 6, 7, 1.0]}]}),
            vec!["/filters/0/value/7"],
        ),
        (json!({"collection_id": ".."}), vec!["/collection_id"]),
        (json!({"collection_id": null}), vec!["/collection_id"]),
        (
            json!({"include_descendants": true}),
            vec!["/include_descendants"],
        ),
        (
            json!({"include_descendants": false}),
            vec!["/include_descendants"],
        ),
        (
            json!({"include_descendants": "yes", "collection_id": "a"}),
            vec!["/include_descendants"],
        ),
        (json!({"sort": "a b"}), vec!["/sort"]),
        (json!({"sort": ["price"]}), vec!["/sort"]),
        (json!({"refinements": []}), vec!["/refinements"]),
        (
            json!({"refinements": ["a", "b", "a", 1]}),
            vec!["/refinements/2", "/refinements/3"],
        ),
        (json!({"limit": 0}), vec!["/limit"]),
        (json!({"limit": 101}), vec!["/limit"]),
        (json!({"limit": 1.5}), vec!["/limit"]),
        (json!({"limit": "20"}), vec!["/limit"]),
        (json!({"limit": -1}), vec!["/limit"]),
    ] {
        assert_eq!(faults(offerings(members.clone())), pointers, "{members}");
    }
    let unconstrained = json!({"odp_version": "1.0", "collection_id": "home-office"});
    assert_eq!(faults(OfferingSearchRequest::validate(unconstrained)), [""]);
    assert_eq!(
        faults(OfferingSearchRequest::validate(json!({"query": "desk"}))),
        [""]
    );
    assert_eq!(faults(OfferingSearchRequest::validate(json!([]))), [""]);
}

#[test]
fn counts_are_bounded() {
    let expression = json!({"id": "material", "operator": "eq", "value": "oak"});
    let filters = |count: usize| json!({"filters": vec![expression.clone(); count]});
    // One expression many times is accepted.
    assert_eq!(faults(offerings(filters(32))), [""; 0]);
    assert!(
        offerings(filters(32))
            .unwrap()
            .resolve(&effective())
            .is_ok()
    );
    assert_eq!(faults(offerings(filters(33))), ["/filters"]);
    let refinements = |count: usize| json!({"refinements": (0..count).map(|i| format!("r{i}")).collect::<Vec<_>>()});
    assert_eq!(faults(offerings(refinements(16))), [""; 0]);
    assert_eq!(faults(offerings(refinements(17))), ["/refinements"]);
}

#[test]
fn faults_of_capability_are_noted_where_they_are() {
    for (members, pointers) in [
        (
            json!({"filters": [{"id": "colour", "operator": "eq", "value": 1}]}),
            vec!["/filters/0/id"],
        ),
        // Published by two sources.
        (
            json!({"filters": [{"id": "both", "operator": "eq", "value": "a"}]}),
            vec!["/filters/0/id"],
        ),
        (
            json!({"filters": [{"id": "material", "operator": "lt", "value": "a"}]}),
            vec!["/filters/0/operator"],
        ),
        (
            json!({"filters": [{"id": "height", "operator": "exists", "value": true}]}),
            vec!["/filters/0/operator"],
        ),
        (
            json!({"filters": [{"id": "height", "operator": "lt", "value": 1.5}]}),
            vec!["/filters/0/value"],
        ),
        (
            json!({"filters": [{"id": "price", "operator": "eq", "value": 10}]}),
            vec!["/filters/0/value"],
        ),
        (
            json!({"filters": [
                {"id": "material", "operator": "eq", "value": "oak"},
                {"id": "price", "operator": "in", "value": ["1", "2", "1e1", "1.00", "2.0"]},
                {"id": "since", "operator": "in", "value": ["2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00"]}]}),
            vec![
                "/filters/1/value/2",
                "/filters/1/value/3",
                "/filters/1/value/4",
                "/filters/2/value/1",
            ],
        ),
        (json!({"sort": "dearest"}), vec!["/sort"]),
        (
            json!({"refinements": ["material", "colour", "price", "both"]}),
            vec!["/refinements/1", "/refinements/2", "/refinements/3"],
        ),
        (
            json!({"filters": [{"id": "no", "operator": "eq", "value": 1}], "sort": "no", "refinements": ["no"]}),
            vec!["/filters/0/id", "/sort", "/refinements/0"],
        ),
    ] {
        let request = offerings(members.clone()).unwrap();
        assert_eq!(faults(request.resolve(&effective())), pointers, "{members}");
    }
}

#[test]
fn the_report_ends_at_its_capacity() {
    let values: Vec<_> = (0..100).map(|i| format!("x{i}")).collect();
    let filters = vec![json!({"id": "height", "operator": "in", "value": values}); 2];
    let found = faults(
        offerings(json!({ "filters": filters }))
            .unwrap()
            .resolve(&effective()),
    );
    assert_eq!(found.len(), Report::CAPACITY);
    assert_eq!(found.last().unwrap(), "/filters/0/value/63");
}

#[test]
fn text_search_needs_no_capabilities() {
    let nothing = EffectiveCapabilities::default();
    let resolved = offerings(json!({"limit": 5}))
        .unwrap()
        .resolve(&nothing)
        .unwrap();
    assert!(
        resolved.filters().is_empty()
            && resolved.sort().is_none()
            && resolved.refinements().is_empty()
    );
}

#[test]
fn a_refinement_leaves_its_own_filter_out() {
    let request = offerings(json!({"filters": [
        {"id": "material", "operator": "eq", "value": "wood"},
        {"id": "made_to_order", "operator": "eq", "value": true}]}));
    let resolved = request.unwrap().resolve(&effective()).unwrap();
    let offerings =
        [("wood", true), ("metal", true), ("metal", false)].map(|(material, made_to_order)| {
            (
                [Scalar::String(material.to_owned())],
                [Scalar::Boolean(made_to_order)],
            )
        });
    let material = CapabilityId::parse("material").unwrap();
    let values = |i: usize| {
        let (materials, made_to_order) = &offerings[i];
        move |id: &CapabilityId| {
            if id.as_str() == "material" {
                &materials[..]
            } else {
                &made_to_order[..]
            }
        }
    };
    let matching: Vec<_> = (0..3).filter(|i| resolved.matches(values(*i))).collect();
    let counted: Vec<_> = (0..3)
        .filter(|i| resolved.matches_beside(&material, values(*i)))
        .collect();
    assert_eq!((matching, counted), (vec![0], vec![0, 1]));
}

#[test]
fn collection_searches() {
    for body in [
        json!({"odp_version": "1.0", "query": "home office", "limit": 50}),
        json!({"odp_version": "1.0", "parent_id": null}),
        json!({"odp_version": "1.0", "parent_id": "furniture"}),
        json!({"odp_version": "1.0", "query": "office", "parent_id": "furniture"}),
    ] {
        let request = CollectionSearchRequest::validate(body.clone()).unwrap();
        assert_eq!(request.to_value(), body);
    }
    let parent = |value| {
        let body = json!({"odp_version": "1.0", "parent_id": value});
        CollectionSearchRequest::validate(body).map(|request| request.parent().clone())
    };
    assert_eq!(parent(json!(null)), Ok(ParentConstraint::Roots));
    let furniture = LocalId::parse("furniture").unwrap();
    assert_eq!(
        parent(json!("furniture")),
        Ok(ParentConstraint::ChildrenOf(furniture))
    );
    for (body, pointers) in [
        (json!({"odp_version": "1.0", "limit": 50}), vec![""]),
        (
            json!({"odp_version": "1.0", "query": "   "}),
            vec!["/query"],
        ),
        (
            json!({"odp_version": "1.0", "parent_id": ""}),
            vec!["/parent_id"],
        ),
        (
            json!({"odp_version": "1.0", "parent_id": 1}),
            vec!["/parent_id"],
        ),
        (
            json!({"query": "", "parent_id": "a/b", "limit": 0}),
            vec!["", "/query", "/parent_id", "/limit"],
        ),
        // Members of the other search are unknown here.
        (
            json!({"odp_version": "1.0", "query": "a", "filters": 1, "sort": 2}),
            vec![],
        ),
    ] {
        assert_eq!(
            faults(CollectionSearchRequest::validate(body.clone())),
            pointers,
            "{body}"
        );
    }
}
