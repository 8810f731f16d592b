//! Commands that wait for other programs, and end when the user interrupts them.

use crate::{failure::Failure, serve::stop_signal};
use std::process::ExitCode;

/// The exit code of what was interrupted: 128 and the number of SIGINT, as shells have it.
const INTERRUPTED: u8 = 130;

/// Does `command` on threads of its own; interrupted, it ends there with `message`.
pub(crate) fn interruptible(
    message: &str,
    command: impl Future<Output = Result<ExitCode, Failure>>,
) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format_args!("cannot start threads: {error}")))?;
    let done = runtime.block_on(async {
        let stop = stop_signal()?;
        tokio::select! {
            biased;
            () = stop => Err(Failure::new(message).exit_code(INTERRUPTED)),
            done = command => done,
        }
    });
    // A question on the terminal that nobody answers any more is not waited for.
    runtime.shutdown_background();
    done
}
