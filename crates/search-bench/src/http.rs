//! A load of searches over HTTP: `search-bench --http ADDRESS CONNECTIONS SECONDS`. Every connection asks for the most that one request may ask of a generated
//! catalog, one after the other; what found no room must say when to come back.

use crate::{Outcome, generated, millis, percentiles};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How often what happened, and how long answers took.
#[derive(Default)]
struct Seen {
    answered: Vec<Duration>,
    refused: Vec<Duration>,
}

pub(crate) fn run(address: &str, connections: usize, seconds: u64) -> Outcome<()> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let workers: Vec<_> = (0..connections)
        .map(|worker| {
            let address = address.to_owned();
            std::thread::spawn(move || work(&address, worker, end))
        })
        .collect();
    let mut all = Seen::default();
    for worker in workers {
        let seen = worker.join().map_err(|_| "a connection broke")??;
        all.answered.extend(seen.answered);
        all.refused.extend(seen.refused);
    }
    let (answered, refused) = (all.answered.len(), all.refused.len());
    let (p50, p99) = percentiles(all.answered);
    let (none50, none99) = percentiles(all.refused);
    println!(
        "| connections | answered/s | p50 / p99 ms | 503/s | p50 / p99 ms |\n|---|---|---|---|---|"
    );
    println!(
        "| {connections} | {:.1} | {:.0} / {:.0} | {:.1} | {:.1} / {:.1} |",
        answered as f64 / seconds as f64,
        millis(p50),
        millis(p99),
        refused as f64 / seconds as f64,
        millis(none50),
        millis(none99)
    );
    Ok(())
}

fn work(address: &str, worker: usize, end: Instant) -> Outcome<Seen> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut seen = Seen::default();
    let mut n = worker;
    while Instant::now() < end {
        n += 1;
        let body = generated::worst(n).to_string();
        let begin = Instant::now();
        write!(
            stream,
            "POST /odp/offerings/search HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/odp+json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let (status, retry_after) = answer(&mut reader)?;
        match (status, retry_after) {
            (200, _) => seen.answered.push(begin.elapsed()),
            (503, Some(seconds)) => {
                seen.refused.push(begin.elapsed());
                std::thread::sleep(Duration::from_secs(seconds));
            }
            other => return Err(format!("answered with {other:?}").into()),
        }
    }
    Ok(seen)
}

/// Status and `Retry-After`.
fn answer(reader: &mut impl BufRead) -> Outcome<(u16, Option<u64>)> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|text| text.parse().ok());
    let (mut length, mut retry_after) = (0, None);
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse()?,
            "retry-after" => retry_after = value.trim().parse().ok(),
            _ => {}
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    Ok((status.ok_or("no status")?, retry_after))
}
