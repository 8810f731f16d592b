//! What may be found on the disk after a power cut.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use super::disk::{Disk, Edit, FileNode, Node, NodeId, ROOT, is_shared_memory, set};
use crate::random::Random;

/// How a power cut treats what was not made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// None of it is there.
    Nothing,
    /// All of it is there, as after a killed process.
    Everything,
    /// All names, no data: the empty file behind a rename.
    NamesOnly,
    /// All data, no names.
    DataOnly,
    /// Names up to some point in time, as a journal keeps them; data at random.
    Journal,
    /// Each name and each piece of data on its own.
    Random,
}

impl Style {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Nothing,
        Self::Everything,
        Self::NamesOnly,
        Self::DataOnly,
        Self::Journal,
        Self::Random,
    ];
}

impl Disk {
    /// Writes the directory as it may be found after a power cut here, into `target`, which is made.
    pub fn after_power_cut(&self, style: Style, random: &mut Random, target: &Path) {
        let unit = *random.pick(&[512, 4096]);
        let (happened, among) = (
            random.within(0..self.names.len() + 1),
            random.within(0..101),
        );
        let mut entries: HashMap<NodeId, BTreeMap<String, NodeId>> = HashMap::new();
        for (index, change) in self.names.iter().enumerate() {
            let apply = match style {
                Style::Nothing | Style::DataOnly => false,
                Style::Everything | Style::NamesOnly => true,
                Style::Journal => index < happened,
                Style::Random => random.chance(among),
            };
            for (directory, name, node) in change.sets.iter().filter(|_| apply) {
                let names = entries
                    .entry(*directory)
                    .or_insert_with(|| self.directory(*directory).durable.clone());
                set(names, name, *node);
            }
        }
        self.write_out(ROOT, target, &entries, &mut |path, file| match style {
            _ if is_shared_memory(path) => garbage(file.live.len(), random),
            Style::Nothing | Style::NamesOnly => file.durable.clone(),
            Style::Everything | Style::DataOnly => file.live.clone(),
            Style::Journal | Style::Random => torn(file, unit, random),
        });
    }

    fn write_out(
        &self,
        id: NodeId,
        path: &Path,
        entries: &HashMap<NodeId, BTreeMap<String, NodeId>>,
        content: &mut impl FnMut(&str, &FileNode) -> Vec<u8>,
    ) {
        match &self.nodes[id] {
            Node::File(file) => {
                fs::write(path, content(&path.to_string_lossy(), file)).expect("room for an image");
            }
            Node::Directory(directory) => {
                fs::create_dir_all(path).expect("room for an image");
                for (name, child) in entries.get(&id).unwrap_or(&directory.durable) {
                    self.write_out(*child, &path.join(name), entries, content);
                }
            }
        }
    }
}

/// What a mapping leaves behind: whatever.
fn garbage(length: usize, random: &mut Random) -> Vec<u8> {
    (0..length)
        .map(|_| random.bits().to_le_bytes()[0])
        .collect()
}

/// The file with some of its pending edits. Each unit of its data, and its size, shows the edits up to a time of its own;
/// a truncation is a change of the size, so it clears all that it cuts off or nothing.
fn torn(file: &FileNode, unit: usize, random: &mut Random) -> Vec<u8> {
    let all = file.pending.len();
    if all == 0 {
        return file.durable.clone();
    }
    let moment = |random: &mut Random| match random.within(0..3) {
        0 => 0,
        1 => all,
        _ => random.within(0..all + 1),
    };
    let until = moment(random);
    let size = file.pending[..until]
        .iter()
        .fold(file.durable.len(), |size, edit| match edit {
            Edit::Write { offset, data } => size.max(offset + data.len()),
            Edit::Resize(size) => *size,
        });
    let mut bytes = file.durable.clone();
    bytes.resize(bytes.len().max(size), 0);
    // Half of the time all units stop at the same edit: a plain prefix of what was written, its last edit torn.
    let together = random.chance(50).then(|| moment(random));
    let moments: Vec<usize> = (0..=bytes.len() / unit)
        .map(|_| together.unwrap_or_else(|| moment(random)))
        .collect();
    for (index, edit) in file.pending.iter().enumerate() {
        let (offset, data) = match edit {
            Edit::Write { offset, data } => (*offset, data),
            Edit::Resize(size) => {
                if index < until
                    && let Some(cut_off) = bytes.get_mut(*size..)
                {
                    cut_off.fill(0);
                }
                continue;
            }
        };
        let to = bytes.len().min(offset + data.len());
        let mut at = offset;
        while at < to {
            let end = to.min((at / unit + 1) * unit);
            let last = together == Some(index) && random.chance(50);
            if index < moments[at / unit] || last {
                bytes[at..end].copy_from_slice(&data[at - offset..end - offset]);
            }
            at = end;
        }
    }
    bytes.truncate(size);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(durable: &[u8], pending: Vec<Edit>) -> FileNode {
        let durable = durable.to_vec();
        FileNode {
            durable,
            live: Vec::new(),
            pending,
            settled: 0,
        }
    }

    fn outcomes(file: &FileNode) -> Vec<Vec<u8>> {
        let mut random = Random::new(7);
        let mut all: Vec<_> = (0..400).map(|_| torn(file, 512, &mut random)).collect();
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn a_write_over_two_sectors_can_be_torn_between_them_only() {
        let write = Edit::Write {
            offset: 510,
            data: b"abcd".to_vec(),
        };
        let found = outcomes(&file(&[0; 514], vec![write]));
        let tails: Vec<&[u8]> = found.iter().map(|bytes| &bytes[508..]).collect();
        assert_eq!(
            tails,
            [b"\0\0\0\0\0\0", b"\0\0\0\0cd", b"\0\0ab\0\0", b"\0\0abcd"]
        );
    }

    #[test]
    fn a_growing_file_may_have_its_size_and_not_its_data() {
        let write = Edit::Write {
            offset: 0,
            data: b"ab".to_vec(),
        };
        assert_eq!(
            outcomes(&file(b"", vec![write])),
            [&b""[..], b"\0\0", b"ab"]
        );
    }

    #[test]
    fn a_truncation_happens_whole_or_not_at_all() {
        let found = outcomes(&file(&[1; 2000], vec![Edit::Resize(0)]));
        assert_eq!(found, [vec![], vec![1; 2000]]);
    }

    #[test]
    fn what_was_synced_is_all_there() {
        assert_eq!(outcomes(&file(b"abc", Vec::new())), [b"abc"]);
    }
}
