//! Collections under each other.

use crate::support::{Fake, ORIGIN, code, document, page};
use purvey_agent::Agent;
use purvey_odp::collection::Collection;
use purvey_odp::identity::LocalId;
use serde_json::{Value, json};

fn collections(edges: &[(&str, &[&str])]) -> Value {
    let mut page = page(&[], None);
    let items = edges.iter().map(|(id, parents)| match parents {
        [] => json!({"id": id, "name": id}),
        parents => json!({"id": id, "name": id, "parent_ids": parents}),
    });
    page["items"] = items.collect();
    page
}

fn ids<'a>(collections: &[&'a Collection]) -> Vec<&'a str> {
    collections.iter().map(|c| c.id().as_str()).collect()
}

fn id(text: &str) -> LocalId {
    LocalId::parse(text).unwrap()
}

const LIST: &str = "GET /odp/collections?limit=100&representation=full";

#[tokio::test]
async fn a_hierarchy_is_walked_in_every_direction() {
    let fake = Fake::serving(&document());
    fake.on(
        LIST,
        &collections(&[
            ("all", &[]),
            ("home", &["all"]),
            ("office", &["all"]),
            ("desks", &["home", "office"]),
            ("standing", &["desks"]),
            ("gifts", &[]),
        ]),
    );
    let tree = fake.service().await.hierarchy().await.unwrap();
    assert!(tree.issues().is_empty());
    assert_eq!(tree.collections().len(), 6);
    assert_eq!(ids(&tree.roots()), ["all", "gifts"]);
    assert_eq!(ids(&tree.children(&id("all"))), ["home", "office"]);
    assert_eq!(ids(&tree.parents(&id("desks"))), ["home", "office"]);
    assert_eq!(
        ids(&tree.descendants(&id("all"))),
        ["home", "office", "desks", "standing"]
    );
    assert_eq!(
        ids(&tree.ancestors(&id("standing"))),
        ["desks", "home", "office", "all"]
    );
    assert!(tree.ancestors(&id("none")).is_empty() && tree.get(&id("none")).is_none());
    assert_eq!(tree.get(&id("gifts")).unwrap().name().as_str(), "gifts");
}

#[tokio::test]
async fn a_broken_edge_is_ignored_and_nothing_else() {
    let fake = Fake::serving(&document());
    fake.on(
        LIST,
        &collections(&[
            ("self", &["self", "all"]),
            ("orphan", &["none"]),
            ("a", &["b"]),
            ("b", &["a", "all"]),
            ("all", &[]),
        ]),
    );
    let tree = fake.service().await.hierarchy().await.unwrap();
    let told: Vec<_> = tree
        .issues()
        .iter()
        .map(|i| (i.pointer.as_str(), i.code.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("/0/parent_ids/0", "BROKEN_EDGE"),
            ("/1/parent_ids/0", "BROKEN_EDGE"),
            ("/3/parent_ids/0", "BROKEN_EDGE"),
        ]
    );
    assert_eq!(ids(&tree.roots()), ["orphan", "all"]);
    assert_eq!(ids(&tree.descendants(&id("all"))), ["self", "b", "a"]);
    assert_eq!(ids(&tree.ancestors(&id("a"))), ["b", "all"]);
}

#[tokio::test]
async fn a_chain_is_followed_for_32_edges() {
    let names: Vec<String> = (0..40).map(|i| format!("c{i}")).collect();
    let items = names.iter().enumerate().map(|(i, name)| match i {
        0 => json!({"id": name, "name": name}),
        i => json!({"id": name, "name": name, "parent_ids": [names[i - 1]]}),
    });
    let fake = Fake::serving(&document());
    fake.on(
        LIST,
        &json!({"odp_version": "1.0", "items": items.collect::<Vec<_>>()}),
    );
    let tree = fake.service().await.hierarchy().await.unwrap();
    assert_eq!(ids(&tree.roots()), ["c0", "c33"]);
    assert_eq!(tree.ancestors(&id("c32")).len(), 32);
    assert_eq!(tree.issues().len(), 1);
}

#[tokio::test]
async fn part_of_a_hierarchy_is_none() {
    let fake = Fake::serving(&document());
    fake.on(LIST, &page(&["a", "b"], Some("/2")));
    fake.on(
        "GET /odp/collections?limit=3&representation=full",
        &page(&["a", "b"], Some("/2")),
    );
    let error = fake.service().await.hierarchy().await.unwrap_err();
    assert_eq!(code(&error), "NOT_FOUND");
    fake.on("GET /2", &page(&["c", "d"], Some("/3")));
    let agent = Agent::builder()
        .transport(fake.clone())
        .max_collections(2)
        .build()
        .unwrap();
    let error = agent
        .service(ORIGIN)
        .await
        .unwrap()
        .hierarchy()
        .await
        .unwrap_err();
    assert_eq!(code(&error), "RESPONSE_LIMIT_EXCEEDED");
    assert_eq!(fake.log().last().unwrap(), "GET /2");
}
