//! Time: how long programs of others worked for us, which is none of our own time, and where all of it went
//! (`--timings`).
//!
//! Git and the programs of forges are started within `outside`; the engine `take`s what the programs of a
//! task came to and writes it into the run log. Spans of the target [`TARGET`] say what is being done; they cost nothing
//! unless `Timings` listens.

mod chrome;
mod layer;
mod meter;

pub use chrome::Timings;
pub use layer::Listener;
pub use layer::TARGET;
pub use meter::{outside, take};
