//! What tools answer, how much of it, and how it goes on.

use crate::{Client, clean, fake, ids};
use e2e::binary;
use e2e::server::Server;
use serde_json::{Value, json};

#[test]
fn a_service_is_inspected_searched_and_read() {
    let origin = clean();
    let (mut client, _) = Client::start(&["--local"]);
    let seen = client.succeed("inspect_service", json!({"origin": origin}));
    assert_eq!(seen["service"], origin);
    assert_eq!(seen["untrusted"]["document"]["name"], "A shelf");

    let seen = client.succeed("list_capabilities", json!({"origin": origin}));
    let items = seen["untrusted"]["items"].as_array().unwrap();
    assert_eq!(items.len(), 4);
    assert_eq!(items[0]["filter"]["id"], "kind");
    assert_eq!(items[3]["sort"]["id"], "largest");
    assert_eq!(seen["complete"], true);

    let child = json!({"origin": origin, "collection": "child"});
    let seen = client.succeed("list_capabilities", child);
    assert_eq!(seen["untrusted"]["items"][2]["filter"]["id"], "shade");

    let search = json!({
        "origin": origin,
        "filters": [{"id": "size", "operator": "lte", "value": 90}],
        "sort": "largest",
        "refinements": ["kind"],
    });
    let seen = client.succeed("search_offerings", search);
    assert_eq!(ids(&seen), ["chair", "stool", "glass", "brass"]);
    let counted = &seen["untrusted"]["refinements"][0];
    assert_eq!(counted["filter_id"], "kind");
    assert_eq!(counted["values"][0], json!({"value": "lamp", "count": 2}));
    assert_eq!(seen["complete"], true);

    let seen = client.succeed("list_collections", json!({"origin": origin}));
    assert_eq!(ids(&seen), ["child", "root"]);
    let seen = client.succeed(
        "search_collections",
        json!({"origin": origin, "parent": "root"}),
    );
    assert_eq!(ids(&seen), ["child"]);
    let seen = client.succeed(
        "search_collections",
        json!({"origin": origin, "roots": true}),
    );
    assert_eq!(ids(&seen), ["root"]);
    let list = json!({"origin": origin, "collection": "child"});
    let seen = client.succeed("list_offerings", list);
    assert_eq!(ids(&seen), ["brass", "glass", "vase"]);

    let seen = client.succeed("get_offering", json!({"origin": origin, "id": "glass"}));
    let offering = &seen["untrusted"]["offering"];
    assert_eq!(offering["price"]["amount"], "4.50");
    assert_eq!(offering["attributes"]["size"], 20);
    assert_eq!(offering["actions"][0]["id"], "buy");
}

#[test]
fn a_result_goes_on_once() {
    let origin = clean();
    let (mut client, _) = Client::start(&["--local"]);
    let first = client.succeed("list_offerings", json!({"origin": origin, "limit": 4}));
    assert_eq!(ids(&first), ["brass", "chair", "glass", "stool"]);
    assert_eq!(first["complete"], false);
    let next = json!({"origin": origin, "continuation": first["continuation"]});
    let second = client.succeed("list_offerings", next.clone());
    assert_eq!(ids(&second), ["table", "vase"]);
    assert_eq!(second["complete"], true);
    assert_eq!(second["continuation"], Value::Null);
    let again = client.fail("list_offerings", next);
    assert_eq!(again["error"]["code"], "UNKNOWN_CONTINUATION");
}

#[test]
fn a_result_goes_on_by_the_call_that_began_it() {
    let (origin, other) = (clean(), clean());
    let (mut client, _) = Client::start(&["--local"]);
    let list = json!({"origin": origin, "collection": "child", "limit": 1});
    let first = client.succeed("list_offerings", list);
    assert_eq!(ids(&first), ["brass"]);
    let with = |name: &str, value: &Value| {
        let mut next = json!({"origin": origin, "continuation": first["continuation"]});
        next[name] = value.clone();
        next
    };
    for (tool, next, code) in [
        (
            "search_offerings",
            with("origin", &json!(origin)),
            "UNKNOWN_CONTINUATION",
        ),
        (
            "list_collections",
            with("origin", &json!(origin)),
            "UNKNOWN_CONTINUATION",
        ),
        (
            "list_offerings",
            with("origin", &json!(other)),
            "UNKNOWN_CONTINUATION",
        ),
        (
            "list_offerings",
            with("collection", &json!("root")),
            "INVALID_ARGUMENTS",
        ),
        (
            "list_offerings",
            with("limit", &json!(0)),
            "INVALID_ARGUMENTS",
        ),
        (
            "list_offerings",
            with("query", &json!("x")),
            "INVALID_ARGUMENTS",
        ),
    ] {
        let seen = client.fail(tool, next.clone());
        assert_eq!(seen["error"]["code"], code, "{tool} {next}");
    }
    // None of that used it up; its own arguments may be said again, and how much is wanted is free.
    let mut next = with("collection", &json!("child"));
    next["limit"] = json!(100);
    let second = client.succeed("list_offerings", next);
    assert_eq!(ids(&second), ["glass"]);
    let last = json!({"origin": origin, "continuation": second["continuation"]});
    let last = client.succeed("list_offerings", last);
    assert_eq!(
        (ids(&last), &last["complete"]),
        (vec!["vase".to_owned()], &json!(true))
    );

    let definitions = json!({"origin": origin, "limit": 3});
    let first = client.succeed("list_capabilities", definitions);
    assert_eq!(first["untrusted"]["items"].as_array().unwrap().len(), 3);
    let next = json!({"origin": origin, "continuation": first["continuation"]});
    let second = client.succeed("list_capabilities", next);
    assert_eq!(second["untrusted"]["items"][0]["sort"]["id"], "largest");
    assert_eq!(second["complete"], true);
}

