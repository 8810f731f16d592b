//! What every test of the crawl uses: the demo's records, and what holds of every answer.

use std::collections::{BTreeMap, BTreeSet};

use e2e::binary;
use e2e::client::{Answer, Client, page_of};
use e2e::server::Server;
use e2e::shared::project;
use serde_json::{Map, Value};

use crate::published::Published;

pub(crate) const PAGE_BYTES: usize = 524_288;
pub(crate) const PROBLEM_BYTES: usize = 16_384;

/// A server with the demo, in a directory of its own.
pub(crate) fn demo() -> (Server, Client) {
    let mut command = binary::command();
    command.args(["serve", "--demo", "--listen", "127.0.0.1:0"]);
    let server = Server::run(command).unwrap_or_else(|said| panic!("{said}"));
    let client = Client::new(&server.url);
    (server, client)
}

/// The demo's records as they were written, by id.
pub(crate) fn records() -> BTreeMap<String, Value> {
    let path = project().join("catalogs/demo/offerings.ndjson");
    let text = std::fs::read_to_string(path).unwrap();
    let records = text.lines().map(|line| {
        let record: Value = serde_json::from_str(line).unwrap();
        (record["id"].as_str().unwrap().to_owned(), record)
    });
    records.collect()
}

/// The demo's Collections as its manifest has them, by id.
pub(crate) fn collections() -> BTreeMap<String, toml::Table> {
    let path = project().join("catalogs/demo/catalog.toml");
    let manifest: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
    let collections = manifest["collections"].as_array().unwrap();
    let named = collections.iter().map(|collection| {
        let collection = collection.as_table().unwrap().clone();
        (collection["id"].as_str().unwrap().to_owned(), collection)
    });
    named.collect()
}

/// An `Accept-Language` and whether translations are to be seen under it: the demo is English and German.
pub(crate) const LANGUAGES: [(Option<&str>, bool); 4] = [
    (None, false),
    (Some("en"), false),
    (Some("fr, de-AT;q=0.8, en;q=0.5"), true),
    (Some("fr"), false),
];

pub(crate) fn ask(client: &Client, method: &str, target: &str, language: Option<&str>) -> Answer {
    let headers: Vec<(&str, &str)> = language
        .map(|language| ("accept-language", language))
        .into_iter()
        .collect();
    client.ask(method, target, &headers)
}

/// The languages that items are in: their own, or else the Service's.
pub(crate) fn languages_of<'a>(items: impl IntoIterator<Item = &'a Value>) -> BTreeSet<String> {
    let tags = items.into_iter().map(|item| {
        let tag = item
            .get("language")
            .map_or("en", |tag| tag.as_str().unwrap());
        tag.to_owned()
    });
    tags.collect()
}

pub(crate) fn content_language(answer: &Answer) -> BTreeSet<String> {
    let value = answer.header("content-language").unwrap_or_default();
    let tags = value.split(',').map(|tag| tag.trim().to_owned());
    tags.filter(|tag| !tag.is_empty()).collect()
}

/// What every document under the ODP paths says about itself.
pub(crate) fn check_headers(answer: &Answer, media: &str, target: &str) {
    assert_eq!(answer.header("content-type"), Some(media), "{target}");
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert!(answer.header("x-request-id").is_some(), "{target}");
    let tag = answer.header("etag").unwrap();
    assert!(
        tag.starts_with('"') && tag.ends_with('"'),
        "a strong tag: {tag}"
    );
    let length = answer.header("content-length").unwrap();
    assert_eq!(length, answer.body.len().to_string(), "{target}");
    let vary = answer.header("vary").unwrap().to_ascii_lowercase();
    let varies: BTreeSet<&str> = vary.split(',').map(str::trim).collect();
    assert!(varies.contains("accept-encoding"), "{target}: {vary}");
    assert_eq!(
        varies.contains("accept-language"),
        media == "application/odp+json",
        "{target}: {vary}"
    );
}

/// HEAD says what GET says; the entity tag, sent back, gives 304 without a body; another tag does not.
pub(crate) fn check_conditions(
    client: &Client,
    target: &str,
    language: Option<&str>,
    answer: &Answer,
) {
    let head = ask(client, "HEAD", target, language);
    assert_eq!((head.status, head.body.len()), (200, 0), "HEAD {target}");
    for name in [
        "etag",
        "content-type",
        "content-length",
        "content-language",
        "vary",
    ] {
        assert_eq!(
            head.header(name),
            answer.header(name),
            "HEAD {target}: {name}"
        );
    }
    let tag = answer.header("etag").unwrap().to_owned();
    let language = language.map(|language| ("accept-language", language));
    for (condition, status) in [
        (tag.clone(), 304),
        (format!("W/{tag}"), 304),
        (format!("\"another\", {tag}"), 304),
        ("*".to_owned(), 304),
        ("\"another\"".to_owned(), 200),
    ] {
        let mut headers = vec![("if-none-match", condition.as_str())];
        headers.extend(language);
        let again = client.ask("GET", target, &headers);
        assert_eq!(again.status, status, "{target} if none match {condition}");
        assert_eq!(again.header("etag"), Some(tag.as_str()), "{target}");
        if status == 304 {
            assert!(again.body.is_empty());
            assert_eq!(again.header("vary"), answer.header("vary"));
        } else {
            assert_eq!(again.body, answer.body);
        }
    }
}

