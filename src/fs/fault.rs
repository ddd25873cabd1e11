//! Write faults: a test build of the program can be made to find its files refused, to show that nothing is lost by it.
//!
//! `LANEKEEPER_WRITE_FAULT=ENOSPC:N` makes the N-th write, sync, rename or creation of a state file fail in a build with
//! debug assertions, and every later one; `EACCES` and `EIO` do the same. Release builds have none of this.
//!
//! Everything in `fs` that changes the disk goes through here, except what removes: a full disk does not refuse that.

use std::fs::File;
use std::io::{self, Write};

use rustix::io::Errno;

/// The environment variable that chooses a write fault.
pub const WRITE_FAULT_VARIABLE: &str = "LANEKEEPER_WRITE_FAULT";

/// Renames, syncs, or changes something else on disk.
pub(super) fn change<T, E: From<Errno>>(change: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    refusal().map_or_else(change, |errno| Err(errno.into()))
}

/// Makes what is not there yet; what `exists` is opened, which no full disk refuses.
pub(super) fn create<T, E: From<Errno>>(
    exists: impl FnOnce() -> bool,
    create: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    if cfg!(debug_assertions) && exists() { create() } else { change(create) }
}

/// Writes all of `bytes`; a disk that fills up takes the first half.
pub(crate) fn write_all(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    match refusal() {
        None => file.write_all(bytes),
        Some(errno) => file.write_all(&bytes[..bytes.len() / 2]).and(Err(errno.into())),
    }
}

/// Why the next change is refused, if it is.
#[cfg(debug_assertions)]
fn refusal() -> Option<Errno> {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static CHOSEN: LazyLock<Option<(Errno, u32)>> = LazyLock::new(|| {
        let choice = std::env::var(WRITE_FAULT_VARIABLE).ok()?;
        let (name, number) = choice.split_once(':')?;
        let errno = match name {
            "ENOSPC" => Errno::NOSPC,
            "EACCES" => Errno::ACCESS,
            "EIO" => Errno::IO,
            _ => return None,
        };
        Some((errno, number.parse().ok()?))
    });
    static PASSED: AtomicU32 = AtomicU32::new(0);

    let (errno, number) = (*CHOSEN)?;
    (PASSED.fetch_add(1, Ordering::SeqCst) + 1 >= number).then_some(errno)
}

/// Release builds ask the disk only.
#[cfg(not(debug_assertions))]
fn refusal() -> Option<Errno> {
    None
}
