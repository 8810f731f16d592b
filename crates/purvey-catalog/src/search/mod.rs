//! The search engine: exact filters, sorts and refinements over the segments of a generation (ODP §5).
//!
//! Every filter is a [column](Column) of each segment, built when the segment is. A search makes, segment by segment, the [set](Bitset) of documents that
//! match; counts the values that are wanted; finds the first of the order; and merges what the segments give.
//! Nothing is estimated, and no step depends on how many pages came before.

pub mod bitset;
pub mod cache;
pub mod column;
mod evaluate;
pub mod mapping;
pub mod query;
pub mod refine;
mod sort;
pub mod text;
pub mod trace;

pub use bitset::Bitset;
pub use cache::FilterCache;
pub use column::{Column, ColumnWriter, Columns, ColumnsWriter};
pub use mapping::{ColumnName, Mapping};
pub use query::{After, Hit, Hits, Ids, Members, Order, Query, SearchIndex, SearchSegment};
pub use refine::Plan;
pub use text::{Resume, TextMatch};
pub use trace::{RefinementTrace, SegmentTrace, Trace};