/// The pointers to what `full` has and `terse` lacks, worked out without the product.
pub(crate) fn lacking(
    full: &Map<String, Value>,
    terse: &Map<String, Value>,
    at: &str,
    found: &mut BTreeSet<String>,
) {
    for (name, member) in full {
        let pointer = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        match (terse.get(name), member) {
            (None, _) if pointer == "/odp_version" => {}
            (None, _) => {
                found.insert(pointer);
            }
            (Some(Value::Object(kept)), Value::Object(whole)) => {
                lacking(whole, kept, &pointer, found);
            }
            (Some(_), _) => {}
        }
    }
}

pub(crate) fn check_terse(full: &Value, terse: &Value) {
    let (full, terse) = (full.as_object().unwrap(), terse.as_object().unwrap());
    assert!(!full.contains_key("detail_fields"));
    assert!(!terse.contains_key("actions"));
    let mut expected = BTreeSet::new();
    lacking(full, terse, "", &mut expected);
    let said: Vec<&str> = terse.get("detail_fields").map_or_else(Vec::new, |fields| {
        let fields = fields.as_array().unwrap();
        fields.iter().map(|field| field.as_str().unwrap()).collect()
    });
    // The demo's documents stay far below 32 pointers of 256 characters, so the list must be there.
    assert_eq!(said.len(), expected.len(), "{terse:?}");
    assert_eq!(
        said.iter()
            .map(|field| (*field).to_owned())
            .collect::<BTreeSet<_>>(),
        expected
    );
    for (name, member) in terse.iter().filter(|(name, _)| *name != "detail_fields") {
        subset(&full[name], member, name);
    }
}

/// Omitted, never changed: members of objects may lack, and of the images all but the first.
pub(crate) fn subset(full: &Value, terse: &Value, name: &str) {
    match (full, terse) {
        (Value::Object(full), Value::Object(terse)) => {
            for (name, member) in terse {
                subset(&full[name], member, name);
            }
        }
        (Value::Array(full), Value::Array(terse)) if name == "images" => {
            assert_eq!(terse.as_slice(), &full[..1]);
        }
        _ => assert_eq!(full, terse, "{name}"),
    }
}

/// Follows a list from its first page to its end, checks every page, and gives the items. Later pages are asked for without
/// `Accept-Language`: a continuation keeps the language it began in.
pub(crate) fn traverse(
    client: &Client,
    published: &Published,
    target: &str,
    limit: usize,
    language: Option<&str>,
) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    let mut place = Some((target.to_owned(), language));
    let mut pages = 0;
    while let Some((target, language)) = place.take() {
        let answer = ask(client, "GET", &target, language).expect_status(200);
        check_headers(&answer, "application/odp+json", &target);
        assert!(answer.body.len() <= PAGE_BYTES);
        let page = answer.json();
        published.check("page-envelope", &page);
        if pages < 2 {
            check_conditions(client, &target, language, &answer);
        }
        pages += 1;
        let (of_page, next) = page_of(&answer);
        assert!(of_page.len() <= limit, "{target}");
        assert!(
            !of_page.is_empty() || pages == 1,
            "an empty page in the middle: {target}"
        );
        if !of_page.is_empty() {
            assert_eq!(
                content_language(&answer),
                languages_of(&of_page),
                "{target}"
            );
        }
        items.extend(of_page);
        place = next.map(|next| {
            assert_ne!(next, target);
            assert!(next.len() <= 2_048 && next.is_ascii());
            (next, None)
        });
    }
    let ids: Vec<&str> = items
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert!(
        ids.is_sorted_by(|a, b| a.as_bytes() < b.as_bytes()),
        "{target}: {ids:?}"
    );
    items
}

/// A member of a record as it is to be seen: the translation's, and of the attributes those that it has.
pub(crate) fn translated(record: &Value, german: bool, member: &str) -> Value {
    let mut value = record[member].clone();
    let translation = &record["translations"]["de"][member];
    match (&mut value, translation) {
        _ if !german || translation.is_null() => {}
        (Value::Object(all), Value::Object(some)) => {
            for (name, attribute) in some {
                all.insert(name.clone(), attribute.clone());
            }
        }
        _ => value = translation.clone(),
    }
    value
}
