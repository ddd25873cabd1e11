//! Locks that the kernel holds for a process and gives back when it dies, so that none can go stale (SPEC §4).
//!
//! The holder in a lock file is for messages, and for whether it has ended; whether a lock is held is up to the kernel.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lanewright_files::handle::{open_lock, truncate, write_all};
use lanewright_files::lock::{is_locked, try_lock};
use lanewright_files::regular_file::{Links, open_with, read_foreign};
use lanewright_files::{FileError, open_error};
use lanewright_model::event::Owner;
use lanewright_model::{RunId, Timestamp};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

/// The holder of a lock, according to its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The session, its process and its machine.
    #[serde(flatten)]
    pub owner: Owner,
    pub run: RunId,
    pub since: Timestamp,
    /// The words that call Lanewright for that run.
    pub program: Vec<String>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner: Owner { session_id, process, host, .. }, run, since, .. } = self;
        write!(f, "pid {} on {host}, session {session_id}, for run {run}, since {since}", process.pid)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("{} is held by {}", .path.display(), named(.holder.as_deref()))]
    Held { path: PathBuf, holder: Option<Box<Holder>> },
    #[error(transparent)]
    File(#[from] FileError),
}

pub fn named(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), Holder::to_string)
}

/// A lock on a run, a lane or a repository, held until it is dropped or its process dies.
///
/// Children do not inherit it. Two locks on one path exclude each other within one process too.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

impl RunLock {
    /// Takes the lock at `path`, whose directory exists, and notes `holder` in it. Waits for no live holder.
    pub fn acquire(path: &Path, holder: &Holder) -> Result<Self, LockError> {
        let mut lock = loop {
            let file = open_lock(path).map_err(|source| open_error("open the lock", path, source))?;
            let opened = file.metadata().map_err(|source| open_error("look at", path, source))?;
            match take(&file, || is_held_by_a_child(path, holder)) {
                // `clean` may have removed the file between open and lock: a lock on a file without a name excludes no process.
                Ok(true) if is_at(path, &opened) => break Self { file },
                Ok(true) => {}
                Ok(false) => {
                    return Err(LockError::Held { path: path.to_owned(), holder: read_holder(path).map(Box::new) });
                }
                Err(source) => return Err(open_error("lock", path, source).into()),
            }
        };
        lock.note(holder).map_err(|source| open_error("write", path, source))?;
        Ok(lock)
    }

    fn note(&mut self, holder: &Holder) -> io::Result<()> {
        let text = serde_json::to_string(holder)?;
        truncate(&self.file, 0)?;
        self.file.rewind()?;
        write_all(&self.file, text.as_bytes())
    }
}

impl Drop for RunLock {
    /// Unlocks rather than closes only: a child between fork and exec would keep a merely closed lock a moment longer.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Whether a live process holds the lock at `path`. The check keeps no process from taking it.
pub fn is_held(path: &Path) -> bool {
    open_with(path, Links::Refuse).and_then(|file| is_locked(&file)).unwrap_or_default()
}

/// Who holds the lock at `path` as far as its file says; whether anybody does is the matter of [`is_held`].
pub fn read_holder(path: &Path) -> Option<Holder> {
    serde_json::from_str(&read_foreign(path).ok()??).ok()
}

/// How long a child of a killed process may take to its exec on a machine with much to do.
const LONGEST_EXEC: Duration = Duration::from_secs(1);

/// Whether the lock was taken. Readers in [`is_held`] are waited for, and a holder that `ends_soon`; others are not.
fn take(file: &File, ends_soon: impl Fn() -> bool) -> io::Result<bool> {
    let began = Instant::now();
    loop {
        if try_lock(file)? {
            return Ok(true);
        }
        if !is_locked(file)? {
            std::thread::yield_now();
        } else if began.elapsed() < LONGEST_EXEC && ends_soon() {
            std::thread::sleep(Duration::from_millis(1));
        } else {
            return Ok(false);
        }
    }
}

/// Whether the process that took the lock has ended, so that only a child of its that has not come to its exec can hold it.
fn is_held_by_a_child(path: &Path, us: &Holder) -> bool {
    read_holder(path).is_some_and(|by| {
        let is_here = by.owner.host == us.owner.host && !us.owner.is_in_another_boot(&by.owner);
        let pid = Some(by.owner.process.pid).filter(|pid| *pid > 0).and_then(Pid::from_raw);
        is_here && pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
    })
}

fn is_at(path: &Path, opened: &Metadata) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (opened.dev(), opened.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use lanewright_model::ProcessId;

    fn holder(session: &str) -> Holder {
        let process = ProcessId { pid: std::process::id().cast_signed(), started: 1 };
        let owner = Owner { session_id: session.into(), process, host: "box".into(), boot: String::new() };
        Holder { owner, run: RunId::new("r1").unwrap(), since: Timestamp::from_unix_millis(0), program: Vec::new() }
    }

    #[test]
    fn lock_conflict_names_holder() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.lock");
        assert!(!is_held(&path));
        let first = RunLock::acquire(&path, &holder("a-rather-long-session")).unwrap();
        assert!(is_held(&path));
        let error = RunLock::acquire(&path, &holder("b")).unwrap_err();
        let who = " on box, session a-rather-long-session, for run r1, since 1970-01-01T00:00:00.000Z";
        assert!(error.to_string().ends_with(&format!("is held by pid {}{who}", std::process::id())), "{error}");
        drop(first);
        assert!(!is_held(&path));
        let _second = RunLock::acquire(&path, &holder("b")).unwrap();
        assert_eq!(read_holder(&path), Some(holder("b")));
    }

