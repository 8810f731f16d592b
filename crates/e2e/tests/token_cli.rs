//! Tokens from the command line to the wire, with the server running.

use e2e::binary;
use e2e::client::Client;
use e2e::server::Server;
use serde_json::json;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn token(data: &Path, arguments: &[&str]) -> Command {
    let mut command = binary::command();
    command.args(["catalog", "token"]).args(arguments);
    command.arg("--data").arg(data);
    command
}

#[test]
fn a_token_is_made_listed_used_and_revoked_while_the_server_runs() {
    let home = TempDir::new().unwrap();
    let data = home.path().join("data");
    binary::fail(token(&data, &["list"]), 1, &["there is no catalog"]);
    let manifest = home.path().join("catalog.toml");
    std::fs::write(
        &manifest,
        "[service]\nname = \"S\"\ndescription = \"S.\"\nlanguage = \"en\"\n",
    )
    .unwrap();
    binary::succeed(binary::import(&data, &manifest, &[]));
    let server = Server::start(&data);
    let client = Client::new(&server.url);
    let hidden = json!({"id": "a", "name": "A", "audience": ["staff"]});
    let target = "/v1/catalog/offerings/a?wait=published";
    client.put(target, &hidden).unwrap().expect_status(201);
    let stored = client.stored("/v1/catalog/offerings/a").expect_status(200);
    assert_eq!(stored.json(), hidden);
    let path = client.operation("/offerings/a");
    client.get(&path).expect_status(404);

    binary::fail(token(&data, &["create"]), 2, &["--audience"]);
    let wrong = ["create", "--audience", "a b"];
    binary::fail(token(&data, &wrong), 2, &["/audiences/0"]);
    let create = ["create", "--audience", "staff", "--audience", "trade"];
    let made = binary::succeed(token(&data, &[&create[..], &["--name", "Jo"]].concat()));
    let secret = String::from_utf8(made.stdout.clone()).unwrap();
    let secret = secret.trim_end();
    assert!(secret.starts_with("pvc_") && secret.len() == 47, "{secret}");
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(!said.contains(secret), "{said}");
    let credentials = format!("Bearer {secret}");
    let fields = [("authorization", credentials.as_str())];
    let seen = client.ask("GET", &path, &fields).expect_status(200);
    assert_eq!(
        seen.json(),
        json!({"odp_version": "1.0", "id": "a", "name": "A"})
    );

    let listed = binary::json(&binary::succeed(token(&data, &["list", "--json"])));
    assert_eq!(listed[0]["name"], "Jo");
    assert_eq!(listed[0]["audiences"], json!(["staff", "trade"]));
    assert_eq!(listed[0]["ending"], secret[43..]);
    assert!(!listed.to_string().contains(secret));
    let brief = ["create", "--audience", "x", "--expires", "30d", "--json"];
    let other = binary::json(&binary::succeed(token(&data, &brief)));
    let lifetime = other["expires"].as_u64().unwrap() - other["created"].as_u64().unwrap();
    assert_eq!(lifetime, 30 * 86_400);
    assert!(other["token"].as_str().unwrap().starts_with("pvc_"));

    binary::succeed(token(&data, &["revoke", "Jo"]));
    client.ask("GET", &path, &fields).expect_status(401);
    binary::fail(token(&data, &["revoke", "Jo"]), 1, &["no such token"]);
}
