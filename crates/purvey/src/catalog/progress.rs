//! How far an import is, on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use purvey_catalog::import::{Progress, Stage};
use std::{io::IsTerminal, time::Duration};

/// A bar on standard error; nothing when that is no terminal.
pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn new(wanted: bool) -> Self {
        let bar = ProgressBar::hidden();
        if wanted && std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
            bar.set_style(style(COUNTING));
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        Self(bar)
    }

    /// Takes the bar off the screen.
    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// While the end is known: the bar measures bytes, the message says records.
const MEASURED: &str = "{bar:32} {percent:>3} %  {msg}  {elapsed} gone, {eta} left";
/// While it is not.
const COUNTING: &str = "{spinner}  {msg}  {elapsed} gone";

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Progress for Bar {
    fn at(&self, stage: Stage) {
        let bar = &self.0;
        if bar.is_hidden() {
            return;
        }
        match stage {
            Stage::Records {
                read,
                rejected,
                bytes,
                total_bytes,
            } => {
                if let (Some(total), None) = (total_bytes, bar.length()) {
                    bar.set_length(total);
                    bar.set_style(style(MEASURED));
                }
                if total_bytes.is_some() {
                    bar.set_position(bytes);
                }
                let seconds = bar.elapsed().as_secs_f64().max(0.001);
                bar.set_message(message(read, rejected, seconds));
            }
            Stage::Committing => {
                bar.set_style(style(COUNTING));
                bar.set_message("making it durable");
            }
            Stage::Publishing => {
                bar.set_style(style(COUNTING));
                bar.set_message("publishing");
            }
        }
    }
}

fn message(read: u64, rejected: u64, seconds: f64) -> String {
    let rate = (read as f64 / seconds) as u64;
    let (read, rate) = (indicatif::HumanCount(read), indicatif::HumanCount(rate));
    if rejected == 0 {
        format!("{read} records, {rate}/s")
    } else {
        format!("{read} records, {rate}/s, {rejected} rejected")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_says_records_and_rate() {
        assert_eq!(message(3_000, 0, 2.0), "3,000 records, 1,500/s");
        assert_eq!(message(10, 2, 1.0), "10 records, 10/s, 2 rejected");
    }
}
