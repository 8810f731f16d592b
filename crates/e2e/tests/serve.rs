//! `purvey serve` as a process: how it starts, what it says when it cannot, how it stops.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test's helper is the test's failure"
)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use e2e::binary::{self, command, fail};
use e2e::client::Client;
use e2e::sample;
use e2e::server::{ADMIN_TOKEN, Server, serve};
use serde_json::json;
use tempfile::TempDir;

#[test]
fn wrong_settings_are_refused_with_2_and_a_way_out() {
    let home = TempDir::new().unwrap();
    let with = |arguments: &[&str]| {
        let mut command = command();
        command
            .current_dir(home.path())
            .arg("serve")
            .args(arguments);
        command
    };
    fail(with(&[]), 2, &["no data directory", "--data"]);
    fail(
        with(&["--data", "d", "--listen", "nowhere"]),
        2,
        &["nowhere", "--listen"],
    );
    fail(
        with(&["--data", "d", "--header-timeout", "10"]),
        2,
        &["--header-timeout", "10s"],
    );
    fail(
        with(&["--data", "d", "--tls-cert", "c.pem"]),
        2,
        &["--tls-key"],
    );
    fail(
        with(&["--data", "d", "--admin-token-file", "t"]),
        2,
        &["--admin-token-file t"],
    );
    fail(with(&["--data", "d", "--config", "c.toml"]), 2, &["c.toml"]);
    fail(
        with(&["--data", "d", "--manifest", "m.toml"]),
        2,
        &["m.toml"],
    );
    fail(with(&["--data", "d", "--log", "inof"]), 2, &["--log"]);
    fs::write(home.path().join("c.toml"), "lissten = \"127.0.0.1:0\"\n").unwrap();
    fail(
        with(&["--data", "d", "--config", "c.toml"]),
        2,
        &["c.toml", "lissten"],
    );
    fs::write(home.path().join("m.toml"), "[service]\nname = \"N\"\n").unwrap();
    fail(
        with(&["--data", "d", "--manifest", "m.toml"]),
        2,
        &["m.toml", "language"],
    );
    fail(with(&["--demo", "--manifest", "m.toml"]), 2, &["m.toml"]);
    let mut short = with(&["--data", "d"]);
    short.env("PURVEY_ADMIN_TOKEN", "hush");
    let output = short.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = binary::said(&output);
    assert!(
        said.contains("PURVEY_ADMIN_TOKEN") && !said.contains("hush"),
        "{said}"
    );
    assert!(
        !home.path().join("d").exists(),
        "wrong settings leave nothing behind"
    );
}

#[test]
fn a_port_in_use_is_named_and_nothing_is_harmed() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let home = TempDir::new().unwrap();
    let mut command = command();
    command
        .args(["serve", "--listen", &address, "--data"])
        .arg(home.path().join("data"));
    fail(command, 1, &[&address, "in use", "--listen"]);
    drop(Server::start(&home.path().join("data")));
}

#[test]
fn an_empty_directory_serves_a_valid_empty_service() {
    let home = TempDir::new().unwrap();
    let server = Server::start(&home.path().join("data"));
    let client = Client::new(&server.url);
    let document = client.get("/.well-known/odp").expect_status(200).json();
    assert_eq!(document["odp_version"], "1.0");
    assert_eq!(document["http"]["endpoint_base"], "/odp");
    for path in ["/odp/offerings", "/odp/collections"] {
        let page = client.get(path).expect_status(200).json();
        assert_eq!(page, json!({"odp_version": "1.0", "items": []}), "{path}");
    }
    client.get("/odp/offerings/x").expect_status(404);
    for path in ["/livez", "/readyz"] {
        client.get(path).expect_status(200);
    }
    // It is a catalog like any other: what is written is served.
    let offering = json!({"id": "x", "name": "X"});
    let target = "/v1/catalog/offerings/x?wait=published";
    client.put(target, &offering).unwrap().expect_status(201);
    let found = client.get("/odp/offerings/x").expect_status(200).json();
    assert_eq!(found, json!({"odp_version": "1.0", "id": "x", "name": "X"}));
    assert_eq!(server.terminate().code(), Some(0));
}

