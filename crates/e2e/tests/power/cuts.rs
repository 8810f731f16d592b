//! What a disk may hold after the power was cut at one moment or another.

use e2e::{
    fault::{Disk, Log, Mark, Style},
    random::Random,
};
use std::{path::Path, thread};
use tempfile::TempDir;

/// Cuts the power of a recorded run `count` times, `often` around one of these marks, and looks at each image, on two threads.
pub(crate) fn each_cut(
    start: &Disk,
    log: &Log,
    (count, often): (usize, &[Mark]),
    random: &mut Random,
    look: impl Fn(usize, &Path, &mut Random) + Sync,
) {
    let mut cuts: Vec<usize> = (0..count).map(|_| log.cut(often, random)).collect();
    cuts.sort_unstable();
    let mut randoms = [random.fork(), random.fork()];
    thread::scope(|scope| {
        for (half, random) in randoms.iter_mut().enumerate() {
            let (cuts, look) = (&cuts, &look);
            scope.spawn(move || {
                let mut disk = start.clone();
                for cut in cuts.iter().skip(half).step_by(2) {
                    let style = if random.chance(60) {
                        Style::Random
                    } else {
                        *random.pick(&Style::ALL)
                    };
                    let image = Image {
                        path: Some(TempDir::new().unwrap()),
                        cut: *cut,
                        style,
                    };
                    let path = image.path.as_ref().unwrap().path();
                    disk.replay(log, *cut);
                    disk.after_power_cut(style, random, path);
                    look(*cut, path, random);
                }
            });
        }
    });
}

/// An image; kept and named when its test fails.
struct Image {
    path: Option<TempDir>,
    cut: usize,
    style: Style,
}

impl Drop for Image {
    fn drop(&mut self) {
        if thread::panicking()
            && let Some(path) = self.path.take()
        {
            eprintln!(
                "cut {}, {:?}: the image (with what was done to it since) is {}",
                self.cut,
                self.style,
                path.keep().display()
            );
        }
    }
}
