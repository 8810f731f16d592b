//! The demo, read over the network with every command.

use e2e::client::Client;
use e2e::server::Server;
use serde_json::{Value, json};

use super::support::{demo, fails, json as json_of, lines, ok, run, stderr, stdout};

#[test]
fn the_demo_is_read() {
    let server = demo();
    let origin = server.url.as_str();
    // Each with what an independent client sees.
    let client = Client::new(origin);
    service(origin, &client);
    offerings(origin, &client);
    collections(origin, &client);
    resources(origin, &client);
}

fn service(origin: &str, client: &Client) {
    let document = client.get("/.well-known/odp").expect_status(200).json();
    let found = json_of(&["inspect", origin, "--json"]);
    assert_eq!(found["service"], origin);
    assert_eq!(found["document"], document);
    assert_eq!(found["issues"], json!([]));
    let text = ok(&["inspect", origin]);
    assert!(
        text.starts_with(
            "Lantern Yard\nWorkshops by the river where people borrow tools, take courses"
        ),
        "{text}"
    );
    assert!(text.contains("\nLanguages      en, de\n"), "{text}");
    let text = ok(&["inspect", origin, "--lang", "de-AT,fr"]);
    assert!(
        text.starts_with("Laternenhof\nWerkstätten am Fluss"),
        "{text}"
    );
}

fn offerings(origin: &str, client: &Client) {
    let all = client.items(&client.operation("/offerings?limit=100"));
    assert_eq!(all.len(), 287);
    assert_eq!(lines(&ok(&["offerings", origin, "--all", "--json"])), all);
    assert_eq!(
        lines(&ok(&[
            "offerings",
            origin,
            "--all",
            "--json",
            "--page-size",
            "17"
        ])),
        all
    );
    let full = client.items(&client.operation("/offerings?limit=3&representation=full"));
    let found = lines(&ok(&[
        "offerings",
        origin,
        "--limit",
        "3",
        "--full",
        "--json",
    ]));
    assert_eq!(found, full[..3]);
    let output = run(&["offerings", origin, "--limit", "3"]);
    assert_eq!(
        stdout(&output),
        "ID                     NAME                    PRICE\n\
         course-bag-leather     A satchel in leather    230.00 EUR\n\
         course-bike-repair     Bicycle repair evening  free\n\
         course-blacksmith-day  A day at the forge      130.00 EUR\n"
    );
    assert_eq!(
        stderr(&output),
        "3 shown, and there are more: --limit N or --all shows them\n"
    );
    let members = client.items(&client.operation("/collections/hand-tools/offerings?limit=100"));
    assert!(members.len() > 5);
    assert_eq!(
        lines(&ok(&[
            "offerings",
            origin,
            "--in",
            "hand-tools",
            "--all",
            "--json"
        ])),
        members
    );
    let said = fails(4, &["offerings", origin, "--in", "no-such-collection"]);
    assert!(said.contains("(NOT_FOUND, status 404)"), "{said}");
}

fn collections(origin: &str, client: &Client) {
    let all = client.items(&client.operation("/collections"));
    assert_eq!(all.len(), 34);
    assert_eq!(lines(&ok(&["collections", origin, "--json"])), all);
    let german = ok(&["collections", origin, "--lang", "de", "--all"]);
    assert!(
        german.contains("ceramics             Keramik\n"),
        "{german}"
    );
    let tree = ok(&["collections", origin, "--tree"]);
    assert!(
        tree.contains(
            "\ncourses  Courses\n  first-steps  First steps\n    for-families  For families\n"
        ),
        "{tree}"
    );
    // Below each of its parents.
    assert_eq!(tree.matches("stationary-machines").count(), 2, "{tree}");
}

fn resources(origin: &str, client: &Client) {
    let path = client.operation("/offerings/course-bike-repair");
    let answer = client.get(&path).expect_status(200);
    assert_eq!(
        ok(&["get", origin, "course-bike-repair", "--raw"]),
        answer.text()
    );
    let found = json_of(&["get", origin, "course-bike-repair", "--json"]);
    for member in ["id", "name", "price", "collection_ids", "odp_version"] {
        assert_eq!(found["offering"][member], answer.json()[member], "{member}");
    }
    let text = ok(&["get", origin, "course-bike-repair", "--lang", "de"]);
    assert!(text.starts_with("Fahrrad-Reparaturabend\n"), "{text}");
    assert!(text.contains("\nPrice        free\n"), "{text}");
    assert!(
        text.contains("\nCollections  first-steps, metalwork\n"),
        "{text}"
    );
    let path = client.operation("/collections/for-families");
    let found = json_of(&["get", origin, "for-families", "--collection", "--json"]);
    assert_eq!(found["collection"], client.get(&path).json());
    let said = fails(4, &["get", origin, "no-such-thing"]);
    assert!(said.contains("(NOT_FOUND, status 404)"), "{said}");
}

/// Identifiers of the results, in their order.
fn found(arguments: &[&str]) -> Vec<String> {
    lines(&ok(&[arguments, &["--json"]].concat()))
        .iter()
        .filter_map(|line| Some(line["offering"]["id"].as_str()?.to_owned()))
        .collect()
}

/// Everything in the catalog, from its file.
fn catalog() -> Vec<Value> {
    let path = e2e::shared::project().join("catalogs/demo/offerings.ndjson");
    lines(&std::fs::read_to_string(path).unwrap())
}

