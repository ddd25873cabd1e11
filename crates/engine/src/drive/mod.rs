//! The engine: owns the state and the inbox, journals, and has actions carried out.

mod driver;
mod signals;

pub use driver::{DriverError, Update, drive};
