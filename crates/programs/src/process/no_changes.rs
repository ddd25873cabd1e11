//! The twin of `changes.rs` for systems on which changes are looked for.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// There are none.
#[derive(Debug)]
pub struct Changes(Infallible);

/// There are none.
#[derive(Debug)]
pub struct Watch;

impl Changes {
    pub fn start(_: Duration) -> Option<Self> {
        None
    }

    pub fn watch(&self, _: &Path, _: Option<&OsStr>, _: impl Fn() + Send + 'static) -> Option<Watch> {
        match self.0 {}
    }
}
