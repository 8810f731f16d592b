//! `purvey search` and `purvey capabilities`: what is sent, and how what comes is shown.

use super::fake::{Fake, Reply, page, service};
use super::support::{fails, json as json_of, lines, ok, run, stderr, stdout};
use serde_json::{Value, json};

const OPERATIONS: [&str; 4] = [
    "list-offerings",
    "get-offering",
    "get-collection",
    "search-offerings",
];

fn definition(id: &str, scalar_type: &str, operators: &[&str]) -> Value {
    json!({"id": id, "title": id.to_uppercase(), "description": "What it says.", "type": scalar_type, "operators": operators})
}

/// A Service with a filter of each type.
fn shop(answer: impl Fn() -> Reply + Send + Sync + 'static) -> Fake {
    Fake::start(move |request| match request.target.as_str() {
        "/.well-known/odp" => {
            let mut kind = definition("kind", "string", &["eq", "in", "exists"]);
            kind["refinable"] = json!(true);
            let mut weight = definition("weight", "number", &["lt", "gt"]);
            weight["unit"] = json!({"system": "ucum", "code": "kg"});
            let filters = json!([
                kind,
                definition("new", "boolean", &["eq"]),
                definition("downloads", "integer", &["eq", "in", "gte", "lte"]),
                weight,
                definition("price", "decimal", &["eq", "lt", "lte", "gt", "gte"]),
                definition("released", "date", &["eq", "in", "gte"]),
                definition("updated", "date-time", &["gte", "lt"]),
            ]);
            let sorts = json!([{
                "id": "most-downloads", "title": "Most downloads", "description": "The most first.",
                "keys": [
                    {"filter_id": "downloads", "direction": "descending", "missing": "last"},
                    {"filter_id": "price", "direction": "ascending", "missing": "first"},
                ],
            }]);
            let capabilities = json!({"filters": {"inline": filters}, "sorts": {"inline": sorts}});
            service(&OPERATIONS, &json!({"search_capabilities": capabilities}))
        }
        "/odp/collections/tools" => Reply::odp(&json!({
            "odp_version": "1.0", "id": "tools", "name": "Tools", "search_capabilities": {"filters": {"inline": [
                definition("power", "string", &["eq"])
            ]}},
        })),
        _ => answer(),
    })
}

fn lamps() -> Reply {
    page(
        &json!([
            {"id": "lamp", "name": "Lamp", "price": {"type": "fixed", "amount": "12.50", "currency": "EUR"}},
            {"id": "lamp-shade", "name": "Shade for a lamp"},
        ]),
        &json!({}),
    )
}

/// The one search that was sent.
fn sent(fake: &Fake) -> Value {
    let mut sent = fake.requests_for("/odp/offerings/search");
    assert_eq!(sent.len(), 1);
    let request = sent.remove(0);
    assert_eq!(request.method, "POST");
    assert_eq!(request.header("content-type"), Some("application/odp+json"));
    request.json()
}

#[test]
fn text_alone_is_sent_as_it_is() {
    let fake = shop(lamps);
    assert_eq!(
        ok(&["search", &fake.url, "a  lamp: \"bright\""]),
        "ID          NAME              PRICE\n\
         lamp        Lamp              12.50 EUR\n\
         lamp-shade  Shade for a lamp\n"
    );
    assert_eq!(
        sent(&fake),
        json!({"odp_version": "1.0", "query": "a  lamp: \"bright\"", "limit": 50})
    );
}

#[test]
fn everything_that_can_be_said_is_sent_in_the_service_s_types() {
    let fake = shop(lamps);
    ok(&[
        "search",
        &fake.url,
        "lamp",
        "--filter",
        "kind:in:desk,\"floor, tall\",\"say \"\"hi\"\"\"",
        "--filter",
        "kind:exists:true",
        "--filter",
        "new:eq:false",
        "--filter",
        "downloads:in:10,20",
        "--filter",
        "weight:lt:2.5",
        "--filter",
        "price:lt:20.00",
        "--filter",
        "released:in:2027-01-01,2027-02-01",
        "--filter",
        "updated:gte:2027-01-01T10:30:00Z",
        "--filter",
        "power:eq:mains",
        "--sort",
        "most-downloads",
        "--refine",
        "kind",
        "--in",
        "tools",
        "--descendants",
        "--limit",
        "7",
    ]);
    assert_eq!(
        sent(&fake),
        json!({
            "odp_version": "1.0",
            "query": "lamp",
            "filters": [
                {"id": "kind", "operator": "in", "value": ["desk", "floor, tall", "say \"hi\""]},
                {"id": "kind", "operator": "exists", "value": true},
                {"id": "new", "operator": "eq", "value": false},
                {"id": "downloads", "operator": "in", "value": [10, 20]},
                {"id": "weight", "operator": "lt", "value": 2.5},
                {"id": "price", "operator": "lt", "value": "20.00"},
                {"id": "released", "operator": "in", "value": ["2027-01-01", "2027-02-01"]},
                {"id": "updated", "operator": "gte", "value": "2027-01-01T10:30:00Z"},
                {"id": "power", "operator": "eq", "value": "mains"},
            ],
            "collection_id": "tools",
            "include_descendants": true,
            "sort": "most-downloads",
            "refinements": ["kind"],
            "limit": 7,
        })
    );
}

