//! The peers on the same server: their own clients in Node.js, one process each, put jobs in and work on them.

use crate::{
    CALLERS, Outcome,
    parts::{self, Bench},
    percentiles, place,
    stage::Rules,
};
use serde_json::Value;
use std::{
    path::Path,
    process::{Command, Stdio},
};
use tokio::runtime::Runtime;

const PEERS: [(&str, &str); 2] = [("graphile", "graphile-worker"), ("boss", "pg-boss")];

/// The scripts as they are kept.
const SCRIPTS: [(&str, &str); 5] = [
    ("package.json", include_str!("../peers/package.json")),
    (
        "package-lock.json",
        include_str!("../peers/package-lock.json"),
    ),
    ("peer.mjs", include_str!("../peers/peer.mjs")),
    ("boss.mjs", include_str!("../peers/boss.mjs")),
    ("graphile.mjs", include_str!("../peers/graphile.mjs")),
];

/// What a peer did; rates in jobs per second.
struct Did {
    put: f64,
    worked: f64,
    idle: Vec<f64>,
}

pub(crate) fn run(bench: &Bench, runtime: &Runtime) -> Outcome<()> {
    let (Some(directory), Some(server)) = (&bench.peers, bench.postgres.as_deref()) else {
        return Ok(());
    };
    install(directory)?;
    println!(
        "\n| on PostgreSQL | purvey | {} | {} | purvey ÷ {0} | purvey ÷ {1} |\n|{}",
        PEERS[0].1,
        PEERS[1].1,
        "---|".repeat(6)
    );
    let mut rows = Vec::new();
    for queues in [1, 100] {
        // Their workers are measured where the queue is one.
        let runs = if queues == 1 { bench.runs() } else { 0 };
        let ours = runtime.block_on(async {
            let stage = bench.stage(Some(server), queues, Rules::PLAIN).await?;
            let put = stage.starts(CALLERS, bench.time).await?.rate;
            let mut worked = 0.0;
            if runs > 0 {
                worked = stage.work(runs).await?;
            }
            stage.check(runs, 0)?;
            let mut idle = Vec::new();
            if runs > 0 {
                idle = parts::noticed(bench, Some(server)).await?.1;
            }
            Outcome::Ok(Did { put, worked, idle })
        })?;
        let theirs = PEERS.map(|(peer, _)| measure(bench, directory, server, peer, queues, runs));
        let [graphile, boss] = theirs;
        let all = [ours, graphile?, boss?];
        let rate = |name: String, of: fn(&Did) -> f64| {
            let [a, b, c] = all.each_ref().map(of);
            format!(
                "| {name} | {a:.0} | {b:.0} | {c:.0} | **{:.1}** | **{:.1}** |",
                a / b,
                a / c
            )
        };
        let (noun, what) = match queues {
            1 => ("workspace or queue", "1"),
            _ => ("workspaces or queues", "100"),
        };
        rows.push(rate(
            format!("starts/s, one call each, {what} {noun}"),
            |did| did.put,
        ));
        if runs > 0 {
            rows.push(rate("done/s by workers".into(), |did| did.worked));
            let [a, b, c] = all.map(|did| {
                let (p50, p99) = percentiles(did.idle);
                format!("{p50:.2} / {p99:.2}")
            });
            rows.push(format!(
                "| idle, start to running, p50 / p99 ms | {a} | {b} | {c} | | |"
            ));
        }
    }
    rows.iter().for_each(|row| println!("{row}"));
    Ok(())
}

fn install(directory: &Path) -> Outcome<()> {
    std::fs::create_dir_all(directory)?;
    for (name, text) in SCRIPTS {
        std::fs::write(directory.join(name), text)?;
    }
    eprintln!("installing the peers in {}", directory.display());
    let status = Command::new("npm")
        .args(["ci", "--no-audit", "--no-fund"])
        .current_dir(directory)
        .stdout(Stdio::null())
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("npm ci: {status}").into()),
    }
}

fn measure(
    bench: &Bench,
    directory: &Path,
    server: &str,
    peer: &str,
    queues: usize,
    runs: u64,
) -> Outcome<Did> {
    let schema = format!("work_bench_{}_{peer}", std::process::id());
    let millis = bench.time.as_millis();
    let output = Command::new(directory.join("node_modules/.bin/node"))
        .args(["peer.mjs", peer, server, &schema])
        .args([queues, CALLERS].map(|n| n.to_string()))
        .args([
            millis.to_string(),
            runs.to_string(),
            bench.singles().to_string(),
        ])
        .current_dir(directory)
        .stderr(Stdio::inherit())
        .output()?;
    let said: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{peer} ended with {}: {error}", output.status))?;
    let number = |name: &str| said.get(name).and_then(Value::as_f64);
    let dropped = place::on(server, |client| {
        Ok(client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE"))?)
    });
    dropped?;
    // Its handlers must have been given every job that it had taken.
    if runs > 0 && number("done") != number("put") {
        return Err(format!(
            "{peer} took {:?} jobs and did {:?}",
            number("put"),
            number("done")
        )
        .into());
    }
    let idle = said.get("idle").and_then(Value::as_array);
    Ok(Did {
        put: number("rate").ok_or("no rate")?,
        worked: number("work").unwrap_or_default(),
        idle: idle
            .into_iter()
            .flatten()
            .filter_map(Value::as_f64)
            .collect(),
    })
}
