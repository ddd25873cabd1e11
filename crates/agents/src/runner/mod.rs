//! Runners: those that Lanewright knows, and how what they print is read. Pure.

mod catalogue;
mod stream;
mod stream_item;
mod withheld;

pub(crate) use catalogue::known_writes;
pub use catalogue::{Catalogue, check};
pub use stream::{Counted, Stream, readable_lines};
pub use stream_item::StreamItem;
pub use withheld::{Receiver, Report, Withheld, is_shared_place};