#[test]
fn configuration_comes_from_file_variables_and_flags_in_that_order() {
    let home = TempDir::new().unwrap();
    let manifest = sample::manifest(home.path());
    fs::write(
        home.path().join("purvey.toml"),
        "data = \"from-file\"\nlisten = \"127.0.0.1:1\"\nmanifest = \"catalog.toml\"\n",
    )
    .unwrap();
    assert!(manifest.ends_with("catalog.toml"));
    let mut command = command();
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("PURVEY_CONFIG", home.path().join("purvey.toml"))
        .env("PURVEY_DATA", home.path().join("from-variable"));
    let server = Server::run(command).unwrap_or_else(|said| panic!("{said}"));
    let document = Client::new(&server.url).get("/.well-known/odp").json();
    assert_eq!(document["name"], "A small shelf");
    assert!(home.path().join("from-variable").is_dir());
    assert!(!home.path().join("from-file").exists());
}

#[test]
fn the_demo_leaves_no_directory_and_its_data_can_be_kept() {
    let home = TempDir::new().unwrap();
    let mut command = command();
    command
        .args(["serve", "--demo", "--listen", "127.0.0.1:0"])
        .env("TMPDIR", home.path());
    let server = Server::run(command).unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(
        fs::read_dir(home.path()).unwrap().count(),
        1,
        "one temporary directory"
    );
    assert_eq!(server.terminate().code(), Some(0));
    assert_eq!(
        fs::read_dir(home.path()).unwrap().count(),
        0,
        "it goes away at the end"
    );

    // With a directory the demo is a catalog like any other; the same command serves it again as it is by then.
    let data = home.path().join("data");
    let demo = || {
        let mut command = serve(&data);
        command.arg("--demo");
        Server::run(command).unwrap_or_else(|said| panic!("{said}"))
    };
    let server = demo();
    let client = Client::new(&server.url);
    let target = "/v1/catalog/offerings/course-bag-leather?wait=published";
    client.delete(target).unwrap().expect_status(200);
    assert_eq!(server.terminate().code(), Some(0));
    let server = demo();
    let client = Client::new(&server.url);
    client
        .get(&client.operation("/offerings/course-bag-leather"))
        .expect_status(404);
    assert_eq!(
        client
            .items(&client.operation("/offerings?limit=100"))
            .len(),
        286
    );
}

