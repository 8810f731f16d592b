//! `purvey get` and `purvey collections` against a Service with something in every member.

use super::fake::{Fake, Reply, nothing, page, service};
use super::support::{json as json_of, ok, run, stderr, stdout};
use serde_json::{Value, json};

fn schema(document: &Value) -> Reply {
    Reply::new(200, "application/schema+json", document.to_string())
}

fn shop() -> Fake {
    Fake::start(|request| {
        match request.target.as_str() {
        "/.well-known/odp" => service(
            &["list-offerings", "get-offering", "get-collection", "list-collections", "search-collections"],
            &json!({
                "localizations": ["en", "de"],
                "keywords": ["lamps", "shades"],
                "website_url": "/about",
                "support_url": "https://help.shop.example/",
                "payment_origins": ["https://pay.shop.example"],
                "protocols": {
                    "enrollment": [{"name": "aep"}],
                    "payments": [{"name": "mpp", "authentication": "required", "options": ["card", "stripe"]}],
                    "trust": [{"name": "tap"}],
                },
            }),
        ),
        "/odp/offerings/lamp" => Reply::odp(&json!({
            "odp_version": "1.0", "id": "lamp", "name": "Desk lamp", "description": "Bends\nwhere you want it.",
            "images": [{"src": "/lamp.png", "alt": "The lamp", "width": 640, "height": 480}, {"src": "https://cdn.example/2.png"}],
            "language": "en", "localizations": ["en", "de"], "web_url": "/lamps/1", "collection_ids": ["light", "desk"],
            "price": {"type": "range", "minimum": "10", "maximum": "20", "currency": "EUR"},
            "schema": {"url": "/schemas/lamp.json"},
            "attributes": {
                "height_cm": 40, "dimmable": true, "colours": ["red", "blue"],
                "bulb": {"socket": "E27"}, "parts": [{"name": "arm"}, {"name": "foot"}],
            },
            "actions": [
                {
                    "id": "buy", "rel": "purchase", "description": "Buy one.", "authentication": "required",
                    "http": {"method": "POST", "href": "/buy", "request": {"content_type": "application/json"}},
                },
                {
                    "id": "ask", "rel": "quote", "authentication": "optional",
                    "openapi": {"url": "/openapi.json", "operation_id": "ask"},
                },
            ],
            "auth_expands": true,
        })).with("content-language", "en"),
        "/schemas/lamp.json" => schema(&json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
            "properties": {
                "height_cm": {"title": "Height", "description": "From foot to bulb, in cm."},
                "dimmable": {"description": "Whether it can be dimmed."},
                "colours": {"title": "Colours"},
                "bulb": {"$ref": "bulb.json"},
                "parts": {"items": {"properties": {"name": {"title": "Name of the part"}}}},
            },
        })),
        "/schemas/bulb.json" => schema(&json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "allOf": [{"$ref": "#/$defs/socketed"}],
            "$defs": {"socketed": {"properties": {"socket": {"title": "Socket", "description": "What it is screwed into."}}}},
        })),
        "/odp/offerings/broken" => Reply::odp(&json!({
            "odp_version": "1.0", "id": "broken", "name": "Broken lamp",
            "schema": {"url": "/schemas/none.json"}, "attributes": {"height_cm": 40},
            "price": {"type": "auction"},
        })),
        "/odp/collections/light" => Reply::odp(&json!({
            "odp_version": "1.0", "id": "light", "name": "Light", "description": "Lamps.", "parent_ids": ["home"],
        })),
        "/odp/collections?limit=100&representation=full" => page(
            &json!([
                {"id": "home", "name": "Home"},
                {"id": "light", "name": "Light", "parent_ids": ["home"]},
                {"id": "lost", "name": "Lost", "parent_ids": ["nowhere"]},
            ]),
            &json!({}),
        ),
        "/odp/collections/search" => page(&json!([{"id": "light", "name": "Light", "parent_ids": ["home"]}]), &json!({})),
        _ => nothing(),
    }
    })
}

#[test]
fn a_service_is_shown_whole() {
    let fake = shop();
    let origin = &fake.url;
    assert_eq!(
        ok(&["inspect", origin]),
        format!(
            "Corner shop\n\
             What the corner shop sells.\n\
             \n\
             Service     {origin}\n\
             Language    en\n\
             Languages   en, de\n\
             Keywords    lamps, shades\n\
             Website     {origin}/about\n\
             Support     https://help.shop.example/\n\
             Protocols   enrollment: aep; payment: mpp (card, stripe), authenticated; trust: tap\n\
             Payment to  https://pay.shop.example\n\
             \n\
             OPERATION           AUTHENTICATION\n\
             list-offerings      not-required\n\
             get-offering        not-required\n\
             get-collection      not-required\n\
             list-collections    not-required\n\
             search-collections  not-required\n"
        )
    );
}

