//! Runners: those that Lanekeeper knows, and how what they print is read. Pure.

mod catalogue;
mod stream;

pub use catalogue::{Catalogue, check};
pub use stream::{Said, Stream, shown};