#[test]
fn what_the_service_would_refuse_is_refused_in_the_words_of_the_command_line() {
    let fake = shop(lamps);
    let said = fails(
        2,
        &[
            "search",
            &fake.url,
            "--filter",
            "downloads:gte:many",
            "--filter",
            "kind:lt:5",
            "--filter",
            "prise:lt:5",
            "--filter",
            "released:in:2027-01-01,soon",
            "--sort",
            "most-download",
            "--refine",
            "price",
        ],
    );
    for part in [
        "error: The Service would refuse this request; it was not sent. (INVALID_REQUEST)\n",
        "  --filter downloads:gte:many: Must be an integer",
        "(/filters/0/value)\n",
        "  --filter kind:lt:5: Must be one that the filter advertises: eq, in, exists. (/filters/1/operator)\n",
        "  --filter prise:lt:5: Is not a filter that this search offers. (/filters/2/id)\n",
        "(/filters/3/value/1)\n",
        "  --sort most-download: Is not a sort that this search offers. (/sort)\n",
        "  --refine price: Is not a refinable filter. (/refinements/0)\n",
        "  hint: did you mean price? `purvey capabilities ORIGIN` lists what there is\n",
    ] {
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }
    assert!(fake.requests_for("/odp/offerings/search").is_empty());
    let said = fails(2, &["search", &fake.url, "lamp", "--sort", "most-download"]);
    assert!(said.contains("did you mean most-downloads?"), "{said}");
    let said = fails(2, &["search", &fake.url, "lamp", "--refine", "kinds"]);
    assert!(said.contains("did you mean kind?"), "{said}");
    // Only with the Collection that has it.
    let said = fails(2, &["search", &fake.url, "--filter", "power:eq:mains"]);
    assert!(said.contains("(/filters/0/id)"), "{said}");
}

#[test]
fn what_the_service_refuses_is_told_in_the_words_of_the_command_line() {
    let fake = shop(|| {
        Reply::problem(
            400,
            "INVALID_REQUEST",
            &json!({"detail": "No.", "invalid_params": [
                {"in": "body", "name": "/filters/1/value", "reason": "Too many."},
                {"in": "body", "name": "/query", "reason": "Too short."},
                {"in": "trailer", "name": "x", "reason": "A place that is not known."},
            ]}),
        )
        .with("x-request-id", "req-17")
    });
    let origin = &fake.url;
    assert_eq!(
        fails(
            2,
            &[
                "search",
                origin,
                "x",
                "--filter",
                "downloads:gte:1",
                "--filter",
                "downloads:lte:9"
            ]
        ),
        format!(
            "error: No. (INVALID_REQUEST, status 400)\n\
             \x20 --filter downloads:lte:9: Too many. (/filters/1/value)\n\
             \x20 QUERY x: Too short. (/query)\n\
             \x20 address: {origin}/odp/offerings/search\n\
             \x20 request id: req-17\n"
        )
    );
}

#[test]
fn results_and_refinements_come_as_lines_of_json() {
    let fake = shop(|| {
        page(
            &json!([{"id": "lamp", "name": "Lamp"}]),
            &json!({"refinements": [{"filter_id": "kind", "values": [
                {"value": "desk", "count": 4},
                {"value": "floor", "count": 2, "count_relation": "lower_bound"},
            ]}]}),
        )
    });
    let origin = fake.url.as_str();
    let arguments = ["search", origin, "lamp", "--refine", "kind"];
    assert_eq!(
        ok(&arguments),
        "ID    NAME  PRICE\n\
         lamp  Lamp\n\
         \n\
         REFINE  VALUE  COUNT\n\
         kind    desk   4\n\
         kind    floor  2 or more\n"
    );
    assert_eq!(
        lines(&ok(&[&arguments[..], &["--json"]].concat())),
        [
            json!({"service": origin, "offering": {"id": "lamp", "name": "Lamp"}}),
            json!({"service": origin, "refinement": {"filter_id": "kind", "title": "KIND", "values": [
                {"value": "desk", "count": 4},
                {"value": "floor", "count": 2, "count_relation": "lower_bound"},
            ]}}),
        ]
    );
}

