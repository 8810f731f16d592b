//! The official SDK's side of `agent-bench`, its allocations counted.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "what was counted")]

use interop::agents::{Allocated, official::Official, run};

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    println!("{}", run::<Official>(&arguments, Some(count))?);
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
