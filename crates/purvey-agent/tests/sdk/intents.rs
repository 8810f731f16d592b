//! Conditions in a caller's words, resolved through the definitions of each Service.

use crate::support::{Fake, code, document, page};
use futures_util::StreamExt;
use purvey_agent::{Found, Intent};
use purvey_odp::filter::Operator;
use purvey_odp::problem::InvalidParam;
use serde_json::{Value, json};

/// A filter: id, title, type, operators.
fn filter(id: &str, title: &str, scalar_type: &str, operators: &[&str]) -> Value {
    json!({"id": id, "title": title, "description": "What it says.", "type": scalar_type, "operators": operators})
}

fn serving(fake: &Fake, host: &str, filters: &[Value]) {
    let mut document = document();
    document["search_capabilities"] = json!({"filters": {"inline": filters}});
    fake.on(&format!("GET https://{host}/.well-known/odp"), &document);
    let search = format!("POST https://{host}/odp/offerings/search");
    fake.on(&search, &page(&["x"], None));
}

/// The filters that were sent to a host; nothing when none was.
fn sent(fake: &Fake, host: &str) -> Option<Value> {
    let fetches = fake.fetches();
    let mut of_host = fetches
        .iter()
        .filter(|fetch| fetch.url.host_str() == Some(host));
    let body = of_host.next()?.body.clone()?;
    assert!(of_host.next().is_none(), "one request for each Service");
    Some(serde_json::from_slice::<Value>(&body).unwrap()["filters"].clone())
}

#[tokio::test]
async fn each_service_is_asked_in_its_own_words() {
    let fake = Fake::new();
    serving(
        &fake,
        "a.example",
        &[
            filter("price", "Price", "decimal", &["lte"]),
            filter("kind", "Kind", "string", &["eq"]),
        ],
    );
    serving(
        &fake,
        "b.example",
        &[
            filter("cost", "What it costs", "integer", &["lte"]),
            filter("sort-of", " KIND", "string", &["in"]),
        ],
    );
    serving(
        &fake,
        "c.example",
        &[
            filter("p1", "Price", "number", &["lte", "gte"]),
            filter("kind", "Other", "boolean", &["eq"]),
        ],
    );
    serving(
        &fake,
        "d.example",
        &[
            filter("p1", "Price", "number", &["lte"]),
            filter("p2", "price", "number", &["lte"]),
        ],
    );
    serving(
        &fake,
        "e.example",
        &[
            filter("price", "Price", "decimal", &["eq"]),
            filter("kind", "Kind", "string", &["eq"]),
        ],
    );
    let origins = ["a", "b", "c", "d", "e"].map(|host| format!("https://{host}.example"));
    let mut found: Vec<String> = fake
        .agent()
        .search_across(origins, |search| {
            search
                .want(Intent::new("price", Operator::Lte, "20").or_named("cost"))
                .want(Intent::new("kind", Operator::Eq, "true"))
        })
        .map(|found| match found {
            Found::Offering { service, .. } => {
                service.origin().as_url().host_str().unwrap().to_owned()
            }
            Found::Failed { origin, error } => {
                let params = error.invalid_params().iter().map(InvalidParam::name);
                format!(
                    "{origin} {} {}",
                    code(&error),
                    params.collect::<Vec<_>>().join(" ")
                )
            }
            _ => "?".to_owned(),
        })
        .collect()
        .await;
    found.sort();
    assert_eq!(
        found,
        [
            "a.example",
            "b.example",
            "c.example",
            // Two filters have that title: it is not known which is meant. And there is no kind.
            "https://d.example INVALID_REQUEST /filters/0/id /filters/1/id",
            "https://e.example INVALID_REQUEST /filters/0/operator",
        ]
    );
    let kind = |id: &str, operator: &str, value: Value| json!({"id": id, "operator": operator, "value": value});
    let expected = |price: Value, kind: Value| Some(json!([price, kind]));
    assert_eq!(
        sent(&fake, "a.example"),
        expected(
            kind("price", "lte", json!("20")),
            kind("kind", "eq", json!("true"))
        )
    );
    assert_eq!(
        sent(&fake, "b.example"),
        expected(
            kind("cost", "lte", json!(20)),
            kind("sort-of", "in", json!(["true"]))
        )
    );
    assert_eq!(
        sent(&fake, "c.example"),
        expected(
            kind("p1", "lte", json!(20)),
            kind("kind", "eq", json!(true))
        )
    );
    assert_eq!(
        (sent(&fake, "d.example"), sent(&fake, "e.example")),
        (None, None)
    );
}

#[tokio::test]
async fn values_take_the_type_of_their_definition() {
    for (scalar_type, operator, texts, sent_as, value) in [
        ("integer", Operator::Eq, &["5"][..], "eq", json!(5)),
        ("string", Operator::Eq, &["5"], "eq", json!("5")),
        ("decimal", Operator::Eq, &["5.10"], "eq", json!("5.10")),
        ("number", Operator::Eq, &["-2.5"], "eq", json!(-2.5)),
        ("boolean", Operator::Eq, &["true"], "eq", json!(true)),
        (
            "date",
            Operator::Eq,
            &["2027-01-31"],
            "eq",
            json!("2027-01-31"),
        ),
        (
            "date-time",
            Operator::Eq,
            &["2027-01-01T10:00:00Z"],
            "eq",
            json!("2027-01-01T10:00:00Z"),
        ),
        ("integer", Operator::In, &["1", "2"], "in", json!([1, 2])),
        // One of several is what `in` says.
        ("integer", Operator::Eq, &["1", "2"], "in", json!([1, 2])),
        ("string", Operator::Exists, &["true"], "exists", json!(true)),
    ] {
        let fake = Fake::new();
        serving(
            &fake,
            "market.example",
            &[filter("x", "X", scalar_type, &["eq", "in", "exists"])],
        );
        let search = fake.service().await.search();
        search
            .want(Intent::any_of("x", operator, texts.iter().copied()))
            .collect()
            .await
            .unwrap();
        let expected = json!([{"id": "x", "operator": sent_as, "value": value}]);
        assert_eq!(sent(&fake, "market.example"), Some(expected));
    }
}

#[tokio::test]
async fn what_no_definition_fits_is_refused_at_its_place() {
    let fake = Fake::new();
    serving(
        &fake,
        "market.example",
        &[filter("x", "X", "integer", &["eq", "exists"])],
    );
    let service = fake.service().await;
    for (intent, pointer) in [
        (Intent::new("y", Operator::Eq, "5"), "/filters/0/id"),
        (Intent::new("x", Operator::Eq, "007"), "/filters/0/value"),
        (Intent::new("x", Operator::Eq, "many"), "/filters/0/value"),
        (
            Intent::new("x", Operator::Exists, "maybe"),
            "/filters/0/value",
        ),
        (Intent::new("x", Operator::Lt, "5"), "/filters/0/operator"),
        (
            Intent::any_of("x", Operator::In, ["1", "2"]),
            "/filters/0/operator",
        ),
        (
            Intent::any_of("x", Operator::Lt, ["1", "2"]),
            "/filters/0/value",
        ),
        (
            Intent::any_of("x", Operator::Eq, [""; 0]),
            "/filters/0/value",
        ),
    ] {
        let search = service.search().want(intent.clone());
        let error = search.check().await.unwrap_err();
        assert_eq!(code(&error), "INVALID_REQUEST", "{intent:?}");
        assert_eq!(error.invalid_params()[0].name(), pointer, "{intent:?}");
    }
    assert_eq!(fake.log().len(), 0, "nothing was sent");
}
