//! The disk: what is durable, and what is pending.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::log::{Log, Step};

pub(super) type NodeId = usize;
pub(super) const ROOT: NodeId = 0;

#[derive(Clone, Debug)]
pub(super) enum Node {
    File(FileNode),
    Directory(DirectoryNode),
}

#[derive(Clone, Debug, Default)]
pub(super) struct FileNode {
    pub(super) durable: Vec<u8>,
    pub(super) live: Vec<u8>,
    pub(super) pending: Vec<Edit>,
    /// How many edits are durable.
    pub(super) settled: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Edit {
    Write { offset: usize, data: Vec<u8> },
    Resize(usize),
}

#[derive(Clone, Debug, Default)]
pub(super) struct DirectoryNode {
    pub(super) durable: BTreeMap<String, NodeId>,
    pub(super) live: BTreeMap<String, NodeId>,
}

/// A change of names that happens whole or not at all; an `fsync` of `decided_by` makes it durable.
#[derive(Clone, Debug)]
pub(super) struct NameChange {
    pub(super) number: usize,
    pub(super) decided_by: NodeId,
    pub(super) sets: Vec<(NodeId, String, Option<NodeId>)>,
}

/// A directory tree in three versions: as the processes see it, as it is surely on disk, and what lies between.
#[derive(Clone, Debug)]
pub struct Disk {
    pub(super) nodes: Vec<Node>,
    by_inode: HashMap<u64, NodeId>,
    pub(super) names: Vec<NameChange>,
    /// How many changes of names there were.
    renamed: usize,
    /// Syncs under way, by thread: how far each node will be durable.
    syncing: HashMap<u64, Vec<(NodeId, usize)>>,
    done: usize,
}

impl Disk {
    /// The directory as it is now, all of it durable.
    pub(super) fn of(root: &Path) -> Self {
        let mut disk = Self {
            nodes: Vec::new(),
            by_inode: HashMap::new(),
            names: Vec::new(),
            renamed: 0,
            syncing: HashMap::new(),
            done: 0,
        };
        disk.load(root);
        disk
    }

    fn load(&mut self, path: &Path) -> NodeId {
        let metadata = fs::symlink_metadata(path).expect("a readable directory");
        let id = self.nodes.len();
        self.by_inode.insert(metadata.ino(), id);
        if metadata.is_dir() {
            self.nodes.push(Node::Directory(DirectoryNode::default()));
            let mut entries = BTreeMap::new();
            for entry in fs::read_dir(path).expect("a readable directory") {
                let entry = entry.expect("a readable directory");
                let name = entry.file_name().into_string().expect("UTF-8 file names");
                entries.insert(name, self.load(&entry.path()));
            }
            self.nodes[id] = Node::Directory(DirectoryNode {
                durable: entries.clone(),
                live: entries,
            });
        } else {
            let content = fs::read(path).expect("a readable file");
            self.nodes.push(Node::File(FileNode {
                durable: content.clone(),
                live: content,
                pending: Vec::new(),
                settled: 0,
            }));
        }
        id
    }

    /// Goes on to this cut of the log; a disk only goes forward.
    pub fn replay(&mut self, log: &Log, cut: usize) {
        assert!(self.done <= cut, "a disk only goes forward");
        for step in &log.steps[self.done..cut] {
            self.step(log, step);
        }
        self.done = cut;
    }

    fn step(&mut self, log: &Log, step: &Step) {
        match step {
            Step::Create { path, inode } => self.add(path, *inode, Node::File(FileNode::default())),
            Step::MakeDirectory { path, inode } => {
                self.add(path, *inode, Node::Directory(DirectoryNode::default()));
            }
            Step::Write {
                inode,
                offset,
                data,
            } => {
                let offset = usize::try_from(*offset).expect("a small file");
                self.edit(
                    *inode,
                    Edit::Write {
                        offset,
                        data: log.bytes[data.clone()].to_vec(),
                    },
                );
            }
            Step::Resize { inode, size } => {
                self.edit(
                    *inode,
                    Edit::Resize(usize::try_from(*size).expect("a small file")),
                );
            }
            Step::Link { path, inode } => {
                let node = self.known(*inode);
                let (directory, name) = self.place(path);
                self.change(directory, vec![(directory, name, Some(node))]);
            }
            Step::Rename { from, to } => {
                let (source, old) = self.place(from);
                let (target, new) = self.place(to);
                let node = self.directory(source).live[&old];
                // A rename onto another name of the same file does nothing.
                if self.directory(target).live.get(&new) != Some(&node) {
                    self.change(target, vec![(source, old, None), (target, new, Some(node))]);
                }
            }
            Step::Unlink { path } | Step::RemoveDirectory { path } => {
                let (directory, name) = self.place(path);
                self.change(directory, vec![(directory, name, None)]);
            }
            Step::SyncBegins { inode, thread } => {
                let whom = self.synced(*inode);
                let until: Vec<_> = whom.iter().map(|id| (*id, self.changes(*id))).collect();
                self.syncing.insert(*thread, until);
            }
            Step::SyncEnds { thread, .. } => {
                for (id, until) in self.syncing.remove(thread).expect("a sync that began") {
                    self.sync(id, until);
                }
            }
            Step::Mark(_) => {}
        }
    }