/// A request whose body has arrived in part when SIGTERM comes is answered in full; then the process ends with 0.
#[test]
fn sigterm_drains_a_request_in_progress_and_exits_0() {
    let home = TempDir::new().unwrap();
    let (data, manifest) = (home.path().join("data"), sample::manifest(home.path()));
    binary::succeed(binary::import(&data, &manifest, &[]));
    let server = Server::start(&data);
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    let lines: Vec<String> = (0..4)
        .map(|n| format!("{}\n", sample::offering(&format!("o{n}"), n)))
        .collect();
    let length: usize = lines.iter().map(String::len).sum();
    let mut stream = TcpStream::connect(&address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    write!(
        stream,
        "POST /v1/catalog/records?kind=offering HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {ADMIN_TOKEN}\r\n\
         content-type: application/x-ndjson\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{}{}",
        lines[0], lines[1]
    )
    .unwrap();
    // The answer begins at once, so the request is in progress.
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, b"HTTP/1.1 200");
    server.ask_to_stop();
    // No new caller is taken on, or it is told that the server is not ready.
    let refused = |address: &str| {
        let Ok(mut probe) = TcpStream::connect(address) else {
            return true;
        };
        probe
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        let mut said = String::new();
        let asked = write!(
            probe,
            "GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        );
        asked.is_err()
            || probe.read_to_string(&mut said).is_err()
            || !said.starts_with("HTTP/1.1 200")
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    while !refused(&address) {
        assert!(Instant::now() < deadline, "still ready");
        std::thread::sleep(Duration::from_millis(20));
    }
    stream.write_all(lines[2].as_bytes()).unwrap();
    stream.write_all(lines[3].as_bytes()).unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(
        rest.contains("\"accepted\":4") && rest.contains("\"done\":true"),
        "{rest}"
    );
    assert_eq!(server.wait().code(), Some(0));

    let server = Server::start(&data);
    let client = Client::new(&server.url);
    e2e::verify::publish_all(&client);
    assert_eq!(client.items("/odp/offerings").len(), 4);
}

/// Somebody who holds a connection open and sends nothing does not keep the server from stopping.
#[test]
fn idle_connections_do_not_hold_up_the_end() {
    let home = TempDir::new().unwrap();
    let server = Server::start(&home.path().join("data"));
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    let silent = TcpStream::connect(&address).unwrap();
    let client = Client::new(&server.url);
    client.get("/livez").expect_status(200);
    let began = Instant::now();
    assert_eq!(server.terminate().code(), Some(0));
    // The default deadline is 30 s; a connection without a request is no reason to wait for it.
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "{:?}",
        began.elapsed()
    );
    drop(silent);
}

#[test]
fn the_log_names_requests_and_keeps_secrets() {
    let home = TempDir::new().unwrap();
    let mut command = serve(&home.path().join("data"));
    command.args(["--log", "debug", "--log-format", "json"]);
    let server = Server::run(command).unwrap_or_else(|said| panic!("{said}"));
    let client = Client::new(&server.url);
    let answer = client.ask(
        "GET",
        "/odp/offerings",
        &[("x-request-id", "a-caller-s-own-id")],
    );
    let id = answer.header("x-request-id").unwrap().to_owned();
    client
        .put("/v1/catalog/offerings/x", &json!({"id": "x", "name": "X"}))
        .unwrap()
        .expect_status(201);
    let wrong = [(
        "authorization",
        "Bearer a-guess-at-the-operator-s-token-000",
    )];
    assert_eq!(
        client
            .ask("DELETE", "/v1/catalog/offerings/x", &wrong)
            .status,
        401
    );
    std::thread::sleep(Duration::from_millis(200));
    let said = server.said();
    assert!(said.contains(&id), "{said}");
    assert!(
        !said.contains(ADMIN_TOKEN),
        "the operator's token is in the log"
    );
    assert!(
        !said.contains("a-guess-at"),
        "a caller's token is in the log"
    );
    for line in said
        .lines()
        .filter(|line| !line.starts_with("listening on "))
    {
        let line: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(line["level"].is_string(), "{line}");
    }
}

/// Sends these bytes on a connection of their own and gives what comes back until it closes, or for two seconds.
fn raw(address: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    // A server that refuses early may close before it has read everything.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn what_is_no_http_gets_a_status_and_not_silence() {
    let home = TempDir::new().unwrap();
    let server = Server::start(&home.path().join("data"));
    let address = server.url.strip_prefix("http://").unwrap();
    let answer = raw(address, b"what is this?\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer:?}");
    let header = format!(
        "GET / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n",
        "y".repeat(66_000)
    );
    let answer = raw(address, header.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer:?}");
    Client::new(&server.url).get("/livez").expect_status(200);
}

#[test]
fn half_of_a_second_request_does_not_hold_up_the_answer_to_the_first() {
    let home = TempDir::new().unwrap();
    let server = Server::start(&home.path().join("data"));
    let address = server.url.strip_prefix("http://").unwrap();
    let answer = raw(address, b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\nGET /rea");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer:?}");
}

/// A first start that was ended anywhere is made up for by the next one.
#[test]
fn an_interrupted_first_start_of_the_demo_is_mended() {
    let home = TempDir::new().unwrap();
    for wait in [0, 20, 60, 120, 250] {
        let data = home.path().join(format!("after-{wait}"));
        let mut command = serve(&data);
        command.arg("--demo").stderr(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        mended(&data);
    }
    // A server without the demo was here first, and nobody wrote anything.
    let data = home.path().join("empty");
    drop(Server::start(&data));
    mended(&data);
}

fn mended(data: &std::path::Path) {
    let mut command = serve(data);
    command.arg("--demo");
    let server = Server::run(command).unwrap_or_else(|said| panic!("{said}"));
    let client = Client::new(&server.url);
    let items = client.items(&client.operation("/offerings?limit=100"));
    assert_eq!(items.len(), 287);
}

/// A running server seals with the new key within a second, and what it handed out before goes on.
#[test]
fn a_running_server_notices_a_rotation_of_keys() {
    let home = TempDir::new().unwrap();
    let (data, manifest) = (home.path().join("data"), sample::manifest(home.path()));
    let records = home.path().join("records.ndjson");
    sample::records(
        &records,
        (0..9).map(|n| sample::offering(&format!("o-{n}"), n)),
    );
    binary::succeed(binary::import(&data, &manifest, &[&records]));
    let server = Server::start(&data);
    let client = Client::new(&server.url);
    let next = || {
        let page = client
            .get("/odp/offerings?limit=4")
            .expect_status(200)
            .json();
        page["next"].as_str().unwrap().to_owned()
    };
    let before = next();
    let mut rotate = command();
    rotate
        .args(["catalog", "keys", "rotate", "--json", "--data"])
        .arg(&data);
    assert_eq!(binary::json(&binary::succeed(rotate)), json!({"keys": 2}));
    let deadline = Instant::now() + Duration::from_secs(10);
    while next() == before {
        assert!(Instant::now() < deadline, "the old key still seals");
        std::thread::sleep(Duration::from_millis(20));
    }
    for target in [before, next()] {
        let page = client.get(&target).expect_status(200).json();
        assert_eq!(page["items"][0]["id"], "o-4");
    }
}
