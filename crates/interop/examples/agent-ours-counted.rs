//! Our Agent's side of `agent-bench`, its allocations counted.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "what was counted")]

#[path = "agent-ours/ours.rs"]
mod ours;

use interop::agents::{Allocated, run};

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    println!("{}", run::<ours::Ours>(&arguments, Some(count))?);
    Ok(())
}

fn count(work: &mut dyn FnMut()) -> Allocated {
    let counted = allocation_counter::measure(work);
    Allocated {
        count: counted.count_total,
        bytes: counted.bytes_total,
        peak: counted.bytes_max,
    }
}