    fn add(&mut self, path: &str, inode: u64, node: Node) {
        let id = self.nodes.len();
        self.nodes.push(node);
        self.by_inode.insert(inode, id);
        // A file opened without a name has none until it is linked.
        if !path.is_empty() {
            let (directory, name) = self.place(path);
            self.change(directory, vec![(directory, name, Some(id))]);
        }
    }

    fn change(&mut self, decided_by: NodeId, sets: Vec<(NodeId, String, Option<NodeId>)>) {
        for (directory, name, node) in &sets {
            set(&mut self.directory_mut(*directory).live, name, *node);
        }
        self.names.push(NameChange {
            number: self.renamed,
            decided_by,
            sets,
        });
        self.renamed += 1;
    }

    fn edit(&mut self, inode: u64, edit: Edit) {
        let id = self.known(inode);
        let Node::File(file) = &mut self.nodes[id] else {
            panic!("data written to a directory")
        };
        apply(&mut file.live, &edit);
        file.pending.push(edit);
    }

    /// Which nodes a sync of this inode makes durable.
    fn synced(&self, inode: u64) -> Vec<NodeId> {
        if inode == 0 {
            (0..self.nodes.len()).collect()
        } else {
            vec![self.known(inode)]
        }
    }

    /// How many changes a node has seen; of a directory, all changes of names.
    fn changes(&self, id: NodeId) -> usize {
        match &self.nodes[id] {
            Node::File(file) => file.settled + file.pending.len(),
            Node::Directory(_) => self.renamed,
        }
    }

    fn sync(&mut self, id: NodeId, until: usize) {
        match &mut self.nodes[id] {
            Node::File(file) => {
                // Another sync may have been faster.
                let count = until.saturating_sub(file.settled);
                for edit in file.pending.drain(..count) {
                    apply(&mut file.durable, &edit);
                }
                file.settled += count;
            }
            Node::Directory(_) => {
                for change in std::mem::take(&mut self.names) {
                    if change.decided_by == id && change.number < until {
                        for (directory, name, node) in &change.sets {
                            set(&mut self.directory_mut(*directory).durable, name, *node);
                        }
                    } else {
                        self.names.push(change);
                    }
                }
            }
        }
    }

    fn known(&self, inode: u64) -> NodeId {
        *self
            .by_inode
            .get(&inode)
            .unwrap_or_else(|| panic!("a change to a file that the log never saw made: {inode}"))
    }

    fn place(&self, path: &str) -> (NodeId, String) {
        let mut parts: Vec<&str> = path.split('/').collect();
        let name = parts.pop().expect("a name");
        let directory = parts.iter().fold(ROOT, |id, part| {
            *self
                .directory(id)
                .live
                .get(*part)
                .unwrap_or_else(|| panic!("no directory for {path} in the log"))
        });
        (directory, name.to_owned())
    }

    pub(super) fn directory(&self, id: NodeId) -> &DirectoryNode {
        let Node::Directory(directory) = &self.nodes[id] else {
            panic!("a file where a directory must be")
        };
        directory
    }

    fn directory_mut(&mut self, id: NodeId) -> &mut DirectoryNode {
        let Node::Directory(directory) = &mut self.nodes[id] else {
            panic!("a file where a directory must be")
        };
        directory
    }

    /// Panics unless the tree as the processes see it is what this directory holds (but for SQLite's shared memory, which
    /// is written through a mapping).
    pub(super) fn assert_is(&self, root: &Path) {
        self.compare(ROOT, root);
    }

    fn compare(&self, id: NodeId, path: &Path) {
        match &self.nodes[id] {
            Node::File(file) => {
                if !is_shared_memory(&path.to_string_lossy()) {
                    let real = fs::read(path).unwrap_or_default();
                    assert!(
                        real == file.live,
                        "{} was written past the file layer",
                        path.display()
                    );
                }
            }
            Node::Directory(directory) => {
                let mut real: Vec<String> = fs::read_dir(path)
                    .expect("a readable directory")
                    .map(|entry| {
                        entry
                            .expect("an entry")
                            .file_name()
                            .into_string()
                            .expect("UTF-8 file names")
                    })
                    .collect();
                real.sort();
                let live: Vec<String> = directory.live.keys().cloned().collect();
                assert_eq!(
                    real,
                    live,
                    "{} was changed past the file layer",
                    path.display()
                );
                directory
                    .live
                    .iter()
                    .for_each(|(name, child)| self.compare(*child, &path.join(name)));
            }
        }
    }
}

fn apply(bytes: &mut Vec<u8>, edit: &Edit) {
    match edit {
        Edit::Write { offset, data } => {
            let end = offset + data.len();
            bytes.resize(bytes.len().max(end), 0);
            bytes[*offset..end].copy_from_slice(data);
        }
        Edit::Resize(size) => bytes.resize(*size, 0),
    }
}

pub(super) fn set(names: &mut BTreeMap<String, NodeId>, name: &str, node: Option<NodeId>) {
    match node {
        Some(node) => names.insert(name.to_owned(), node),
        None => names.remove(name),
    };
}

pub(super) fn is_shared_memory(path: &str) -> bool {
    path.ends_with("-shm")
}
