//! Where the events of a run are kept.

use super::{Incoming, Record};
use crate::Timestamp;

/// Where records are kept.
pub trait Log {
    /// What can go wrong.
    type Error;

    /// Adds an event behind the last one. It is durable after the next [`Log::sync`].
    ///
    /// # Errors
    /// When the log cannot take it.
    fn append(&mut self, at: Timestamp, incoming: &Incoming) -> Result<Record, Self::Error>;

    /// Makes everything that was appended durable.
    ///
    /// # Errors
    /// When that is not certain; the log is then not to be used any more.
    fn sync(&mut self) -> Result<(), Self::Error>;
}
