//! Power cuts.
//!
//! A process runs on top of a layer (`shim/record.c`) that writes down each change it makes to the files below one
//! directory, see [`Recorder`]. The test puts marks between the changes: "this was acknowledged". Afterwards [`Disk`] goes
//! through the log and builds, for a point of it, directories as a disk may hold them when the power goes at that point.
//!
//! What survives:
//! - the content of a file at its last `fsync` or `fdatasync`, and the entries of a directory at its last `fsync`, always;
//! - of what came later, anything: the content may be there or not, in part, torn in units of 512 bytes or 4 KiB, the size
//!   changed but the data not; a name created, renamed or removed may be so or not. A rename is one step: both of its names
//!   or neither. An `fsync` of a file says nothing about its name.
//!
//! That is what POSIX promises, and less than what today's usual file systems keep.

mod disk;
mod image;
mod log;
mod recorder;

pub use disk::Disk;
pub use image::Style;
pub use log::Log;
pub use recorder::{Mark, Recorder, layer, without_sync};