    #[test]
    fn damaged_lock_note_hides_only_the_holder() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.lock");
        let _first = RunLock::acquire(&path, &holder("a")).unwrap();
        fs::write(&path, "{\"session").unwrap();
        assert!(matches!(RunLock::acquire(&path, &holder("b")), Err(LockError::Held { holder: None, .. })));
    }

    #[test]
    fn lock_note_of_dead_holder_is_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.lock");
        fs::write(&path, serde_json::to_string(&holder("dead")).unwrap()).unwrap();
        assert!(!is_held(&path));
        RunLock::acquire(&path, &holder("b")).unwrap();
    }

    #[test]
    fn lock_is_not_inherited_by_child() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.lock");
        let lock = open_lock(&path).unwrap();
        assert!(take(&lock, || false).unwrap());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        // Closed, not unlocked: what the kernel does for a process that dies.
        drop(lock);
        // A child of another test has the file, too, from its fork to its exec.
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let mut free = !is_held(&path);
        while !free && std::time::Instant::now() < patience {
            std::thread::yield_now();
            free = !is_held(&path);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(free);
    }

    #[test]
    fn lock_of_a_dead_process_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join("run.lock");
        let mut dead = holder("dead");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        dead.owner.process.pid = child.id().cast_signed();
        child.wait().unwrap();
        let lock = RunLock::acquire(&path, &dead).unwrap();
        let is_wanted = || {
            let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
            open.filter(|file| fs::read_link(file.path()).is_ok_and(|at| at == path)).count() > 1
        };
        std::thread::scope(|scope| {
            let next = scope.spawn(|| RunLock::acquire(&path, &holder("next")).map(drop));
            while !is_wanted() && !next.is_finished() {
                std::thread::yield_now();
            }
            drop(lock);
            next.join().unwrap().unwrap();
        });
    }

    #[test]
    fn frequent_lock_checks_do_not_block_holder() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.lock");
        drop(RunLock::acquire(&path, &holder("a")).unwrap());
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        is_held(&path);
                    }
                });
            }
            let refused = (0..2000).filter(|_| RunLock::acquire(&path, &holder("a")).is_err()).count();
            done.store(true, Ordering::Relaxed);
            assert_eq!(refused, 0);
        });
    }

    #[test]
    fn lock_is_exclusive_while_its_file_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.lock");
        let inside = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..400 {
                        let Ok(lock) = RunLock::acquire(&path, &holder("a")) else { continue };
                        assert!(!inside.swap(true, Ordering::SeqCst), "two hold the lock");
                        inside.store(false, Ordering::SeqCst);
                        fs::remove_file(&path).unwrap();
                        drop(lock);
                    }
                });
            }
        });
    }
}
