//! The run platform as whoever types the commands meets it: a server, its first owner's token, agents and runs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failure in a test's helper is the test's failure"
)]

use e2e::{
    binary,
    home::{Home, text},
};
use serde_json::json;
use std::path::Path;

/// Programs that are slow, or say nothing that can be read.
const PROVIDERS: &str = "[providers.sh]\nkind = \"command\"\ncommand = [\"/bin/sh\", \"-c\", \"cat > /dev/null; sleep 30\"]\nenvironment = [\"PATH\"]\n\
             [providers.bad]\nkind = \"command\"\ncommand = [\"/bin/sh\", \"-c\", \"cat > /dev/null; echo not json\"]\nenvironment = [\"PATH\"]\n";

fn home() -> Home {
    Home::start(PROVIDERS)
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_run_is_started_waited_for_watched_and_listed() {
    let home = home();
    #[cfg(unix)]
    assert_eq!(mode(&home.token_file), 0o600);
    let secret = std::fs::read_to_string(&home.token_file).unwrap();
    let said = home.server.said();
    assert!(
        said.contains("owner-token") && !said.contains(secret.trim()),
        "{said}"
    );
    let agent = home.agent("Echo", "echo", &[]);
    let start = [
        "run",
        "start",
        &agent,
        "--input",
        "{\"a\": 1}",
        "--key",
        "k-1",
        "--wait",
    ];
    let run = home.json(&start);
    assert_eq!(run["status"], "succeeded");
    assert_eq!(run["output"], json!({"a": 1}));
    assert_eq!(run["verification_status"], "not_required");
    // The same start again is the same run; another under the key is refused.
    assert_eq!(home.json(&start)["id"], run["id"]);
    let other = ["run", "start", &agent, "--input", "2", "--key", "k-1"];
    binary::fail(home.owner(&other), 9, &["idempotency.key_reused"]);
    let id = text(&run["id"]);
    assert_eq!(home.json(&["run", "show", &id])["id"], run["id"]);
    let watched = binary::succeed(home.owner(&["run", "watch", &id]));
    let watched = binary::said(&watched);
    assert!(watched.contains("status succeeded"), "{watched}");
    let listed = home.json(&["run", "list"]);
    assert_eq!(listed["id"], run["id"], "one line for the one run");
    let steps = binary::said(&binary::succeed(home.owner(&["run", "steps", &id])));
    assert!(steps.contains("provider"), "{steps}");
    binary::fail(home.owner(&["run", "cancel", &id]), 9, &["state.conflict"]);
}

#[test]
fn failures_say_what_to_do_and_have_codes_of_their_own() {
    let home = home();
    let agent = home.agent("Echo", "echo", &[]);
    let absent = "agt_00000000000000000000000000000000";
    binary::fail(
        home.owner(&["run", "start", absent]),
        4,
        &["resource.not_found"],
    );
    binary::fail(
        home.owner(&["run", "start", "nonsense"]),
        4,
        &["resource.not_found"],
    );
    binary::fail(
        home.operator(&["run", "start", &agent]),
        5,
        &["permission.role"],
    );
    binary::fail(home.owner(&["limits", "show"]), 5, &["permission.role"]);
    let unknown = ["agent", "create", "X", "--provider", "nobody"];
    binary::fail(home.owner(&unknown), 2, &["/provider", "bad, echo, sh"]);
    binary::fail(
        home.owner(&["run", "start", &agent, "--input", "{"]),
        2,
        &["--input is not JSON"],
    );
    let mut nobody = binary::command();
    nobody.args(["run", "list", "--server", &home.server.url]);
    binary::fail(nobody, 5, &["auth.missing", "--token-file"]);
    let mut wrong = binary::command();
    wrong.args(["run", "list", "--server", &home.server.url]);
    wrong.env("PURVEY_TOKEN", "pvy_wrong");
    binary::fail(wrong, 5, &["auth.invalid"]);
    let mut gone = binary::command();
    gone.args(["run", "list", "--server", "http://127.0.0.1:1"]);
    gone.args(["--timeout", "1s"])
        .env("PURVEY_TOKEN", "pvy_any");
    binary::fail(gone, 6, &["is the server running"]);
    let bad = home.agent("Bad", "bad", &[]);
    let failed = home
        .owner(&["run", "start", &bad, "--wait"])
        .output()
        .unwrap();
    assert_eq!(failed.status.code(), Some(8), "{}", binary::said(&failed));
    assert!(
        binary::said(&failed).contains("provider."),
        "{}",
        binary::said(&failed)
    );
}

#[test]
fn what_waits_says_why_and_a_cancel_ends_it_with_its_processes() {
    let home = home();
    let workspace = text(&home.json(&["workspace", "list"])["id"]);
    home.json(&[
        "workspace",
        "update",
        &workspace,
        "--concurrency-limit",
        "1",
    ]);
    let agent = home.agent("Slow", "sh", &[]);
    let first = text(&home.json(&["run", "start", &agent])["id"]);
    let second = home.json(&["run", "start", &agent]);
    assert_eq!(second["status"], "pending");
    assert!(second["queued_since"].is_string());
    assert_eq!(
        second["waiting_for"],
        json!({"reason": "concurrency", "position": 1})
    );
    binary::fail(home.owner(&["agent", "delete", &agent]), 9, &["unfinished"]);
    let second = text(&second["id"]);
    assert_eq!(
        home.json(&["run", "cancel", &second])["status"],
        "cancelled"
    );
    home.json(&["run", "cancel", &first]);
    let watched = home.owner(&["run", "watch", &first]).output().unwrap();
    assert_eq!(watched.status.code(), Some(8), "{}", binary::said(&watched));
    assert!(binary::said(&watched).contains("cancelled"));
    let after = home.json(&["workspace", "show", &workspace]);
    assert_eq!(
        (&after["running"], &after["queued"]),
        (&json!(0), &json!(0))
    );
}

#[test]
fn people_tokens_members_threads_and_triggers_have_their_commands() {
    let home = home();
    let workspace = home.json(&["workspace", "list"]);
    let organization = text(&workspace["organization_id"]);
    let workspace = text(&workspace["id"]);
    let create = [
        "user",
        "create",
        "Jo",
        "--organization",
        &organization,
        "--json",
    ];
    let user = text(&binary::json(&binary::succeed(home.operator(&create)))["id"]);
    home.json(&[
        "workspace",
        "add-member",
        &workspace,
        &user,
        "--role",
        "viewer",
    ]);
    let made = [
        "token",
        "create",
        &user,
        "--scope",
        "runs:read",
        "--scope",
        "runs:write",
    ];
    let made = binary::succeed(home.operator(&made));
    let secret = String::from_utf8(made.stdout).unwrap();
    let agent = home.agent("Echo", "echo", &[]);
    let mut start = binary::command();
    start.args(["run", "start", &agent, "--server", &home.server.url]);
    start.env("PURVEY_TOKEN", secret.trim());
    // A viewer reads and starts nothing.
    binary::fail(start, 5, &["permission.role"]);

    let thread = text(&home.json(&["thread", "open", &agent])["id"]);
    let answer = home.json(&["thread", "say", &thread, "--text", "hello", "--wait"]);
    assert_eq!(answer["status"], "succeeded");
    assert_eq!(
        home.json(&["thread", "turns", &thread])["state"],
        "answered"
    );
    home.json(&["thread", "pause", &thread]);
    binary::fail(
        home.owner(&["thread", "say", &thread, "--text", "x"]),
        9,
        &["state.conflict"],
    );
    assert_eq!(home.json(&["thread", "close", &thread])["state"], "closed");

    let hook = home.json(&["trigger", "webhook", &agent]);
    assert!(hook["token"].is_string());
    let schedule = [
        "trigger",
        "schedule",
        &agent,
        "--cron",
        "0 9 * * 1-5",
        "--time-zone",
        "Europe/Berlin",
    ];
    let schedule = home.json(&schedule);
    assert!(schedule["next_fire_at"].is_string());
    let wrong = ["trigger", "schedule", &agent, "--cron", "61 * * * *"];
    binary::fail(home.owner(&wrong), 2, &["/cron"]);
    let id = text(&schedule["id"]);
    assert_eq!(home.json(&["trigger", "disable", &id])["enabled"], false);
    binary::succeed(home.owner(&["trigger", "delete", &id]));
    binary::fail(
        home.owner(&["trigger", "show", &id]),
        4,
        &["resource.not_found"],
    );
}