#[test]
fn several_services_are_searched_and_one_that_fails_costs_only_its_own() {
    let good = shop(lamps);
    let other = shop(|| page(&json!([{"id": "torch", "name": "Torch"}]), &json!({})));
    let broken =
        shop(|| Reply::problem(503, "SERVICE_UNAVAILABLE", &json!({})).with("retry-after", "120"));
    let (first, second, third) = (good.url.as_str(), other.url.as_str(), broken.url.as_str());
    let all = [
        "search", first, "lamp", "--also", second, "--also", third, "--also", first,
    ];
    let output = run(&[&all[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(3));
    let mut found: Vec<(String, String)> = lines(&stdout(&output))
        .iter()
        .map(|line| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(&line["service"]), text(&line["offering"]["id"]))
        })
        .collect();
    found.sort();
    let mut expected = vec![
        (first.to_owned(), "lamp".to_owned()),
        (first.to_owned(), "lamp-shade".to_owned()),
        (second.to_owned(), "torch".to_owned()),
    ];
    expected.sort();
    assert_eq!(found, expected);
    let said = stderr(&output);
    assert!(
        said.contains(&format!(
            "error: {third}: A problem (SERVICE_UNAVAILABLE, status 503)"
        )),
        "{said}"
    );
    assert!(said.contains("retry after: 120 s"), "{said}");
    assert_eq!(good.requests_for("/odp/offerings/search").len(), 1);

    let output = run(&["search", first, "lamp", "--also", second]);
    assert_eq!(output.status.code(), Some(0));
    let table = stdout(&output);
    assert!(table.starts_with("SERVICE  "), "{table}");
    assert!(table.contains(&format!("{second}  torch")), "{table}");

    // All of them fail: the code is what they have in common.
    let denied = shop(|| Reply::problem(403, "NOT_AUTHORIZED", &json!({})));
    let again =
        shop(|| Reply::problem(503, "SERVICE_UNAVAILABLE", &json!({})).with("retry-after", "120"));
    fails(6, &["search", third, "lamp", "--also", &again.url]);
    fails(1, &["search", third, "lamp", "--also", &denied.url]);
    let none = shop(|| page(&json!([]), &json!({})));
    let output = run(&["search", &none.url, "lamp"]);
    assert_eq!(
        (output.status.code(), stdout(&output), stderr(&output)),
        (Some(0), String::new(), "nothing found\n".to_owned())
    );
}

#[test]
fn a_token_is_for_the_first_service_and_never_shown() {
    const TOKEN: &str = "a-secret-0123456789";
    let answer = || {
        Reply::problem(401, "NOT_AUTHENTICATED", &json!({}))
            .with("www-authenticate", "AEP realm=\"shop\"")
    };
    let (first, second) = (shop(answer), shop(answer));
    let output = super::support::agent(&["search", &first.url, "lamp", "--also", &second.url])
        .env("PURVEY_TOKEN", TOKEN)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5));
    let said = stderr(&output);
    assert!(
        said.contains("challenge: www-authenticate: AEP realm=\"shop\""),
        "{said}"
    );
    assert!(
        said.contains("it asks for aep; nothing was enrolled or paid"),
        "{said}"
    );
    assert!(!said.contains(TOKEN), "{said}");
    for request in first.requests() {
        assert_eq!(
            request.header("authorization"),
            Some("Bearer a-secret-0123456789")
        );
    }
    for request in second.requests() {
        assert_eq!(request.header("authorization"), None);
    }
    let output = super::support::agent(&["search", &first.url, "lamp", "--token", "caf\u{e9}\nx"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(!stderr(&output).contains("caf"), "{}", stderr(&output));
}

#[test]
fn capabilities_are_explained() {
    let fake = shop(lamps);
    let table = ok(&["capabilities", &fake.url, "--in", "tools"]);
    let rows: Vec<&str> = table.lines().collect();
    for row in [
        "FILTER     TYPE          OPERATORS             REFINE  MEANING",
        "kind       string        eq, in, exists        yes     KIND: What it says.",
        "weight     number in kg  lt, gt                        WEIGHT: What it says.",
        "power      string        eq                            POWER: What it says.",
        "SORT            BY                                           MEANING",
        "most-downloads  downloads descending, price (missing first)  Most downloads: The most first.",
    ] {
        assert!(rows.contains(&row), "no {row:?} in\n{table}");
    }
    let document = json_of(&["capabilities", &fake.url, "--json"]);
    let ids: Vec<&Value> = document["filters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|filter| &filter["id"])
        .collect();
    assert_eq!(
        ids,
        [
            "kind",
            "new",
            "downloads",
            "weight",
            "price",
            "released",
            "updated"
        ]
    );
    assert_eq!(document["sorts"][0]["id"], "most-downloads");
    assert_eq!(document["issues"], json!([]));
}

#[test]
fn a_search_needs_something_to_search_for() {
    let said = fails(2, &["search", "shop.example"]);
    assert!(said.contains("there is nothing to search for"), "{said}");
    let said = fails(2, &["search", "shop.example", "x", "--filter", "price"]);
    assert!(said.contains("ID:OPERATOR:VALUE"), "{said}");
    let said = fails(2, &["search", "shop.example", "x", "--descendants"]);
    assert!(said.contains("--in"), "{said}");
    let lists_only = Fake::start(|_| service(&super::fake::LEAST, &json!({})));
    let said = fails(4, &["search", &lists_only.url, "x"]);
    assert!(said.contains("(NOT_ADVERTISED)"), "{said}");
    assert!(said.contains("purvey inspect"), "{said}");
}
