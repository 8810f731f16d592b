//! Where the index library reads and writes.

use super::file::Blocks;
use crate::fs::beside;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tantivy::directory::error::{DeleteError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, FileHandle, OwnedBytes, TerminatingWrite, WatchCallback, WatchHandle, WritePtr,
};
use tantivy::{Directory, HasLen};

/// The files of one part in a finished file.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    pub(super) blocks: Arc<Blocks>,
    pub(super) files: Arc<HashMap<PathBuf, Range<u64>>>,
}

#[derive(Debug)]
struct PackedFile {
    blocks: Arc<Blocks>,
    place: Range<u64>,
}

impl HasLen for PackedFile {
    fn len(&self) -> usize {
        (self.place.end - self.place.start) as usize
    }
}

impl FileHandle for PackedFile {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        let start = self.place.start + range.start as u64;
        let end = self.place.start + range.end as u64;
        if end > self.place.end {
            let message = "a place is named that is not there";
            return Err(io::Error::new(ErrorKind::InvalidData, message));
        }
        self.blocks.read(&(start..end))
    }
}

fn read_only() -> io::Error {
    io::Error::new(ErrorKind::ReadOnlyFilesystem, "the index is only read")
}

impl Directory for Packed {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let place = self.files.get(path);
        let place = place.ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_owned()))?;
        Ok(Arc::new(PackedFile {
            blocks: Arc::clone(&self.blocks),
            place: place.clone(),
        }))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        Err(DeleteError::IoError {
            io_error: Arc::new(read_only()),
            filepath: path.to_owned(),
        })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.files.contains_key(path))
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        Err(OpenWriteError::wrap_io_error(read_only(), path.to_owned()))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let file = self.get_file_handle(path)?;
        let bytes = file.read_bytes(0..file.len());
        let bytes = bytes.map_err(|e| OpenReadError::wrap_io_error(e, path.to_owned()))?;
        Ok(bytes.to_vec())
    }

    fn atomic_write(&self, _path: &Path, _data: &[u8]) -> io::Result<()> {
        Err(read_only())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

/// Files on the way: on the disk, but without a name, so that nothing is left behind when the process dies.
#[derive(Clone, Debug)]
pub(super) struct Scratch {
    /// The path that passing names are derived from.
    base: PathBuf,
    files: Arc<Mutex<BTreeMap<PathBuf, Scrap>>>,
}

#[derive(Clone, Debug)]
pub(super) enum Scrap {
    OnDisk(Arc<File>),
    Small(Arc<Vec<u8>>),
}

impl Scrap {
    /// Hands over the contents piece by piece.
    pub(super) fn each_piece<E>(
        &self,
        io: impl Fn(io::Error) -> E,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let file = match self {
            Self::Small(bytes) => return take(bytes),
            Self::OnDisk(file) => file,
        };
        let mut buffer = vec![0; 1 << 16];
        let mut at = 0;
        loop {
            match file.read_at(&mut buffer, at).map_err(&io)? {
                0 => return Ok(()),
                len => {
                    take(buffer.get(..len).unwrap_or_default())?;
                    at += len as u64;
                }
            }
        }
    }
}

impl Scratch {
    pub(super) fn new(base: &Path) -> Self {
        Self {
            base: base.to_owned(),
            files: Arc::default(),
        }
    }

    /// What was written, by name.
    pub(super) fn into_files(self) -> BTreeMap<PathBuf, Scrap> {
        std::mem::take(&mut *self.files.lock())
    }

    fn create(&self) -> io::Result<Arc<File>> {
        let path = beside(&self.base, "scratch.tmp");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(Arc::new(file))
    }
}

#[derive(Debug)]
struct ScratchFile {
    file: Arc<File>,
    len: usize,
}

impl HasLen for ScratchFile {
    fn len(&self) -> usize {
        self.len
    }
}

impl FileHandle for ScratchFile {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        let mut bytes = vec![0; range.len()];
        self.file.read_exact_at(&mut bytes, range.start as u64)?;
        Ok(OwnedBytes::new(bytes))
    }
}

struct ScratchWriter(Arc<File>);

impl Write for ScratchWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for ScratchWriter {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        Ok(())
    }
}

impl Directory for Scratch {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let scrap = self.files.lock().get(path).cloned();
        match scrap {
            None => Err(OpenReadError::FileDoesNotExist(path.to_owned())),
            Some(Scrap::Small(bytes)) => Ok(Arc::new(OwnedBytes::new(bytes.to_vec()))),
            Some(Scrap::OnDisk(file)) => {
                let len = file.metadata().map(|metadata| metadata.len() as usize);
                let len = len.map_err(|e| OpenReadError::wrap_io_error(e, path.to_owned()))?;
                Ok(Arc::new(ScratchFile { file, len }))
            }
        }
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let removed = self.files.lock().remove(path);
        removed.map_or_else(
            || Err(DeleteError::FileDoesNotExist(path.to_owned())),
            |_| Ok(()),
        )
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.files.lock().contains_key(path))
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let mut files = self.files.lock();
        if files.contains_key(path) {
            return Err(OpenWriteError::FileAlreadyExists(path.to_owned()));
        }
        let file = self.create();
        let file = file.map_err(|e| OpenWriteError::wrap_io_error(e, path.to_owned()))?;
        files.insert(path.to_owned(), Scrap::OnDisk(Arc::clone(&file)));
        Ok(BufWriter::new(Box::new(ScratchWriter(file))))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let file = self.get_file_handle(path)?;
        let bytes = file.read_bytes(0..file.len());
        let bytes = bytes.map_err(|e| OpenReadError::wrap_io_error(e, path.to_owned()))?;
        Ok(bytes.to_vec())
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        let scrap = Scrap::Small(Arc::new(data.to_vec()));
        self.files.lock().insert(path.to_owned(), scrap);
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}
