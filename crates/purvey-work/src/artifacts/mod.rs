//! Artifacts: bytes that are whole, verified and durable, or absent (Work §7).
//!
//! An artifact is one attempt to upload it. Its row is written before any byte is kept and says `ready` only after every byte is durable,
//! so whatever is found without a ready row may be thrown away. An attempt lives on a lease that its receiver renews; who lets it lapse has
//! failed, whichever node finds that out.

mod blobs;
mod judge;
mod local;
mod produce;
mod receive;
mod records;
mod remote;
mod tend;

pub use blobs::{Blobs, Bytewise};
pub use judge::{UploadHead, UploadLimits};
pub(crate) use judge::{Verdict, check_inputs, is_filename, judge};
pub(crate) use produce::{NewFile, forsake, inputs, made, place, renew_of};
pub use receive::Piece;
pub(crate) use receive::Receiving;
pub(crate) use records::{delete, find_content, get, list};
use tend::Lost;
pub(crate) use tend::{Left, abandoned, collectable, collected};

use std::time::Duration;

/// How long an attempt lives without a sign of its receiver.
const LEASE: Duration = Duration::from_secs(15);
/// How often a receiver gives one.
const RENEW: Duration = Duration::from_secs(5);
