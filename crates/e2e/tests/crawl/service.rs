//! The Service Document.

use std::collections::BTreeSet;

use crate::published::Published;
use crate::support::*;

#[test]
fn the_service_document_is_valid_in_each_language() {
    let Some(published) = Published::load() else {
        return;
    };
    let (_server, client) = demo();
    let mut tags = BTreeSet::new();
    for (language, german) in LANGUAGES {
        let target = "/.well-known/odp";
        let answer = ask(&client, "GET", target, language).expect_status(200);
        check_headers(&answer, "application/odp+json", target);
        check_conditions(&client, target, language, &answer);
        assert!(answer.body.len() <= 65_536);
        let document = answer.json();
        published.check("service-document", &document);
        let (name, tag) = if german {
            ("Laternenhof", "de")
        } else {
            ("Lantern Yard", "en")
        };
        assert_eq!(document["name"], name);
        assert_eq!(document["localizations"], serde_json::json!(["en", "de"]));
        assert_eq!(answer.header("content-language"), Some(tag));
        // As many as the manifest has for the whole Service, which are few enough to stand here.
        let capabilities = &document["search_capabilities"];
        let count = |kind: &str| capabilities[kind]["inline"].as_array().unwrap().len();
        assert_eq!((count("filters"), count("sorts")), (8, 3));
        let operations = document["operations"].as_array().unwrap();
        let names: BTreeSet<&str> = operations
            .iter()
            .map(|o| o["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            BTreeSet::from([
                "get-collection",
                "get-offering",
                "list-collection-offerings",
                "list-collections",
                "list-offerings",
                "search-collections",
                "search-offerings",
            ])
        );
        tags.insert((german, answer.header("etag").unwrap().to_owned()));
    }
    assert_eq!(tags.len(), 2, "one tag for each variant: {tags:?}");
}