#[test]
fn an_offering_is_shown_with_its_attributes_explained() {
    let fake = shop();
    let origin = &fake.url;
    let output = run(&["get", origin, "lamp"]);
    assert_eq!(
        stdout(&output),
        format!(
            "Desk lamp\n\
             Bends where you want it.\n\
             \n\
             Offering     lamp\n\
             Service      {origin}\n\
             Price        10 to 20 EUR\n\
             Collections  light, desk\n\
             Language     en\n\
             Languages    en, de\n\
             Page         {origin}/lamps/1\n\
             More         authentication shows more\n\
             \n\
             IMAGE{pad}  SIZE     SHOWS\n\
             {origin}/lamp.png  640x480  The lamp\n\
             https://cdn.example/2.png\n\
             \n\
             ATTRIBUTE      VALUE      MEANING\n\
             height_cm      40         Height: From foot to bulb, in cm.\n\
             dimmable       true       Whether it can be dimmed.\n\
             colours        red, blue  Colours\n\
             bulb.socket    E27        Socket: What it is screwed into.\n\
             parts[0].name  arm        Name of the part\n\
             parts[1].name  foot       Name of the part\n\
             \n\
             ACTION  REL       REQUEST{sent}  SENDS             AUTHENTICATION  MEANING\n\
             buy     purchase  POST {origin}/buy  application/json  required        Buy one.\n",
            pad = " ".repeat(
                (origin.len() + "/lamp.png".len()).max("https://cdn.example/2.png".len())
                    - "IMAGE".len()
            ),
            sent = " ".repeat("POST ".len() + origin.len() + "/buy".len() - "REQUEST".len()),
        )
    );
    let said = stderr(&output);
    assert!(said.starts_with("note: lamp /actions/1: "), "{said}");
    assert!(
        said.contains("(UNAVAILABLE, ") && said.contains("/openapi.json)"),
        "{said}"
    );
}

#[test]
fn an_offering_as_json_has_everything_that_was_found() {
    let fake = shop();
    let found = json_of(&["get", &fake.url, "lamp", "--json"]);
    assert_eq!(found["service"], fake.url.as_str());
    assert_eq!(found["content_language"], "en");
    assert_eq!(found["offering"]["odp_version"], "1.0");
    assert_eq!(found["offering"]["attributes"]["bulb"]["socket"], "E27");
    assert_eq!(
        found["schema"]["properties"]["height_cm"]["title"],
        "Height"
    );
    assert_eq!(found["actions"].as_array().unwrap().len(), 1);
    assert_eq!(found["actions"][0]["action"]["id"], "buy");
    assert_eq!(found["actions"][0]["method"], "POST");
    assert_eq!(found["actions"][0]["url"], format!("{}/buy", fake.url));
    assert_eq!(
        found["actions"][0]["content_types"],
        json!(["application/json"])
    );
    assert_eq!(found["issues"][0]["pointer"], "/actions/1");
    assert_eq!(found["issues"][0]["code"], "UNAVAILABLE");
    let found = json_of(&["get", &fake.url, "light", "--collection", "--json"]);
    assert_eq!(found["collection"]["parent_ids"], json!(["home"]));
}

#[test]
fn what_cannot_be_used_is_a_note_beside_the_rest() {
    let fake = shop();
    let output = run(&["get", &fake.url, "broken"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        stdout(&output),
        format!("Broken lamp\n\nOffering  broken\nService   {}\n", fake.url)
    );
    let said = stderr(&output);
    assert!(said.contains("note: broken /price"), "{said}");
    assert!(said.contains("note: broken /schema"), "{said}");
    // As the Service sent it, nothing is missing.
    let raw = ok(&["get", &fake.url, "broken", "--raw"]);
    assert_eq!(
        raw,
        r#"{"odp_version":"1.0","id":"broken","name":"Broken lamp","schema":{"url":"/schemas/none.json"},"attributes":{"height_cm":40},"price":{"type":"auction"}}"#
    );
}

#[test]
fn collections_are_listed_searched_and_drawn() {
    let fake = shop();
    let origin = fake.url.as_str();
    assert_eq!(
        ok(&["get", origin, "light", "--collection"]),
        format!("Light\nLamps.\n\nCollection  light\nService     {origin}\nIn          home\n")
    );
    let output = run(&["collections", origin, "--tree"]);
    assert_eq!(stdout(&output), "home  Home\n  light  Light\nlost  Lost\n");
    assert!(
        stderr(&output).starts_with("note: lost /parent_ids/0: "),
        "{}",
        stderr(&output)
    );

    let table = "ID     NAME   IN\nlight  Light  home\n";
    assert_eq!(ok(&["collections", origin, "lamps", "--in", "home"]), table);
    assert_eq!(
        ok(&["collections", origin, "--roots", "--limit", "3"]),
        table
    );
    let sent: Vec<Value> = fake
        .requests_for("/odp/collections/search")
        .iter()
        .map(super::fake::Request::json)
        .collect();
    assert_eq!(
        sent,
        [
            json!({"odp_version": "1.0", "query": "lamps", "parent_id": "home", "limit": 50}),
            json!({"odp_version": "1.0", "parent_id": null, "limit": 3}),
        ]
    );
}
