//! File systems whose file times cannot be relied on.

use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::fs::handle;
use crate::fs::regular_file::Links;

/// Has git read every file of `worktree` again, whatever the index in the file `index` knows of it, where a program can
/// write to a file through memory without changing its times. Elsewhere nothing happens.
///
/// Git reads a file that is not older than the index, so the index is dated to the beginning of time; 0 is "unknown" to git.
pub(crate) fn distrust_times(worktree: &Path, index: &Path) {
    if hides_mapped_writes(worktree) {
        date_to_the_beginning(index);
    }
}

fn date_to_the_beginning(index: &Path) {
    let beginning = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    if index.exists()
        && let Err(error) = handle::set_modified(index, Links::Refuse, beginning)
    {
        tracing::warn!("{} cannot be dated back: {error}", index.display());
    }
}

/// Whether only the first write to a page through memory changes a file's times under `path`. Where files are on a disk,
/// each write after the page was written back does as well.
#[cfg(target_os = "linux")]
fn hides_mapped_writes(path: &Path) -> bool {
    /// As `statfs` names them: tmpfs, ramfs.
    const NEVER_WRITTEN_BACK: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    rustix::fs::statfs(path).is_ok_and(|found| NEVER_WRITTEN_BACK.contains(&(found.f_type as u64 & 0xffff_ffff)))
}

/// The same where nobody has tried it.
#[cfg(not(target_os = "linux"))]
fn hides_mapped_writes(_path: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::git::command::program::Git;

    #[test]
    fn git_reads_every_file_again_after_the_index_was_dated_to_the_beginning() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        // Only size and time count, so that a write can hide from git as one through memory does.
        let git = |arguments: &[&str]| {
            let git = Git::new(&place).configured("core.trustctime=false").configured("core.checkStat=minimal");
            git.args(arguments).line().unwrap()
        };
        let write = |text: &str| {
            fs::write(place.join("file"), text).unwrap();
            let file = File::options().write(true).open(place.join("file")).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
        };
        git(&["init", "--quiet"]);
        write("before");
        git(&["add", "file"]);
        write("after!");
        let index = place.join(".git/index");
        let found = || git(&["--no-optional-locks", "diff-files", "--name-only"]);
        assert_eq!(found(), "", "git believes the times");
        date_to_the_beginning(&index);
        assert_eq!(fs::metadata(&index).unwrap().mtime(), 1);
        assert_eq!(found(), "file");
    }
}
