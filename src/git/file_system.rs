//! What the file system under a directory can be relied on for.

use std::path::Path;

/// Whether the time of a directory under `path` tells that a name came to it or left it. Where files live on another
/// machine, or in another program, nobody promises that.
#[cfg(target_os = "linux")]
pub(crate) fn dates_directories(path: &Path) -> bool {
    /// As `statfs` names them: ext2 to ext4, xfs, btrfs, tmpfs, overlay, f2fs, zfs, bcachefs.
    const KNOWN: [u64; 8] =
        [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0xf2f5_2010, 0x2fc1_2fc1, 0xca45_1a4e];
    rustix::fs::statfs(path).is_ok_and(|found| KNOWN.contains(&(found.f_type as u64 & 0xffff_ffff)))
}

/// The same where nobody has tried it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn dates_directories(_path: &Path) -> bool {
    false
}
