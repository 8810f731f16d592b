//! The official SDK's side of `agent-bench`, timed.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "what was measured")]

use interop::agents::{official::Official, run};

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    println!("{}", run::<Official>(&arguments, None)?);
    Ok(())
}
