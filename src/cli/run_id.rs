//! Names of new runs.

use std::fs;
use std::path::PathBuf;

use lanewright_model::RunId;
use lanewright_model::text::headline;
use lanewright_store::StateDirectory;

use super::{Result, now};

/// `P1-20260131-120000-1a2b3c4d`: the phase, the time, and random digits.
pub(super) fn new_run_id(phase: &str) -> RunId {
    let moment = now().0.format("%Y%m%d-%H%M%S");
    let unique = uuid::Uuid::now_v7().simple().to_string();
    let phase: String = phase.chars().take(40).collect();
    let phase = phase.trim_end_matches(['.', '-']);
    let id = format!("{phase}-{moment}-{}", &unique[unique.len() - 8..]);
    RunId::new(&id).unwrap_or_else(|_| {
        RunId::new(&format!("run-{}", headline(&unique, 40))).expect("hexadecimal digits make an id")
    })
}

/// A name that no other run gets. Dropped before the run has begun, it is free again.
pub(super) struct ReservedRunId {
    pub(crate) id: RunId,
    directory: PathBuf,
}

impl ReservedRunId {
    /// The first of `ids` that no run has: of all processes that ask for the same one, only one gets it.
    pub(super) fn first_of(state: &StateDirectory, ids: impl Iterator<Item = RunId>) -> Result<Option<Self>> {
        for id in ids {
            let directory = state.run(&id);
            // Making the directory reserves the id: whether it exists need not be asked before.
            if directory.create_new()? {
                return Ok(Some(Self { id, directory: directory.directory() }));
            }
        }
        Ok(None)
    }
}

impl Drop for ReservedRunId {
    fn drop(&mut self) {
        // Fails once the run has put something there.
        let _ = fs::remove_dir(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn id_is_reserved_once_by_concurrent_processes() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        state.create().unwrap();
        let ids = || (0..8).map(|number| RunId::new(&format!("r{number}")).unwrap());
        let reserve = || ReservedRunId::first_of(&state, ids()).unwrap().unwrap();
        let reserved: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(reserve)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(reserved.iter().map(|it| it.id.clone()).collect::<BTreeSet<_>>(), ids().collect());
        assert!(ReservedRunId::first_of(&state, ids()).unwrap().is_none());
    }

    #[test]
    fn dropped_reservation_frees_the_id() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        state.create().unwrap();
        let id = RunId::new("r1").unwrap();
        let reserve = || ReservedRunId::first_of(&state, [id.clone()].into_iter()).unwrap();
        drop(reserve().unwrap());
        let reserved = reserve().unwrap();
        state.run(&id).create().unwrap();
        drop(reserved);
        assert!(reserve().is_none(), "a run has it");
        std::fs::remove_dir_all(state.run(&id).directory()).unwrap();
        std::fs::write(state.run(&id).log(), "").unwrap();
        assert!(reserve().is_none(), "a log has it");
    }
}
