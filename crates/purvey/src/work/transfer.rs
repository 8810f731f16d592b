//! Bars of files that come and go: how far, how fast, how long it still takes.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use purvey_client::Progress;
use std::{
    io::IsTerminal,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

/// What is quicker than this needs no bar.
const PATIENCE: Duration = Duration::from_millis(500);
const TEMPLATE: &str = "{prefix:20!}  {msg:9}  {wide_bar}  {bytes:>11} of {total_bytes:>11}  {bytes_per_sec:>12}  {eta:>4} left";

/// Bars on standard error, one below the other; nothing when that is no terminal.
pub(super) struct Bars(MultiProgress);

/// The bar of one file, gone with this.
pub(super) struct Bar {
    bar: ProgressBar,
    shown: bool,
}

impl Bars {
    pub(super) fn new() -> Self {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(8));
        if !std::io::stderr().is_terminal() {
            bars.set_draw_target(ProgressDrawTarget::hidden());
        }
        Self(bars)
    }

    /// For a file that is there.
    pub(super) fn file(&self, path: &Path) -> Bar {
        let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        self.sized(path, size)
    }

    /// For a file of so many bytes.
    pub(super) fn sized(&self, path: &Path, size: u64) -> Bar {
        let bar = ProgressBar::new(size);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        let name = path.file_name().unwrap_or(path.as_os_str());
        bar.set_prefix(crate::text::line(&name.to_string_lossy()));
        let shown = std::io::stderr().is_terminal();
        let bar = if shown { self.0.add(bar) } else { bar };
        Bar { bar, shown }
    }

    /// Takes the bars off the screen while something is written there.
    pub(super) fn aside<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.suspend(work)
    }
}

impl Bar {
    /// Moves the bar; a count that goes back is a new attempt.
    pub(super) fn progress(&self, doing: &'static str) -> Option<Progress> {
        let (bar, begin) = (self.bar.clone(), Instant::now());
        self.shown.then(|| {
            let progress: Progress = Arc::new(move |bytes| {
                if begin.elapsed() < PATIENCE {
                    return;
                }
                if bytes < bar.position() {
                    bar.reset();
                }
                bar.set_message(doing);
                bar.set_position(bytes);
            });
            progress
        })
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