/// Identifiers of what in the catalog fulfils this, in the order of identifiers.
fn expected(condition: impl Fn(&Value) -> bool) -> Vec<String> {
    let mut ids: Vec<String> = catalog()
        .iter()
        .filter(|offering| condition(offering))
        .map(|offering| offering["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    assert!(
        !ids.is_empty(),
        "a condition that nothing fulfils shows nothing"
    );
    ids
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

fn is_member(offering: &Value, collection: &str) -> bool {
    offering["collection_ids"]
        .as_array()
        .is_some_and(|ids| ids.iter().any(|id| id == collection))
}

#[test]
fn the_demo_is_searched() {
    let server = demo();
    let origin = server.url.as_str();
    filters(origin);
    scopes_and_orders(origin);
    refinements(origin);
    refusals(&server);
}

fn filters(origin: &str) {
    let all = ["search", origin, "--all"];
    let search = |arguments: &[&str]| found(&[&all[..], arguments].concat());
    let attribute = |offering: &Value, name: &str| offering["attributes"][name].clone();
    assert_eq!(
        sorted(search(&["--filter", "level:eq:beginner"])),
        expected(|offering| attribute(offering, "level") == "beginner")
    );
    assert_eq!(
        sorted(search(&[
            "--filter",
            "kind:in:wood,metal",
            "--filter",
            "reclaimed:eq:true"
        ])),
        expected(|offering| {
            let kind = attribute(offering, "kind");
            (kind == "wood" || kind == "metal") && attribute(offering, "reclaimed") == true
        })
    );
    assert_eq!(
        sorted(search(&[
            "--filter",
            "duration:gte:3",
            "--filter",
            "duration:lte:6"
        ])),
        expected(|offering| attribute(offering, "duration_hours")
            .as_i64()
            .is_some_and(|hours| (3..=6).contains(&hours)))
    );
    assert_eq!(
        sorted(search(&["--filter", "price:exists:false"])),
        expected(|offering| ["amount", "minimum"]
            .iter()
            .all(|member| offering["price"].get(member).is_none()))
    );
    // Text alone, and with a filter: what is found by both is found by each.
    let text = sorted(search(&["dovetails"]));
    assert!(text.contains(&"course-dovetails".to_owned()), "{text:?}");
    assert_eq!(
        search(&["dovetails", "--filter", "level:eq:intermediate"]),
        ["course-dovetails"]
    );
}

fn scopes_and_orders(origin: &str) {
    let all = ["search", origin, "--all"];
    let search = |arguments: &[&str]| found(&[&all[..], arguments].concat());
    let soonest = search(&[
        "--in",
        "courses",
        "--descendants",
        "--filter",
        "starts-on:gte:2027-03-01",
        "--sort",
        "soonest",
    ]);
    let day = |offering: &Value| {
        offering["attributes"]["starts_on"]
            .as_str()
            .map(str::to_owned)
    };
    let mut by_day: Vec<(String, String)> = catalog()
        .iter()
        .filter(|offering| {
            [
                "courses",
                "first-steps",
                "next-steps",
                "masterclasses",
                "for-families",
            ]
            .iter()
            .any(|collection| is_member(offering, collection))
        })
        .filter_map(|offering| Some((day(offering)?, offering["id"].as_str()?.to_owned())))
        .filter(|(day, _)| day.as_str() >= "2027-03-01")
        .collect();
    by_day.sort();
    assert!(by_day.len() > 3);
    let ids: Vec<String> = by_day.into_iter().map(|(_, id)| id).collect();
    assert_eq!(soonest, ids);
    // Without its Collection the filter is none.
    let said = fails(
        2,
        &["search", origin, "--filter", "starts-on:gte:2027-03-01"],
    );
    assert!(
        said.contains("--filter starts-on:gte:2027-03-01: Is not a filter"),
        "{said}"
    );
    // Nor does it come from a parent.
    let said = fails(
        2,
        &[
            "search",
            origin,
            "--in",
            "hand-tools",
            "--filter",
            "power:eq:hand",
        ],
    );
    assert!(
        said.contains("--filter power:eq:hand: Is not a filter"),
        "{said}"
    );
}

fn refinements(origin: &str) {
    let output = lines(&ok(&[
        "search",
        origin,
        "--filter",
        "price-type:exists:true",
        "--refine",
        "kind",
        "--json",
    ]));
    let refinement = output
        .iter()
        .find(|line| line.get("refinement").is_some())
        .unwrap();
    let mut counts: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    for offering in catalog() {
        let kind = offering["attributes"]["kind"].as_str();
        if let Some(kind) = kind.filter(|_| offering["price"]["type"].is_string()) {
            *counts.entry(kind.to_owned()).or_default() += 1;
        }
    }
    let found = refinement["refinement"]["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bucket| {
            (
                bucket["value"].as_str().unwrap().to_owned(),
                bucket["count"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(counts, found);
}

fn refusals(server: &Server) {
    let origin = server.url.as_str();
    let said = fails(2, &["search", origin, "--filter", "stok:gte:1"]);
    assert!(said.contains("did you mean stock?"), "{said}");
    let said = fails(2, &["search", origin, "--filter", "stock:gte:some"]);
    assert!(said.contains("--filter stock:gte:some: "), "{said}");
    let said = fails(
        4,
        &["search", origin, "table", "--in", "no-such-collection"],
    );
    assert!(said.contains("(NOT_FOUND, status 404)"), "{said}");
    let output = run(&["search", origin, "--filter", "stock:gte:1000000"]);
    assert_eq!(
        (output.status.code(), stderr(&output).as_str()),
        (Some(0), "nothing found\n")
    );
    let capabilities = json_of(&["capabilities", origin, "--in", "courses", "--json"]);
    let ids: Vec<&str> = capabilities["filters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        [
            "price-type",
            "price",
            "level",
            "duration",
            "kind",
            "reclaimed",
            "stock",
            "training",
            "starts-on",
            "seats"
        ]
    );
}
