//! Reports changes in directories when they happen, so that nothing has to be looked at again and again.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch};

/// Watches directories, with one thread and one inotify instance, of which a user may have only 128.
#[derive(Debug)]
pub struct Changes {
    shared: Arc<Shared>,
    /// Its end is that of the thread.
    _alive: UnixStream,
}

#[derive(Debug)]
struct Shared {
    inotify: OwnedFd,
    watched: Mutex<HashMap<i32, Watched>>,
}

struct Watched {
    name: Option<OsString>,
    act: Box<dyn Fn() + Send>,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A directory is watched for as long as this exists.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    number: i32,
}

impl Changes {
    /// Reports changes at once, and then those of the next `rest` together. `None`: the system cannot, or allows no more.
    pub fn start(rest: Duration) -> Option<Self> {
        let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let shared = Arc::new(Shared { inotify, watched: Mutex::default() });
        let (alive, ended) = UnixStream::pair().ok()?;
        let of_thread = Arc::clone(&shared);
        thread::Builder::new().name("changes".to_owned()).spawn(move || of_thread.report(&ended, rest)).ok()?;
        Some(Self { shared, _alive: alive })
    }

    /// Calls `act` after files of the directory were written, created or renamed into it: all of them, or the one called
    /// `name`. A second watch of the same directory replaces the first. `None`: the directory cannot be watched.
    pub fn watch(&self, directory: &Path, name: Option<&OsStr>, act: impl Fn() + Send + 'static) -> Option<Watch> {
        let events = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
        // The thread waits for what is known of a change that comes at once.
        let mut watched = self.shared.watched();
        let number = add_watch(&self.shared.inotify, directory, events).ok()?;
        watched.insert(number, Watched { name: name.map(OsStr::to_owned), act: Box::new(act) });
        drop(watched);
        Some(Watch { shared: Arc::clone(&self.shared), number })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.watched().remove(&self.number);
        // Fails where the directory is gone, and its watch with it.
        let _ = remove_watch(&self.shared.inotify, self.number);
    }
}

impl Shared {
    fn watched(&self) -> MutexGuard<'_, HashMap<i32, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, ended: &UnixStream, rest: Duration) {
        loop {
            let mut ready = [PollFd::new(&self.inotify, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
            // An interrupted poll only means that there is nothing to read yet.
            let _ = poll(&mut ready, None);
            if !ready[1].revents().is_empty() {
                return;
            }
            let changed = self.changed();
            let watched = self.watched();
            changed.iter().filter_map(|number| watched.get(number)).for_each(|watched| (watched.act)());
            drop(watched);
            thread::sleep(rest);
        }
    }

    /// The watches of what has changed since the last call.
    fn changed(&self) -> BTreeSet<i32> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        let mut changed = BTreeSet::new();
        while let Ok(event) = reader.next() {
            let watched = self.watched();
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                changed.extend(watched.keys());
            }
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            let wanted = watched.get(&event.wd()).and_then(|watched| watched.name.as_deref());
            if wanted.is_none() || wanted == name {
                changed.insert(event.wd());
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn only_the_named_file_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let changes = Changes::start(Duration::ZERO).unwrap();
        let (sender, changed) = mpsc::channel();
        let all = tempfile::tempdir().unwrap();
        let named = sender.clone();
        let _named = changes.watch(directory.path(), Some(OsStr::new("b")), move || named.send("b").unwrap());
        let _all = changes.watch(all.path(), None, move || sender.send("any").unwrap());
        fs::write(directory.path().join("a"), "1").unwrap();
        fs::write(all.path().join("a"), "1").unwrap();
        assert_eq!(changed.recv().unwrap(), "any", "the events are in order");
        fs::rename(directory.path().join("a"), directory.path().join("b")).unwrap();
        assert_eq!(changed.iter().find(|&name| name != "any"), Some("b"));
    }

    #[test]
    fn nothing_is_reported_after_the_watch() {
        let directory = tempfile::tempdir().unwrap();
        let changes = Changes::start(Duration::ZERO).unwrap();
        let (sender, changed) = mpsc::channel::<()>();
        let watch = changes.watch(directory.path(), None, move || sender.send(()).unwrap());
        drop(watch);
        fs::write(directory.path().join("a"), "1").unwrap();
        assert_eq!(changed.recv(), Err(mpsc::RecvError), "the sender is gone");
        assert!(changes.watch(&directory.path().join("missing"), None, || {}).is_none());
    }
}
