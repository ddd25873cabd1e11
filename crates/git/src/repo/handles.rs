//! What libgit2 has open of a repository, kept for the next question: opening it reads every setting and much else.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::repo::{Stamps, usual_files};

/// Shared by all copies of a repository.
#[derive(Clone, Default)]
pub(crate) struct Handles(Arc<Mutex<Vec<Handle>>>);

struct Handle {
    place: PathBuf,
    /// The files that libgit2 reads when it opens a repository, and not again, and the directory of the packs, which it
    /// keeps open after git has removed them.
    read: Stamps,
    git: git2::Repository,
}

impl Handles {
    /// Runs `act` with what is open at `place`, in the repository of `common`, else with what `open` opens. Where that fails,
    /// it is not kept: what it knew may be out of date.
    pub(crate) fn with<T>(
        &self,
        [place, common]: [&Path; 2],
        open: impl FnOnce() -> Result<git2::Repository, git2::Error>,
        act: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>,
    ) -> Option<T> {
        let handle = match self.take(place) {
            Some(handle) => handle,
            None => {
                let read = Stamps::of(read_at_opening(common));
                Handle { place: place.to_owned(), read, git: open().ok()? }
            }
        };
        let done = act(&handle.git).ok()?;
        self.locked().push(handle);
        Some(done)
    }

    fn take(&self, place: &Path) -> Option<Handle> {
        let mut kept = self.locked();
        while let Some(at) = kept.iter().position(|handle| handle.place == place) {
            let handle = kept.swap_remove(at);
            if handle.read.are_current() {
                return Some(handle);
            }
        }
        None
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Handle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_at_opening(common: &Path) -> Vec<PathBuf> {
    let more = ["shallow", "info/grafts", "objects/info/alternates", "objects/pack"].map(|file| common.join(file));
    usual_files(common).into_iter().chain(more).collect()
}

impl fmt::Debug for Handles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} handles", self.locked().len())
    }
}
