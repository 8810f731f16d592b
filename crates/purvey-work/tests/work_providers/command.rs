//! Programs as providers.

use crate::server::request;
use purvey_work::provider::{CallError, Command, Content, Provider, Reply, Retry};
use serde_json::json;
use std::{path::PathBuf, time::Duration};

fn shell(script: &str) -> Command {
    Command {
        files: None,
        program: PathBuf::from("/bin/sh"),
        arguments: vec!["-c".into(), script.into()],
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
    }
}

async fn run(script: &str) -> Result<Reply, CallError> {
    shell(script).call(&request()).await
}

async fn failed(script: &str) -> String {
    match run(script).await {
        Err(CallError::Failed {
            detail,
            retry: Retry::Never,
            charged: false,
        }) => detail,
        other => panic!("{other:?}"),
    }
}

/// Whether no process of this number is left but one that waits to be let go.
fn gone(pid: &str) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat
            .rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('Z')),
        Err(_) => true,
    }
}

async fn until(mut fulfilled: impl FnMut() -> bool) {
    while !fulfilled() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn it_is_given_json_and_gives_json() {
    let reply = run("cat").await.unwrap();
    let expected = json!({"input": "the caller's private words", "instructions": "Be brief.", "model": "small-model"});
    assert_eq!(reply.content, Content::Json(expected));
    let reply = run("echo '[1, 2.50, null]'").await.unwrap();
    assert_eq!(
        serde_json::to_string(&reply.content).unwrap(),
        "{\"json\":[1,2.50,null]}"
    );
}

#[tokio::test]
async fn its_environment_is_what_was_named() {
    let mut command = shell("printf '\"'; /usr/bin/env | tr '\\n' ' '; printf '\"'");
    command.environment = vec![("GREETING".into(), "hello".into())];
    let reply = command.call(&request()).await.unwrap();
    let Content::Json(serde_json::Value::String(variables)) = reply.content else {
        panic!("{:?}", reply.content);
    };
    let mut names: Vec<_> = variables
        .split_whitespace()
        .filter_map(|word| word.split('=').next())
        .collect();
    names.sort_unstable();
    // The shell itself adds some.
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    assert_eq!(names, ["GREETING"]);
}

#[tokio::test]
async fn failures_tell_the_code_and_the_end_of_standard_error() {
    assert_eq!(
        failed("exit 3").await,
        "The command ended with exit code 3."
    );
    let detail = failed("echo 'no such \u{1b}[31mlamp' >&2; exit 1").await;
    assert_eq!(
        detail,
        "The command ended with exit code 1. It said: no such \\u{1b}[31mlamp"
    );
    assert_eq!(
        failed("kill -9 $$").await,
        "The command was ended by signal 9."
    );
    let long = failed("yes x | head -c 100000 >&2; echo end >&2; exit 1").await;
    assert!(
        long.len() < 2_200 && long.ends_with("\nend"),
        "{}",
        long.len()
    );
}

#[tokio::test]
async fn exit_code_75_asks_for_another_attempt() {
    let error = run("exit 75").await.unwrap_err();
    let expected = CallError::Failed {
        detail: "The command ended with exit code 75.".into(),
        retry: Retry::Backoff,
        charged: false,
    };
    assert_eq!(error, expected);
}

#[tokio::test]
async fn what_is_not_one_json_value_is_a_failure() {
    let detail = failed("echo '{\"a\": '; echo wrong >&2").await;
    assert_eq!(
        detail,
        "The command's output is not one JSON value: at line 2 column 0. It said: wrong"
    );
    let detail = failed("echo 1 2").await;
    assert_eq!(
        detail,
        "The command's output is not one JSON value: at line 1 column 3."
    );
    assert!(
        failed("true")
            .await
            .starts_with("The command's output is not one JSON value")
    );
}

#[tokio::test]
async fn too_much_output_ends_it() {
    let detail = failed("yes").await;
    assert_eq!(
        detail,
        "The command's output has more than 1048576 bytes, or cannot be read."
    );
}

#[tokio::test]
async fn a_program_that_is_not_there_is_a_failure() {
    let mut command = shell("");
    command.program = PathBuf::from("/no/such/program");
    let error = command.call(&request()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "The command cannot be started: entity not found."
    );
}

#[tokio::test]
async fn a_program_need_not_read_its_input() {
    let mut large = request();
    large.instructions = "x".repeat(1_000_000);
    let reply = shell("echo true").call(&large).await.unwrap();
    assert_eq!(reply.content, Content::Json(json!(true)));
}

#[tokio::test]
async fn what_it_leaves_behind_ends_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    // The child holds standard output open: only its end ends the reading.
    let script = format!("sleep 600 & echo $! > {}; echo 7", file.display());
    let reply = run(&script).await.unwrap();
    assert_eq!(reply.content, Content::Json(json!(7)));
    let pid = std::fs::read_to_string(&file).unwrap();
    until(|| gone(pid.trim())).await;
}

#[tokio::test]
async fn giving_up_the_call_kills_it_with_its_children() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let script = format!(
        "sleep 600 & one=$!; sleep 600 & echo $$ $one $! > {0}.new; mv {0}.new {0}; wait",
        file.display()
    );
    let command = shell(&script);
    let request = request();
    let call = command.call(&request);
    tokio::select! {
        ended = call => panic!("{ended:?}"),
        () = until(|| file.exists()) => {}
    }
    let pids = std::fs::read_to_string(&file).unwrap();
    let pids: Vec<_> = pids.split_whitespace().collect();
    assert_eq!(pids.len(), 3, "{pids:?}");
    until(|| pids.iter().all(|pid| gone(pid))).await;
}