#[test]
fn results_are_bounded_and_lose_nothing() {
    let origin = fake::start(Box::new(|request, response| {
        if let Some(items) = response.body.get_mut("items")
            && request.path == "/odp/offerings"
        {
            for item in items.as_array_mut().unwrap() {
                item["description"] = json!("x".repeat(700));
                item.as_object_mut().unwrap().remove("detail_fields");
            }
        }
        if request.path == "/odp/offerings/brass" && response.status == 200 {
            response.body["attributes"]["story"] = json!("y".repeat(1500));
            response.body["attributes"]["parts"] = json!(vec!["part"; 30_000]);
        }
    }));
    let (mut client, _) = Client::start(&["--local", "--max-bytes", "2500"]);
    let mut found = Vec::new();
    let mut arguments = json!({"origin": origin});
    loop {
        let (seen, bytes, failed) = client.call("list_offerings", arguments);
        assert!(!failed && bytes <= 2500, "{bytes} {seen}");
        found.extend(ids(&seen));
        if seen["complete"] == true {
            break;
        }
        arguments = json!({"origin": origin, "continuation": seen["continuation"]});
    }
    assert_eq!(found, ["brass", "chair", "glass", "stool", "table", "vase"]);

    let get = json!({"origin": origin, "id": "brass"});
    let (seen, bytes, failed) = client.call("get_offering", get.clone());
    assert!(!failed && bytes <= 2500, "{bytes} {seen}");
    assert_eq!(seen["omitted"], Value::Null, "made of the Service's names");
    let omitted: Vec<_> = seen["untrusted"]["omitted"].as_array().unwrap().clone();
    assert!(omitted.contains(&json!("/attributes/story")), "{seen}");
    let mut part = get;
    part["part"] = json!("/attributes/story");
    let (seen, bytes, _) = client.call("get_offering", part.clone());
    assert!(bytes <= 2500);
    assert_eq!(seen["untrusted"]["part"], "y".repeat(1500));
    part["part"] = json!("/nothing");
    assert_eq!(
        client.fail("get_offering", part)["error"]["code"],
        "NO_SUCH_PART"
    );
}

#[test]
fn text_that_grows_when_it_is_made_visible_is_bounded_too() {
    let hidden = |n: usize| json!("\u{202e}".repeat(n));
    let origin = fake::start(Box::new(move |request, response| {
        if request.path == "/odp/offerings" {
            for item in response.body["items"].as_array_mut().unwrap() {
                item["description"] = hidden(200);
                item.as_object_mut().unwrap().remove("detail_fields");
            }
        }
        if request.path == "/odp/offerings/brass" && response.status == 200 {
            for i in 0..100 {
                response.body["attributes"][format!("{i:03}{}", "n".repeat(90))] = hidden(900);
            }
        }
        if request.method == "POST" {
            *response = fake::Response::problem(400, "INVALID_REQUEST", None);
            let param = json!({"in": "body", "name": "/query", "reason": hidden(1000)});
            response.body["invalid_params"] = json!([param, param, param]);
            response.body["detail"] = hidden(2000);
        }
    }));
    let (mut client, _) = Client::start(&["--local", "--max-bytes", "4000"]);
    let list = json!({"origin": origin});
    let get = json!({"origin": origin, "id": "brass"});
    let search = json!({"origin": origin, "query": "lamp"});
    for (tool, arguments) in [("list_offerings", list), ("get_offering", get)] {
        let (seen, bytes, failed) = client.call(tool, arguments);
        assert!(!failed && bytes <= 4000, "{tool}: {bytes} {seen}");
    }
    let (seen, bytes, failed) = client.call("search_offerings", search);
    assert!(failed && bytes <= 4000, "{bytes} {seen}");
    assert_eq!(seen["error"]["code"], "INVALID_REQUEST");
}

#[test]
fn the_demo_is_read_to_its_end() {
    let mut command = binary::command();
    command.args(["serve", "--demo", "--listen", "127.0.0.1:0"]);
    let server = Server::run(command).unwrap_or_else(|said| panic!("{said}"));
    let (mut client, _) = Client::start(&["--local"]);
    let mut found = Vec::new();
    let mut arguments = json!({"origin": server.url, "limit": 100});
    loop {
        let (seen, bytes, failed) = client.call("list_offerings", arguments);
        assert!(!failed && bytes <= 24_000, "{bytes} {seen}");
        found.extend(ids(&seen));
        if seen["complete"] == true {
            break;
        }
        arguments = json!({"origin": server.url, "continuation": seen["continuation"]});
    }
    let by_hand = e2e::client::Client::new(&server.url);
    let items = by_hand.items(&by_hand.operation("/offerings"));
    let expected: Vec<_> = items
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert_eq!(found, expected);
    let get = json!({"origin": server.url, "id": found[0]});
    let (seen, bytes, failed) = client.call("get_offering", get);
    assert!(!failed && bytes <= 24_000, "{seen}");
}
