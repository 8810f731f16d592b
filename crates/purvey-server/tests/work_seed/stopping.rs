//! What waits ends when the server stops.

use crate::stage::{Stage, config};
use purvey_server::Server;
use serde_json::json;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
};

on_each_store! {
    long_polls_and_event_streams_end_when_the_server_stops,
}

/// Less than a long poll would wait: who is still waiting then was not told.
const HANGS: Duration = Duration::from_secs(50);

async fn long_polls_and_event_streams_end_when_the_server_stops(stage: Stage) {
    let agent = stage.agent(json!({ "provider": "gate" })).await;
    let run = stage.run(&stage.owner, &agent).await;
    let id = run["id"].as_str().unwrap();
    let mut patient = config();
    patient.shutdown_deadline = Duration::from_secs(600);
    patient.max_in_flight = 2;
    let server = Server::bind(patient, stage.surfaces()).await.unwrap();
    let address = server.addr();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async { drop(stopped.await) }));

    let ask = async |path: String| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let token = &stage.owner.token;
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    };
    let long = format!("/v1/runs/{id}?wait=60");
    let mut poll = ask(long.clone()).await;
    let mut events = ask(format!("/v1/runs/{id}/events")).await;
    let mut begun = vec![0; 16 * 1_024];
    let read = events.read(&mut begun).await.unwrap();
    assert!(String::from_utf8_lossy(&begun[..read]).starts_with("HTTP/1.1 200 "));
    // Both are being answered once there is no room for a third.
    stage
        .until("the server is full", async || {
            let mut third = ask("/v1/tokens".to_owned()).await;
            let mut status = [0; 12];
            third.read_exact(&mut status).await.unwrap();
            // An earlier third may have had the place that the poll came for.
            if poll.try_read(&mut [0]).is_ok() {
                poll = ask(long.clone()).await;
            }
            status == *b"HTTP/1.1 503"
        })
        .await;

    stop.send(()).unwrap();
    tokio::time::timeout(HANGS, running).await.unwrap().unwrap();
    let mut answer = String::new();
    poll.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("\"status\":\"running\""), "{answer}");
    let mut rest = Vec::new();
    events.read_to_end(&mut rest).await.unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "the stream ends whole");
    stage.stop_working().await;
}
