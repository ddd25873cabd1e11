//! Write faults: a test build of the program can be made to find its files refused, to show that nothing is lost by it.
//!
//! `LANEWRIGHT_WRITE_FAULT=ENOSPC:N` makes the N-th write, sync, rename or creation of a state file fail in a build with
//! debug assertions, and every later one; `EACCES` and `EIO` do the same. With `ENOSPC:N:TEXT` only those of files with
//! `TEXT` in their path count. Release builds have none of this.
//!
//! Everything in `fs` that changes the disk goes through here, except what removes: a full disk does not refuse that.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use rustix::io::Errno;

/// The environment variable that chooses a write fault.
pub const WRITE_FAULT_VARIABLE: &str = "LANEWRIGHT_WRITE_FAULT";

/// Renames, syncs, or changes something else at `path`; it is empty for a file of which only the handle is known.
pub(super) fn change<T, E: From<Errno>>(path: &Path, change: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    refusal(path).map_or_else(change, |errno| Err(errno.into()))
}

/// Makes what is not there yet; what `exists` is opened, which no full disk refuses.
pub(super) fn create<T, E: From<Errno>>(
    path: &Path,
    exists: impl FnOnce() -> bool,
    create: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    if cfg!(debug_assertions) && exists() { create() } else { change(path, create) }
}

/// Writes all of `bytes`; a disk that fills up takes the first half.
pub(super) fn write_all(path: &Path, mut file: &File, bytes: &[u8]) -> io::Result<()> {
    match refusal(path) {
        None => file.write_all(bytes),
        Some(errno) => file.write_all(&bytes[..bytes.len() / 2]).and(Err(errno.into())),
    }
}

/// Why the next change is refused, if it is; never in a release build.
fn refusal(path: &Path) -> Option<Errno> {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static CHOSEN: LazyLock<Option<(Errno, u32, String)>> = LazyLock::new(|| {
        let choice = std::env::var(WRITE_FAULT_VARIABLE).ok()?;
        let (name, place) = choice.split_once(':')?;
        let (number, text) = place.split_once(':').unwrap_or((place, ""));
        let errno = match name {
            "ENOSPC" => Errno::NOSPC,
            "EACCES" => Errno::ACCESS,
            "EIO" => Errno::IO,
            _ => return None,
        };
        Some((errno, number.parse().ok()?, text.to_owned()))
    });
    static PASSED: AtomicU32 = AtomicU32::new(0);

    if !cfg!(debug_assertions) {
        return None;
    }
    let (errno, number, text) = CHOSEN.as_ref()?;
    let counts = path.to_string_lossy().contains(text);
    (counts && PASSED.fetch_add(1, Ordering::SeqCst) + 1 >= *number).then_some(*errno)
}
