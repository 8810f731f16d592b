//! The protocol's published examples, imported, come back as they are.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failure in a test's helper is the test's failure"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use e2e::binary;
use e2e::client::Client;
use e2e::server::Server;
use e2e::shared::shared;
use serde_json::{Value, json};
use tempfile::TempDir;

/// An example: its Offering, the id, and the file of the attribute schema that it names, if it names one.
struct Example {
    offering: &'static str,
    id: &'static str,
    schema: Option<&'static str>,
    /// Members that the Terse Representation has under the manifest of these tests.
    terse: &'static [&'static str],
}

const EXAMPLES: [Example; 7] = [
    Example {
        offering: "digital-subscription/team-annual-offering.json",
        id: "team-annual",
        schema: Some("digital-subscription/digital-subscription-attributes.schema.json"),
        terse: &["id", "name", "price"],
    },
    Example {
        offering: "flight/flight-offering.json",
        id: "IF123-2026-09-14-SFO-JFK",
        schema: Some("flight/flight-attributes.schema.json"),
        terse: &["id", "name", "price"],
    },
    Example {
        offering: "free-digital-product/free-digital-product-offering.json",
        id: "agent-safety-handbook-2",
        schema: Some("free-digital-product/digital-product-attributes.schema.json"),
        terse: &["id", "name", "price"],
    },
    Example {
        offering: "gpu-rental/gpu-rental-offering.json",
        id: "a100-80gb-us-west",
        schema: Some("gpu-rental/gpu-rental-attributes.schema.json"),
        terse: &["id", "name", "price"],
    },
    Example {
        offering: "marketplace/walnut-standing-desk-offering.json",
        id: "walnut-standing-desk-4821",
        schema: Some("marketplace/home-office-furniture-attributes.schema.json"),
        terse: &["id", "name", "collection_ids", "price"],
    },
    Example {
        offering: "minimum-service/consultation-offering.json",
        id: "consultation",
        schema: None,
        terse: &["id", "name"],
    },
    Example {
        offering: "physical-retail/travel-mug-offering.json",
        id: "travel-mug-20oz-blue",
        schema: Some("physical-retail/physical-retail-attributes.schema.json"),
        terse: &["id", "name", "price"],
    },
];

/// The Collection's example, without what a Service that does not search must not say.
const COLLECTION: &str = "marketplace/home-office-collection.json";

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A manifest for one example. The schema stands under the URL that the Offering names: it is validated against, not served.
fn manifest(home: &Path, examples: &Path, example: &Example, offering: &Value) -> PathBuf {
    // Actions that name no document of their own need the Service's.
    let mut text =
        "[service]\nname = \"Examples\"\ndescription = \"One example.\"\nlanguage = \"en\"\n\
         openapi = { url = \"https://examples.example/openapi.json\" }\n\
         [search]\nterse = [\"/collection_ids\", \"/price\"]\n"
            .to_owned();
    if let Some(schema) = example.schema {
        let url = offering["schema"]["url"].as_str().unwrap();
        let file = examples.join(schema);
        write!(text, "[schemas]\n{url:?} = {:?}\n", file.to_str().unwrap()).unwrap();
    }
    let path = home.join("catalog.toml");
    fs::write(&path, text).unwrap();
    path
}

fn without(value: &Value, member: &str) -> Value {
    let mut value = value.clone();
    value.as_object_mut().unwrap().remove(member);
    value
}

#[test]
fn every_offering_comes_back_equal() {
    let Some(examples) = shared("odp/examples") else {
        return;
    };
    for example in &EXAMPLES {
        let offering = read(&examples.join(example.offering));
        let home = TempDir::new().unwrap();
        let manifest = manifest(home.path(), &examples, example, &offering);
        let records = home.path().join("records.ndjson");
        // The Collection comes before its members; the Offering keeps its odp_version, as in the example.
        let mut collection = without(&read(&examples.join(COLLECTION)), "search_capabilities");
        let lines = format!("{}\n{offering}\n", json!({ "collection": collection }));
        fs::write(&records, lines).unwrap();
        let data = home.path().join("data");
        binary::succeed(binary::import(&data, &manifest, &[&records]));
        binary::succeed(binary::check(&data));

        let server = Server::start(&data);
        let client = Client::new(&server.url);
        let target = client.operation(&format!("/offerings/{}", example.id));
        let full = client.get(&target).expect_status(200).json();
        assert_eq!(full, offering, "{}", example.offering);

        // A page's items lack the version and nothing else.
        let list = client.operation("/offerings?representation=full");
        assert_eq!(client.items(&list), [without(&offering, "odp_version")]);

        let terse = client
            .get(&format!("{target}?representation=terse"))
            .expect_status(200)
            .json();
        let mut names = vec!["odp_version"];
        names.extend(example.terse);
        let mut fields = Vec::new();
        for (name, member) in terse.as_object().unwrap() {
            match name.as_str() {
                "detail_fields" => fields.extend(member.as_array().unwrap().clone()),
                name => {
                    assert_eq!(*member, offering[name], "{}: {name}", example.offering);
                    names.retain(|expected| *expected != name);
                }
            }
        }
        assert!(names.is_empty(), "terse lacks {names:?}: {terse}");
        // Everything else is named as a detail, whole members here since none is taken in part.
        let missing: Vec<Value> = offering
            .as_object()
            .unwrap()
            .keys()
            .filter(|name| terse.get(name).is_none())
            .map(|name| format!("/{name}").into())
            .collect();
        let sorted = |mut pointers: Vec<Value>| {
            pointers.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
            pointers
        };
        assert_eq!(sorted(fields), sorted(missing), "{}", example.offering);

        let found = client
            .get(&client.operation("/collections/home-office"))
            .expect_status(200)
            .json();
        assert_eq!(found, collection);
        collection = without(&collection, "odp_version");
        let list = client.operation("/collections?representation=full");
        assert_eq!(client.items(&list), [collection]);
    }
}

#[test]
fn a_broken_attribute_is_refused_with_its_place() {
    let Some(examples) = shared("odp/examples") else {
        return;
    };
    let example = &EXAMPLES[1];
    let mut offering = read(&examples.join(example.offering));
    let home = TempDir::new().unwrap();
    let manifest = manifest(home.path(), &examples, example, &offering);
    // An airport's code has three letters.
    offering["attributes"]["departure"]["airport"] = json!("sfo");
    let records = home.path().join("records.ndjson");
    fs::write(&records, format!("{offering}\n")).unwrap();
    let data = home.path().join("data");
    let mut command = binary::import(&data, &manifest, &[&records]);
    command.arg("--json");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", binary::said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["committed"], false);
    assert_eq!(report["faults"][0]["line"], 1);
    let violations = report["faults"][0]["violations"].as_array().unwrap();
    assert_eq!(violations.len(), 1, "{report}");
    assert_eq!(violations[0]["pointer"], "/attributes/departure/airport");
}

#[test]
fn every_published_offering_is_one_of_these() {
    let Some(examples) = shared("odp/examples") else {
        return;
    };
    let mut found = Vec::new();
    for directory in fs::read_dir(&examples).unwrap() {
        let directory = directory.unwrap().path();
        for file in fs::read_dir(&directory).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            if name.ends_with("-offering.json") {
                let directory = directory.file_name().unwrap().to_str().unwrap();
                found.push(format!("{directory}/{name}"));
            }
        }
    }
    found.sort();
    assert_eq!(found, EXAMPLES.map(|example| example.offering));
}
