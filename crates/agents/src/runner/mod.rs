//! Runners: those that Lanewright knows, and how what they print is read. Pure.

mod catalogue;
mod said;
mod stream;

pub use catalogue::{Catalogue, check};
pub use said::Said;
pub use stream::{Stream, said_in};
