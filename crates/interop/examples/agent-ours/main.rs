//! Our Agent's side of `agent-bench`, timed.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "what was measured")]

mod ours;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    println!("{}", interop::agents::run::<ours::Ours>(&arguments, None)?);
    Ok(())
}
