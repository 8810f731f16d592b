//! The log that the file layer writes: one record per change, in the order they happened.

use std::ops::Range;
use std::path::Path;

use super::Mark;
use crate::random::Random;

/// One step of the log. Names are relative to the recorded directory; `data` is a range of the log's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Create {
        path: String,
        inode: u64,
    },
    Write {
        inode: u64,
        offset: u64,
        data: Range<usize>,
    },
    Resize {
        inode: u64,
        size: u64,
    },
    Rename {
        from: String,
        to: String,
    },
    Link {
        path: String,
        inode: u64,
    },
    Unlink {
        path: String,
    },
    MakeDirectory {
        path: String,
        inode: u64,
    },
    RemoveDirectory {
        path: String,
    },
    SyncBegins {
        inode: u64,
        thread: u64,
    },
    SyncEnds {
        inode: u64,
        thread: u64,
    },
    Mark(Mark),
}

/// A recorded run, whole.
#[derive(Debug)]
pub struct Log {
    pub(super) bytes: Vec<u8>,
    pub(super) steps: Vec<Step>,
}

const HEADER: usize = 32;

impl Log {
    /// Reads the log. A record that the layer marked as unsupported, or one of an unknown form, panics: the replay would be
    /// wrong. A record cut short at the end (its writer was killed) is left out.
    pub(super) fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path)
            .unwrap_or_else(|e| panic!("cannot read the log {}: {e}", path.display()));
        let mut steps = Vec::new();
        let mut at = 0;
        while let Some(header) = bytes.get(at..at + HEADER) {
            let small = |from: usize| {
                u32::from_le_bytes(header[from..from + 4].try_into().unwrap()) as usize
            };
            let large =
                |from: usize| u64::from_le_bytes(header[from..from + 8].try_into().unwrap());
            let (kind, inode, offset) = (small(0), large(16), large(24));
            let path = at + HEADER..at + HEADER + small(4);
            let path2 = path.end..path.end + small(8);
            let data = path2.end..path2.end + small(12);
            if data.end > bytes.len() {
                break;
            }
            at = data.end;
            let text = |range: &Range<usize>| {
                String::from_utf8(bytes[range.clone()].to_vec()).expect("UTF-8 file names")
            };
            steps.push(match kind {
                1 => Step::Create {
                    path: text(&path),
                    inode,
                },
                2 => Step::Write {
                    inode,
                    offset,
                    data,
                },
                3 => Step::Resize {
                    inode,
                    size: offset,
                },
                4 => Step::Rename {
                    from: text(&path),
                    to: text(&path2),
                },
                5 => Step::Link {
                    path: text(&path),
                    inode,
                },
                6 => Step::Unlink { path: text(&path) },
                7 => Step::MakeDirectory {
                    path: text(&path),
                    inode,
                },
                8 => Step::RemoveDirectory { path: text(&path) },
                9 => Step::SyncBegins {
                    inode,
                    thread: offset,
                },
                10 => Step::SyncEnds {
                    inode,
                    thread: offset,
                },
                11 => Step::Mark(Mark(inode)),
                12 => panic!(
                    "the file layer cannot describe this: {} {}",
                    text(&path),
                    text(&path2)
                ),
                _ => panic!("a record of unknown kind {kind} in the log"),
            });
        }
        Self { bytes, steps }
    }

    /// How many points the power can be cut at: before any step, after the first, … after the last.
    #[must_use]
    pub const fn cuts(&self) -> usize {
        self.steps.len() + 1
    }

    /// The marks before a cut, in their order.
    pub fn marks_before(&self, cut: usize) -> impl Iterator<Item = Mark> + '_ {
        self.steps[..cut].iter().filter_map(|step| match step {
            Step::Mark(mark) => Some(*mark),
            _ => None,
        })
    }

    /// The first cut that lies after this mark; `None` when it was never set.
    #[must_use]
    pub fn after(&self, mark: Mark) -> Option<usize> {
        self.steps
            .iter()
            .position(|step| *step == Step::Mark(mark))
            .map(|index| index + 1)
    }

    /// A cut at random: anywhere; or just before or after a step that changes names or makes something durable, since most
    /// steps are plain writes of data; or around one of these marks.
    #[must_use]
    pub fn cut(&self, around: &[Mark], random: &mut Random) -> usize {
        let any = random.within(0..self.cuts());
        let plain = |step: &Step| {
            matches!(
                step,
                Step::Write { .. } | Step::Resize { .. } | Step::Mark(_)
            )
        };
        match random.within(0..3) {
            0 if !around.is_empty() => {
                let mark = self
                    .after(*random.pick(around))
                    .expect("a mark that was set");
                (mark + random.within(0..60))
                    .saturating_sub(30)
                    .min(self.steps.len())
            }
            1 => {
                let turning = self.steps[any.min(self.steps.len())..]
                    .iter()
                    .position(|step| !plain(step));
                turning.map_or(any, |distance| any + distance + random.within(0..2))
            }
            _ => any,
        }
    }

    /// How many steps make something durable.
    #[must_use]
    pub fn syncs(&self) -> usize {
        self.steps
            .iter()
            .filter(|step| matches!(step, Step::SyncEnds { .. }))
            .count()
    }
}
