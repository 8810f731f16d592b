//! What a caller may not see does not exist for that caller: audiences, cursors, what is withdrawn, what the manifest says.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod access_common;
mod catalog_support;

use access_common::{NONE, access, ids, list, open, put, with};
use catalog_support::{body, catalog, collection, offering, options, pointers, read};
use purvey_catalog::catalog::{Catalog, Listing, SearchRequest};
use purvey_catalog::manifest::Manifest;
use purvey_catalog::record::Record;
use purvey_catalog::{Access, Error};
use purvey_odp::identity::ResourceType::{Collection, Offering};
use purvey_odp::language::AcceptLanguage;
use purvey_odp::offering::Representation::{Full, Terse};
use purvey_odp::request::OfferingSearchRequest;
use purvey_odp::service::{Authentication, Operation};
use serde_json::{Value, json};
use std::path::Path;

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
    let again = access(&["staff", "trade"]);
    assert!(catalog.resume(&operation, &both, &again).is_ok());
}

#[test]
fn a_context_is_made_of_names_that_audiences_can_have() {
    let refused = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned());
        let violations = Access::new(names).unwrap_err().into_violations();
        let pointers = violations.into_iter().map(|v| v.pointer);
        pointers.collect::<Vec<_>>()
    };
    assert_eq!(
        refused(&["staff", "", "no good", "ö"]),
        ["/audiences/1", "/audiences/2", "/audiences/3"]
    );
    assert_eq!(refused(&["staff", "trade", "staff"]), ["/audiences/2"]);
    assert_eq!(refused(&["a".repeat(65).as_str()]), ["/audiences/0"]);
    let many: Vec<String> = (0..17).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(refused(&many), ["/audiences"]);
    assert_eq!(access(&many[..16]).audiences().len(), 16);
    assert!(access(&[]).is_public());
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

#[test]
fn what_is_hidden_meanwhile_changes_no_order_of_relevance() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    let named = |id: &str, name: &str| json!({"id": id, "name": name});
    put(&catalog, Offering, &named("a", "alpha alpha beta"));
    put(&catalog, Offering, &named("b", "alpha beta beta"));
    for n in 0..3 {
        put(&catalog, Offering, &named(&format!("p{n}"), "alpha"));
    }
    for n in 0..6 {
        put(&catalog, Offering, &named(&format!("h{n}"), "beta"));
    }
    catalog.publish().unwrap();
    let search = || {
        let body = json!({"odp_version": "1.0", "query": "alpha beta", "limit": 1});
        let page = catalog.search_offerings(&SearchRequest {
            request: OfferingSearchRequest::validate(body).unwrap(),
            representation: Terse,
            accept_language: AcceptLanguage::default(),
            access: Access::public(),
        });
        let (ids, next) = read(&page.unwrap());
        (ids, next.unwrap())
    };
    // Alpha is the rarer word.
    let (first, cursor) = search();
    assert_eq!(first, ["a"]);
    for n in 0..6 {
        let hidden = with(
            named(&format!("h{n}"), "beta"),
            "audience",
            json!(["staff"]),
        );
        put(&catalog, Offering, &hidden);
    }
    catalog.publish().unwrap();
    // Now beta is, but what was begun goes on as it was.
    assert_eq!(search().0, ["b"]);
    let page = catalog.resume_search_offerings(&cursor, &Access::public());
    assert_eq!(read(&page.unwrap()), (vec!["b".to_owned()], None));
}
