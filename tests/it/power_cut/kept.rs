//! What of a disk outlasts a power cut, and that made real.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::rc::Rc;

use super::disk::{Disk, Inode, Kind, ROOT, apply};

/// What of the unsynced is there after a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Nothing.
    Nothing,
    /// Names, but no contents: files are empty, or as they were when they were last synced.
    Names,
    /// Names and sizes; contents are zeros.
    Sizes,
    /// Contents of files that have a synced name.
    Contents,
    /// Everything but the n-th.
    AllBut(usize),
    /// Any, by this seed.
    Some(u64),
}

impl Disk {
    /// The files whose contents are not synced.
    fn unsynced(&self) -> Vec<Inode> {
        let is_unsynced = |inode: &Inode| match &self.nodes[*inode].kind {
            Kind::File { data, synced } => synced.as_ref() != Some(data),
            _ => false,
        };
        (ROOT..self.nodes.len()).filter(is_unsynced).collect()
    }

    /// How many names and contents a cut could take.
    pub(crate) fn at_risk(&self) -> usize {
        self.pending.len() + self.unsynced().len()
    }

    /// Makes the files below the disk those that a cut leaves; what is beside it is as it was then. Returns what is lost.
    pub(crate) fn restore(&self, root: &Path, kept: Kept, edit: &dyn Fn(&Path, Vec<u8>) -> Vec<u8>) -> Vec<String> {
        let mut names = self.synced.clone();
        let mut lost = Vec::new();
        for (at, change) in self.pending.iter().enumerate() {
            let keeps = match kept {
                Kept::Nothing | Kept::Contents => false,
                Kept::Names | Kept::Sizes => true,
                Kept::AllBut(one) => at != one,
                Kept::Some(seed) => is_chosen(seed, at),
            };
            if keeps {
                apply(&mut names, &change.entries);
            } else {
                lost.push(change.what.clone());
            }
        }
        let unsynced: BTreeMap<Inode, usize> =
            self.unsynced().into_iter().enumerate().map(|(at, inode)| (inode, self.pending.len() + at)).collect();
        let contents = |inode: Inode, data: &Vec<u8>, synced: Option<&Rc<Vec<u8>>>| -> (Vec<u8>, bool) {
            let old = || synced.map(|synced| synced.to_vec()).unwrap_or_default();
            let Some(&at) = unsynced.get(&inode) else { return (data.clone(), false) };
            match kept {
                Kept::Contents => (data.clone(), false),
                Kept::AllBut(one) if one != at => (data.clone(), false),
                Kept::Some(seed) if is_chosen(seed, at) => (data.clone(), false),
                Kept::Sizes => {
                    let mut zeros = old();
                    zeros.resize(data.len(), 0);
                    (zeros, true)
                }
                _ => (old(), true),
            }
        };
        let _ = fs::remove_dir_all(&self.disk);
        let mut places = vec![(self.inode(root).unwrap(), root.to_owned())];
        let mut written = BTreeSet::new();
        while let Some((directory, path)) = places.pop() {
            for (name, inode) in &names[&directory] {
                let (path, node) = (path.join(name), &self.nodes[*inode]);
                match &node.kind {
                    Kind::Directory => {
                        fs::create_dir_all(&path).unwrap();
                        places.push((*inode, path));
                    }
                    Kind::Link(target) => {
                        if node.on_disk {
                            symlink(target, &path).unwrap();
                        }
                    }
                    Kind::File { data, synced } => {
                        let (bytes, is_lost) = contents(*inode, data, synced.as_ref());
                        if is_lost && written.insert(*inode) {
                            lost.push(format!("contents of {}", path.display()));
                        }
                        let bytes = edit(&path, bytes);
                        if fs::read(&path).ok().as_ref() != Some(&bytes) {
                            fs::write(&path, bytes).unwrap();
                            fs::set_permissions(&path, fs::Permissions::from_mode(node.mode)).unwrap();
                        }
                    }
                }
            }
        }
        lost
    }

    /// What differs between this and the files below `root` as they are.
    pub(crate) fn differences(&self, root: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut places = vec![(self.inode(root).unwrap(), root.to_owned())];
        while let Some((directory, path)) = places.pop() {
            let there: BTreeSet<OsString> =
                fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            let known: BTreeSet<OsString> = self.names[&directory].keys().cloned().collect();
            found.extend(there.symmetric_difference(&known).map(|name| format!("{}", path.join(name).display())));
            for (name, inode) in self.names[&directory].iter().filter(|(name, _)| there.contains(*name)) {
                let path = path.join(name);
                match &self.nodes[*inode].kind {
                    Kind::Directory => places.push((*inode, path)),
                    Kind::Link(target) if fs::read_link(&path).ok().as_ref() != Some(target) => {
                        found.push(format!("link {}", path.display()));
                    }
                    Kind::File { data, .. } if fs::read(&path).ok().as_ref() != Some(data) => {
                        found.push(format!("contents of {}", path.display()));
                    }
                    _ => {}
                }
            }
        }
        found
    }
}

/// One of two, by a seed.
fn is_chosen(seed: u64, at: usize) -> bool {
    splitmix(seed.wrapping_add(at as u64)).is_multiple_of(2)
}

pub(crate) fn splitmix(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
