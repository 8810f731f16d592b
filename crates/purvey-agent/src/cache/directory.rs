//! A cache in a directory.
//!
//! One file an entry: a line with a digest of the rest, a line of JSON, the body. A file is written beside its place and renamed
//! into it, so that readers see the old one or the new one; whatever does not match its digest is no entry. The time of a file
//! is when it was last used.

use super::entry::Meta;
use super::key::{hex, url_part};
use super::{Entry, Key};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use url::Url;

/// What the first line begins with; another version is another cache.
const MAGIC: &str = "purvey-cache-1 ";
/// Largest file that is read: more than any class permits, fields included.
const MAX_FILE: u64 = 16 * 1_048_576;
/// Names of files that are being written begin so.
const UNFINISHED: &str = ".new-";
/// After this time an unfinished file has been left by a process that died.
const ABANDONED: Duration = Duration::from_secs(3_600);
/// Writes after which the directory is counted anew, since other processes write too.
const RECOUNT: u32 = 64;

#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    bytes: u64,
    entries: usize,
    tally: Mutex<Tally>,
}

/// What the directory is believed to hold.
#[derive(Debug, Default)]
struct Tally {
    bytes: u64,
    entries: usize,
    writes: u32,
}

impl Directory {
    pub(super) fn open(path: PathBuf, bytes: u64, entries: usize) -> io::Result<Self> {
        make_private(&path)?;
        let directory = Self {
            path,
            bytes,
            entries,
            tally: Mutex::default(),
        };
        directory.recount();
        Ok(directory)
    }

    pub(super) fn get(&self, key: &Key) -> Option<Entry> {
        let path = self.path.join(key.file_name());
        let entry = read(&path, &key.file_name());
        if entry.is_none() && path.exists() {
            // A file that cannot be read today cannot be read tomorrow.
            drop(fs::remove_file(&path));
        }
        let used = OpenOptions::new().append(true).open(&path);
        drop(used.and_then(|file| file.set_modified(SystemTime::now())));
        entry
    }

    pub(super) fn put(&self, key: &Key, entry: &Entry) {
        let Some(bytes) = written(&key.file_name(), entry) else {
            return;
        };
        let size = bytes.len() as u64;
        if size > self.bytes.min(MAX_FILE) || self.replace(&key.file_name(), &bytes).is_err() {
            return;
        }
        let full = {
            let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.bytes += size;
            tally.entries += 1;
            tally.writes += 1;
            tally.bytes > self.bytes || tally.entries > self.entries || tally.writes >= RECOUNT
        };
        if full {
            self.recount();
        }
    }

    pub(super) fn forget(&self, url: &Url) {
        let start = url_part(url);
        for file in self.files() {
            if file.file_name().to_string_lossy().starts_with(&start) {
                drop(fs::remove_file(file.path()));
            }
        }
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let drawn = getrandom::u64().map_err(io::Error::other)?;
        let beside = self
            .path
            .join(format!("{UNFINISHED}{}-{drawn:016x}", std::process::id()));
        let result = create_private(&beside)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| fs::rename(&beside, self.path.join(name)));
        if result.is_err() {
            drop(fs::remove_file(&beside));
        }
        result
    }

    /// Counts what is there, and removes what was used longest ago until all fits with a tenth to spare.
    fn recount(&self) {
        let now = SystemTime::now();
        let mut found = Vec::new();
        for file in self.files() {
            let Ok(about) = file.metadata() else { continue };
            let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if file.file_name().to_string_lossy().starts_with(UNFINISHED) {
                let age = now.duration_since(used).unwrap_or_default();
                if age > ABANDONED {
                    drop(fs::remove_file(file.path()));
                }
                continue;
            }
            found.push((used, about.len(), file.path()));
        }
        found.sort_unstable();
        let mut bytes: u64 = found.iter().map(|(_, size, _)| size).sum();
        let mut entries = found.len();
        if bytes > self.bytes || entries > self.entries {
            let (fewer_bytes, fewer_entries) = (
                self.bytes - self.bytes / 10,
                self.entries - self.entries / 10,
            );
            for (_, size, path) in &found {
                if bytes <= fewer_bytes && entries <= fewer_entries {
                    break;
                }
                if fs::remove_file(path).is_ok() {
                    bytes -= size;
                    entries -= 1;
                }
            }
        }
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner) = Tally {
            bytes,
            entries,
            writes: 0,
        };
    }

    /// The files of the cache; others in the directory are left alone.
    fn files(&self) -> impl Iterator<Item = DirEntry> {
        let all = fs::read_dir(&self.path).into_iter().flatten();
        all.flatten().filter(|file| {
            let name = file.file_name();
            let name = name.to_string_lossy();
            name.starts_with(UNFINISHED) || is_entry_name(&name)
        })
    }
}

/// Whether a file's name is one that a key makes: 16 and 64 hexadecimal digits.
fn is_entry_name(name: &str) -> bool {
    let hexadecimal = |text: &str, length| {
        text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    name.split_once('-')
        .is_some_and(|(url, key)| hexadecimal(url, 16) && hexadecimal(key, 64))
}

/// The bytes of an entry's file. Its name is part of them, so that a file in another's place is no entry.
fn written(name: &str, entry: &Entry) -> Option<Vec<u8>> {
    let meta = serde_json::to_vec(&(name, entry.meta())).ok()?;
    let rest = [meta.as_slice(), b"\n", &entry.body].concat();
    let head = format!("{MAGIC}{}\n", hex(&Sha256::digest(&rest)));
    Some([head.as_bytes(), &rest].concat())
}

fn read(path: &Path, name: &str) -> Option<Entry> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > MAX_FILE {
        return None;
    }
    let bytes = Bytes::from(bytes);
    let rest = after_line(&bytes)?;
    let head = bytes.get(..bytes.len() - rest.len() - 1)?;
    let digest = head.strip_prefix(MAGIC.as_bytes())?;
    if digest != hex(&Sha256::digest(&rest)).as_bytes() {
        return None;
    }
    let body = after_line(&rest)?;
    let meta = rest.get(..rest.len() - body.len() - 1)?;
    let (named, meta): (String, Meta) = serde_json::from_slice(meta).ok()?;
    if named != name {
        return None;
    }
    Entry::from_meta(meta, body)
}

/// What follows the first line.
fn after_line(bytes: &Bytes) -> Option<Bytes> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some(bytes.slice(end + 1..))
}

#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

#[cfg(not(unix))]
fn make_private(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}
