//! How far a long traversal is, on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{io::IsTerminal, time::Duration};
use tokio::task::JoinHandle;

/// What is quicker than this needs no progress.
const PATIENCE: Duration = Duration::from_millis(500);

/// A line on standard error while something takes long; nothing when that is no terminal.
pub(super) struct Progress {
    bar: ProgressBar,
    begin: Option<JoinHandle<()>>,
}

impl Progress {
    /// To be called within the runtime.
    pub(super) fn start() -> Self {
        let bar = ProgressBar::hidden();
        let begin = std::io::stderr().is_terminal().then(|| {
            let bar = bar.clone();
            tokio::spawn(async move {
                tokio::time::sleep(PATIENCE).await;
                bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
                if let Ok(style) = ProgressStyle::with_template("{spinner}  {msg}{elapsed} gone") {
                    bar.set_style(style);
                }
                bar.enable_steady_tick(Duration::from_millis(250));
            })
        });
        Self { bar, begin }
    }

    /// So many items have come.
    pub(super) fn at(&self, items: usize) {
        let items = indicatif::HumanCount(u64::try_from(items).unwrap_or(u64::MAX));
        self.bar.set_message(format!("{items} so far, "));
    }

    /// Takes the line off the screen while something is written there.
    pub(super) fn aside<T>(&self, work: impl FnOnce() -> T) -> T {
        self.bar.suspend(work)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(begin) = &self.begin {
            begin.abort();
        }
        self.bar.finish_and_clear();
    }
}
