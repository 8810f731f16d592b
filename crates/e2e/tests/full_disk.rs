//! A disk that is full: uploads fail and say so, nothing that is there suffers, and the room of what failed is free again.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failure in a test's helper is the test's failure"
)]

use e2e::{
    binary,
    server::{self, Server},
};
use reqwest::blocking::Client as Http;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{path::Path, process::Command};
use tempfile::TempDir;

/// A server whose artifacts are on a file system of 4 MiB that only it sees; none where there can be none, which in CI is a failure.
fn on_a_small_disk(data: &Path, small: &Path) -> Option<Server> {
    const MOUNT: &str = "mount -t tmpfs -o size=4m tmpfs \"$0\" || exit 77; exec \"$@\"";
    let mut probe = Command::new("unshare");
    probe
        .args(["-rm", "sh", "-c", MOUNT])
        .arg(small)
        .arg("true");
    if !probe.status().is_ok_and(|status| status.success()) {
        assert!(
            std::env::var_os("CI").is_none_or(|ci| ci != "true"),
            "no file system can be mounted"
        );
        eprintln!("skipped: no file system can be mounted");
        return None;
    }
    let serve = server::serve(data);
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", MOUNT]).arg(small);
    command.arg(serve.get_program()).args(serve.get_args());
    command.arg("--objects").arg(small);
    for (name, value) in serve.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Some(Server::run(command).unwrap())
}

struct Caller<'a> {
    http: Http,
    url: &'a str,
    token: String,
    workspace: String,
}

impl Caller<'_> {
    fn upload(&self, key: &str, bytes: &[u8]) -> (u16, Value) {
        let digest = Sha256::digest(bytes);
        let sha256: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let answer = self
            .http
            .post(format!(
                "{}/v1/workspaces/{}/artifacts",
                self.url, self.workspace
            ))
            .bearer_auth(&self.token)
            .header("content-type", "application/octet-stream")
            .header("idempotency-key", key)
            .header("x-upload-size", bytes.len())
            .header("x-content-sha256", sha256)
            .header("x-filename", "f")
            .body(bytes.to_vec())
            .send()
            .unwrap();
        let status = answer.status().as_u16();
        (
            status,
            serde_json::from_slice(&answer.bytes().unwrap()).unwrap(),
        )
    }

    fn get(&self, path: &str) -> Vec<u8> {
        let request = self.http.get(format!("{}{path}", self.url));
        let answer = request.bearer_auth(&self.token).send().unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        answer.bytes().unwrap().to_vec()
    }
}

#[test]
fn uploads_to_a_full_disk_fail_and_leave_nothing() {
    let home = TempDir::new().unwrap();
    let (data, small) = (home.path().join("data"), home.path().join("small"));
    std::fs::create_dir(&small).unwrap();
    let _ = binary::purvey();
    let Some(server) = on_a_small_disk(&data, &small) else {
        return;
    };
    let token = std::fs::read_to_string(data.join("owner-token")).unwrap();
    let mut caller = Caller {
        http: Http::new(),
        url: &server.url,
        token: token.trim().to_owned(),
        workspace: String::new(),
    };
    let listed: Value = serde_json::from_slice(&caller.get("/v1/workspaces")).unwrap();
    caller.workspace = listed["items"][0]["id"].as_str().unwrap().to_owned();
    let (first, second) = (vec![1; 1_500_000], vec![2; 1_500_000]);
    let (status, kept) = caller.upload("first", &first);
    assert_eq!((status, &kept["status"]), (201, &Value::from("ready")));
    for round in 0..3 {
        let (status, failed) = caller.upload(&format!("large-{round}"), &vec![3; 6_000_000]);
        assert_eq!(
            (status, &failed["code"]),
            (500, &Value::from("server.error"))
        );
        let again = caller.upload(&format!("large-{round}"), &vec![3; 6_000_000]);
        assert_eq!(
            (again.0, &again.1["code"]),
            (409, &Value::from("artifact.upload_failed"))
        );
    }
    // All the room is there that the one which was kept does not take.
    let (status, _) = caller.upload("second", &second);
    assert_eq!(status, 201);
    let content = format!("/v1/artifacts/{}/content", kept["id"].as_str().unwrap());
    assert!(caller.get(&content) == first, "other bytes");
    let path = format!(
        "/v1/workspaces/{}/artifacts?status=failed",
        caller.workspace
    );
    let failed: Value = serde_json::from_slice(&caller.get(&path)).unwrap();
    assert_eq!(failed["items"].as_array().unwrap().len(), 3);
    assert!(
        server.said().contains("No space left on device"),
        "{}",
        server.said()
    );
}
