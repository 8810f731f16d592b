//! The protocol's published examples, served as they stand: what they ask for is what is sent, and what they hold is shown.

use super::fake::{Fake, Reply, nothing, page};
use super::support::{fails, json as document_of, lines, ok};
use e2e::shared::shared;
use serde_json::{Value, json};
use std::path::Path;

fn read(directory: &Path, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(directory.join(name)).unwrap()).unwrap()
}

/// An Offering as its own Service at another origin would have it: what is at that origin is at this one.
fn at_home(offering: &Value, origin: &str) -> Value {
    let text = offering.to_string().replace(&format!("{origin}/"), "/");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_smallest_service() {
    let Some(examples) = shared("odp/examples/minimum-service") else {
        return;
    };
    let document = read(&examples, "minimum-service.json");
    let list = read(&examples, "offerings-page.json");
    let offering = read(&examples, "consultation-offering.json");
    let fake = Fake::start({
        let (document, list, offering) = (document.clone(), list.clone(), offering.clone());
        move |request| match request.target.split('?').next().unwrap() {
            "/.well-known/odp" => Reply::odp(&document),
            "/odp/offerings" => Reply::odp(&list),
            "/odp/offerings/consultation" => Reply::odp(&offering),
            _ => nothing(),
        }
    });
    let seen = document_of(&["inspect", &fake.url, "--json"]);
    assert_eq!(
        (&seen["document"], &seen["issues"]),
        (&document, &json!([]))
    );
    let raw: Value = serde_json::from_str(&ok(&["inspect", &fake.url, "--raw"])).unwrap();
    assert_eq!(raw, document);
    let listed = lines(&ok(&["offerings", &fake.url, "--all", "--json"]));
    assert_eq!(json!(listed), list["items"]);
    let got = document_of(&["get", &fake.url, "consultation", "--json"]);
    assert_eq!((&got["offering"], &got["issues"]), (&offering, &json!([])));
    let said = fails(4, &["get", &fake.url, "lesson"]);
    assert!(said.contains("(NOT_FOUND, status 404)"), "{said}");
    for arguments in [&["search", &fake.url, "x"][..], &["collections", &fake.url]] {
        let said = fails(4, arguments);
        assert!(said.contains("(NOT_ADVERTISED)"), "{said}");
    }
    let empty = document_of(&["capabilities", &fake.url, "--json"]);
    assert_eq!(
        (&empty["filters"], &empty["sorts"]),
        (&json!([]), &json!([]))
    );
}

#[test]
fn the_marketplace() {
    let Some(examples) = shared("odp/examples/marketplace") else {
        return;
    };
    let file = |name: &str| read(&examples, name);
    let asked = file("home-office-offering-search-request.json");
    let found = file("home-office-search-response.json");
    let desk = at_home(
        &file("walnut-standing-desk-offering.json"),
        "https://market.example",
    );
    let collections = file("home-office-collection-search-response.json");
    let fake = Fake::start({
        let (document, collection) = (
            file("marketplace-service.json"),
            file("home-office-collection.json"),
        );
        let (first, second) = (
            file("home-office-filters-page-1.json"),
            file("home-office-filters-page-2.json"),
        );
        let schema = file("home-office-furniture-attributes.schema.json").to_string();
        let (found, desk, collections) = (found.clone(), desk.clone(), collections.clone());
        move |request| match request.target.as_str() {
            "/.well-known/odp" => Reply::odp(&document),
            "/odp/collections/home-office" => Reply::odp(&collection),
            "/odp/collections/home-office/filters?limit=2" => Reply::odp(&first),
            "/odp/collections/home-office/filters?limit=2&cursor=cGFnZTI" => Reply::odp(&second),
            "/odp/offerings/search" => Reply::odp(&found),
            "/odp/collections/search" => Reply::odp(&collections),
            "/odp/collections/home-office/offerings?cursor=b2ZmZXJpbmdzMg" => {
                page(&json!([]), &json!({}))
            }
            "/odp/offerings/walnut-standing-desk-4821" => Reply::odp(&desk),
            "/schemas/home-office-furniture-7.json" => {
                Reply::new(200, "application/schema+json", schema.clone())
            }
            _ => nothing(),
        }
    });
    let search = [
        "search",
        &*fake.url,
        "standing desk",
        "--in",
        "home-office",
        "--descendants",
        "--filter",
        "material:in:walnut,oak",
        "--filter",
        "processing_days:lte:14",
        "--sort",
        "processing-fastest",
        "--refine",
        "material",
        "--refine",
        "made_to_order",
        "--json",
    ];
    let shown = lines(&ok(&search));
    let sent = fake.requests_for("/odp/offerings/search");
    assert_eq!((sent.len(), sent[0].json()), (1, asked));
    let offerings: Vec<&Value> = shown
        .iter()
        .map(|line| &line["offering"])
        .filter(|o| o.is_object())
        .collect();
    assert_eq!(json!(offerings), found["items"]);
    let counted: Vec<&Value> = shown
        .iter()
        .map(|line| &line["refinement"]["values"])
        .filter(|v| v.is_array())
        .collect();
    assert_eq!(
        counted,
        [
            &found["refinements"][0]["values"],
            &found["refinements"][1]["values"]
        ]
    );

    let request = file("home-office-collection-search-request.json");
    let query = request["query"].as_str();
    let mut arguments = vec!["collections", &*fake.url];
    arguments.extend(query);
    if let Some(parent) = request["parent_id"].as_str() {
        arguments.extend(["--in", parent]);
    } else if request.get("parent_id").is_some() {
        arguments.push("--roots");
    }
    arguments.push("--json");
    assert_eq!(json!(lines(&ok(&arguments))), collections["items"]);
    let mut sent = fake.requests_for("/odp/collections/search")[0].json();
    sent["limit"] = request["limit"].clone();
    assert_eq!(sent, request);

    // Its own document says where Actions are; it is not among the examples, which costs the Action.
    let got = document_of(&["get", &fake.url, "walnut-standing-desk-4821", "--json"]);
    assert_eq!(got["offering"]["attributes"], desk["attributes"]);
    let issues = got["issues"].as_array().unwrap();
    assert_eq!(
        (issues.len(), &issues[0]["pointer"]),
        (1, &json!("/actions/0"))
    );
}

#[test]
fn the_protected_one() {
    let Some(examples) = shared("odp/examples/protected-discovery") else {
        return;
    };
    let document = read(&examples, "protected-service.json");
    let fake = Fake::start(
        move |request| match request.target.split('?').next().unwrap() {
            "/.well-known/odp" => Reply::odp(&document),
            "/odp/offerings" => {
                Reply::problem(401, "NOT_AUTHENTICATED", &json!({})).with("www-authenticate", "AEP")
            }
            _ => Reply::problem(402, "PAYMENT_REQUIRED", &json!({}))
                .with("www-authenticate", "Payment id=\"1\"")
                .with("payment-required", "e30="),
        },
    );
    let shown = ok(&["inspect", &fake.url]);
    for part in [
        "enrollment: aep; payment: mpp (inflow, tempo), authenticated; payment: x402 (base), authenticated",
        "search-offerings  required",
    ] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
    let said = fails(5, &["offerings", &fake.url]);
    assert!(said.contains("challenge: www-authenticate: AEP"), "{said}");
    let said = fails(5, &["get", &fake.url, "x"]);
    assert!(said.contains("(PAYMENT_REQUIRED, status 402)"), "{said}");
    assert!(said.contains("challenge: payment-required: e30="), "{said}");
    assert!(said.contains("nothing was enrolled or paid"), "{said}");
}
