//! The least an axum handler can do: `bare FILE…` serves each file's bytes at `/0`, `/1`, … on a free port of 127.0.0.1 and says
//! which on standard output.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout)]

use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut router = Router::new();
    for (index, path) in std::env::args().skip(1).enumerate() {
        let bytes = Bytes::from(std::fs::read(path)?);
        router = router.route(
            &format!("/{index}"),
            get(move || {
                let bytes = bytes.clone();
                async move { ([(CONTENT_TYPE, "application/odp+json")], bytes) }
            }),
        );
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    axum::serve(listener, router).await?;
    Ok(())
}
