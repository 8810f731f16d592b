//! Durable files: written beside, synced, renamed, and the directory synced.

use crate::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Ending of files that are not finished; what carries it is never read and may be deleted under the index lock.
pub const TEMPORARY: &str = "tmp";

/// One step that changes what a power failure leaves behind.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// The contents of this file have reached the disk.
    FileSynced(&'a Path),
    /// The names in this directory have reached the disk.
    DirectorySynced(&'a Path),
    /// The file got a new name, which is durable once its directory is synced.
    Renamed {
        /// The old name.
        from: &'a Path,
        /// The new name.
        to: &'a Path,
    },
    /// The name is gone, durably so once its directory is synced.
    Removed(&'a Path),
}

/// Is told every step, in order, after it happened: lets a test keep the image that a power failure would leave.
pub trait Watch: Send + Sync {
    /// Called after each step.
    fn step(&self, step: Step<'_>);
}

/// How much is done so that finished files survive a power failure.
#[derive(Clone, Default)]
pub enum Durability {
    /// Everything: files and directories are synced.
    #[default]
    Full,
    /// Nothing is synced: for simulations only.
    Off,
    /// Nothing is synced; the watcher keeps the account.
    Watched(Arc<dyn Watch>),
}

impl std::fmt::Debug for Durability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Full => "Full",
            Self::Off => "Off",
            Self::Watched(_) => "Watched",
        })
    }
}

impl Durability {
    fn tell(&self, step: Step<'_>) {
        if let Self::Watched(watch) = self {
            watch.step(step);
        }
    }

    /// Brings the contents of `file`, which is at `path`, to the disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync_file(&self, file: &File, path: &Path) -> Result<(), Error> {
        if matches!(self, Self::Full) {
            file.sync_all().map_err(Error::io(path))?;
        }
        self.tell(Step::FileSynced(path));
        Ok(())
    }

    /// Brings the names in `dir` to the disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync_dir(&self, dir: &Path) -> Result<(), Error> {
        if matches!(self, Self::Full) {
            File::open(dir)
                .and_then(|dir| dir.sync_all())
                .map_err(Error::io(dir))?;
        }
        self.tell(Step::DirectorySynced(dir));
        Ok(())
    }

    /// Renames a file within one directory, replacing what has the new name; [`Self::sync_dir`] makes it durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), Error> {
        fs::rename(from, to).map_err(Error::io(to))?;
        self.tell(Step::Renamed { from, to });
        Ok(())
    }

    /// Removes a file; `false` when there was none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove(&self, path: &Path) -> Result<bool, Error> {
        match fs::remove_file(path) {
            Ok(()) => {
                self.tell(Step::Removed(path));
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io(path)(error)),
        }
    }

    /// Creates the directory `name` in `parent` durably, unless it is there.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create_dir(&self, parent: &Path, name: &str) -> Result<PathBuf, Error> {
        let dir = parent.join(name);
        match fs::create_dir(&dir) {
            Ok(()) => self.sync_dir(parent)?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io(&dir)(error)),
        }
        Ok(dir)
    }

    /// Writes a whole file: after a crash at any point the path holds the old contents or the new ones; after this returns, the new ones.
    /// Only one process may write a path at a time.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let temporary = self.write_beside(path, bytes, 0o644)?;
        self.rename(&temporary, path)?;
        self.sync_dir(parent(path))
    }

    /// As [`Self::write`], readable by the file's owner only.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write_secret(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let temporary = self.write_beside(path, bytes, 0o600)?;
        self.rename(&temporary, path)?;
        self.sync_dir(parent(path))
    }

    /// Writes a whole file, readable by its owner only, unless the path exists already; tells whether it wrote. Durable when it returns,
    /// and safe against others who do the same.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write_secret_once(&self, path: &Path, bytes: &[u8]) -> Result<bool, Error> {
        let own = path.with_extension(std::process::id().to_string());
        let temporary = self.write_beside(&own, bytes, 0o600)?;
        let linked = fs::hard_link(&temporary, path);
        self.remove(&temporary)?;
        let written = match linked {
            Ok(()) => {
                self.tell(Step::FileSynced(path));
                true
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            Err(error) => return Err(Error::io(path)(error)),
        };
        self.sync_dir(parent(path))?;
        Ok(written)
    }

    fn write_beside(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<PathBuf, Error> {
        let temporary = beside(path, TEMPORARY);
        // A leftover could carry wider permissions than `mode`, which only applies to new files.
        self.remove(&temporary)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&temporary)
            .map_err(Error::io(&temporary))?;
        file.write_all(bytes).map_err(Error::io(&temporary))?;
        self.sync_file(&file, &temporary)?;
        Ok(temporary)
    }
}

/// The path with `.ending` added to its name.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// Reads a whole file; `None` when there is none.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(path)(error)),
    }
}

/// The names in a directory that are Unicode; others are not ours.
pub(crate) fn names(dir: &Path) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io(dir))? {
        if let Ok(name) = entry.map_err(Error::io(dir))?.file_name().into_string() {
            names.push(name);
        }
    }
    Ok(names)
}

pub(crate) fn parent(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
