//! Artifacts as files: `incoming/ID` until they are whole, then `XX/ID` with the last two digits of the identifier.

use crate::id::ArtifactId;
use bytes::Bytes;
use futures_util::Stream;
use std::{
    fs::{self, File},
    io::{self, IoSlice, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;

/// Bytes read at once.
const PIECE: usize = 256 * 1_024;

#[derive(Debug)]
pub(super) struct Local {
    root: PathBuf,
}

/// A file that is being written; what is not kept is removed.
#[derive(Debug)]
pub(super) struct Sink {
    file: File,
    from: PathBuf,
    to: PathBuf,
    kept: bool,
}

impl Local {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let incoming = root.join("incoming");
        fs::create_dir_all(&incoming)?;
        // Every directory is there, durably, before the first file goes into one.
        for number in 0..=u8::MAX {
            match fs::create_dir(root.join(format!("{number:02x}"))) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        sync_dir(root)?;
        if let Some(parent) = root.parent() {
            sync_dir(parent)?;
        }
        Ok(Self {
            root: root.to_owned(),
        })
    }

    fn incoming(&self, id: ArtifactId) -> PathBuf {
        self.root.join("incoming").join(id.to_string())
    }

    fn place(&self, id: ArtifactId) -> PathBuf {
        let name = id.to_string();
        self.root.join(&name[name.len() - 2..]).join(name)
    }

    pub(super) fn begin(&self, id: ArtifactId) -> io::Result<Sink> {
        let from = self.incoming(id);
        Ok(Sink {
            file: File::create_new(&from)?,
            from,
            to: self.place(id),
            kept: false,
        })
    }

    /// A file of `size` bytes, at `start`.
    pub(super) fn open_at(&self, id: ArtifactId, size: u64, start: u64) -> io::Result<File> {
        let mut file = File::open(self.place(id))?;
        let has = file.metadata()?.len();
        if has != size {
            return Err(io::Error::other(format!(
                "the file of {id} has {has} bytes instead of {size}"
            )));
        }
        file.seek(SeekFrom::Start(start))?;
        Ok(file)
    }

    pub(super) fn remove(&self, id: ArtifactId) -> io::Result<()> {
        for path in [self.incoming(id), self.place(id)] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Sink {
    pub(super) fn write(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        let mut slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut left = &mut slices[..];
        // A slice that is written in full, and an empty one before it, are gone after this.
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            match self.file.write_vectored(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut left, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Synced, renamed, and its directory synced: from here on a power failure takes nothing of it.
    pub(super) fn keep(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.from, &self.to)?;
        self.kept = true;
        self.to.parent().map_or(Ok(()), sync_dir)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if !self.kept {
            // What cannot be removed now is collected later.
            let _ = fs::remove_file(&self.from);
        }
    }
}

fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// `length` bytes of a file, from where it stands.
pub(super) fn pieces(file: File, length: u64) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let mut file = tokio::fs::File::from_std(file);
    file.set_max_buf_size(PIECE);
    ReaderStream::with_capacity(file.take(length), PIECE)
}
