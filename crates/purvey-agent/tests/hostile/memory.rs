//! Memory, measured.

use super::transport_support::{ODP, Server, fetch, local, page, response};
use purvey_agent::Code;
use std::process::Command;

/// The most memory that this process has had, in KiB.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Run in a process of its own, since others' memory would be counted too. Bombs of 256 MiB in each coding, eight at a time.
#[tokio::test]
#[ignore = "run by bombs_take_little_memory"]
async fn bombs_in_a_row() {
    let mut bodies = Vec::new();
    for (coding, form) in [
        ("gzip", "gzip"),
        ("deflate", "deflate"),
        ("deflate", "raw"),
        ("br", "br"),
        ("zstd", "zstd"),
    ] {
        // Made of small pieces, so that making it takes no memory.
        let piece = vec![0; 1_048_576];
        bodies.push((coding, coded_again(form, &piece, 256)));
    }
    let server = Server::start(move |number, _| {
        let (coding, body) = &bodies[number % bodies.len()];
        response("200 OK", &[ODP, ("Content-Encoding", coding)], body)
    })
    .await;
    let transport = local().build().unwrap();
    let before = peak().expect("/proc");
    for _ in 0..5 {
        let fetches = (0..8).map(|_| fetch(&transport, page(server.url("/"))));
        for result in futures_util::future::join_all(fetches).await {
            assert_eq!(
                super::transport_support::code(&result),
                Code::ResponseLimitExceeded
            );
        }
    }
    let grown = peak().expect("/proc") - before;
    println!("{grown} KiB more");
    assert!(grown < 64 * 1_024, "{grown} KiB more");
}

/// `piece` so many times, coded as one stream.
fn coded_again(form: &str, piece: &[u8], times: usize) -> Vec<u8> {
    use std::io::Write;
    let fast = flate2::Compression::fast();
    macro_rules! all {
        ($encoder:expr) => {{
            let mut encoder = $encoder;
            for _ in 0..times {
                encoder.write_all(piece).unwrap();
            }
            encoder.finish().unwrap()
        }};
    }
    match form {
        "gzip" => all!(flate2::write::GzEncoder::new(Vec::new(), fast)),
        "deflate" => all!(flate2::write::ZlibEncoder::new(Vec::new(), fast)),
        "raw" => all!(flate2::write::DeflateEncoder::new(Vec::new(), fast)),
        "zstd" => all!(zstd::Encoder::new(Vec::new(), 1).unwrap()),
        _ => {
            let mut out = Vec::new();
            let mut encoder = brotli::CompressorWriter::new(&mut out, 4_096, 1, 22);
            for _ in 0..times {
                encoder.write_all(piece).unwrap();
            }
            drop(encoder);
            out
        }
    }
}

#[test]
fn bombs_take_little_memory() {
    if peak().is_none() {
        eprintln!("skipped: this system does not tell how much memory was used");
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "memory::bombs_in_a_row", "--ignored"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("1 passed"),
        "{told}"
    );
}
