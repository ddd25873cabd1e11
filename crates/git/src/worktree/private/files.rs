//! Files of a git directory that are read and copied as they are.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lanewright_files::directory::{self, create_directory_unsynced};
use lanewright_files::handle::set_modified;
use lanewright_files::regular_file::{self, Links};
use lanewright_files::{atomic, if_there};

use crate::command::{Result, io_error};
use crate::query::OPERATION_FILES;

/// The name of what was stashed.
pub(super) const STASH: &str = "refs/stash";

/// The largest file, in bytes, that is copied of an operation in progress.
pub(super) const LARGEST_FILE: u64 = 1 << 20;

/// How many files are copied of an operation in progress at most.
const MOST_FILES: usize = 2_000;

/// What a small file of an agent's holds; `None`: there is none, or it is no such file.
pub(super) fn read_small(path: &Path) -> Option<String> {
    regular_file::read_text_with(path, Links::Refuse, LARGEST_FILE).ok()
}

/// The line in `HEAD`.
pub(super) fn head_in(git: &Path) -> Option<String> {
    let text = read_small(&git.join("HEAD"))?;
    Some(text.lines().next()?.to_owned()).filter(|line| line.starts_with("ref: ") || is_object_name(line))
}

/// The full name of the branch that is checked out, or that a rebase in progress goes back to.
pub(super) fn branch_in(git: &Path) -> Option<String> {
    let head = || head_in(git)?.strip_prefix("ref: ").map(str::to_owned);
    let rebased = || {
        let names = ["rebase-merge/head-name", "rebase-apply/head-name"];
        let name = names.iter().find_map(|name| read_small(&git.join(name)))?;
        Some(name.trim_end().to_owned()).filter(|name| name.starts_with("refs/heads/"))
    };
    head().or_else(rebased)
}

/// The states that were stashed, the oldest first.
pub(super) fn stashed(git: &Path) -> Vec<String> {
    let log = read_small(&git.join("logs/refs/stash")).unwrap_or_default();
    let names = log.lines().filter_map(|line| line.split(' ').nth(1)).filter(|name| is_object_name(name));
    names.map(str::to_owned).collect()
}

/// The names of the files that an index shares with others (`git update-index --split-index`).
pub(super) fn shared_indexes(git: &Path) -> Result<Vec<String>> {
    // Of an agent's anything may be there.
    let files = directory::entries_with_kinds(git)?.into_iter().filter(|(_, kind)| kind.is_file());
    let names = files.filter_map(|(path, _)| Some(path.file_name()?.to_str()?.to_owned()));
    Ok(names.filter(|name| name.starts_with("sharedindex.")).collect())
}

/// Copies a file with its time: git compares the times of files with that of the index. None there is as good.
pub(super) fn copy_with_time(from: &Path, to: &Path) -> Result<()> {
    let copy = || -> std::io::Result<()> {
        let found = fs::symlink_metadata(from)?;
        let staged = directory::with_suffix(to, ".new");
        regular_file::copy(from, &staged)?;
        set_modified(&staged, Links::Refuse, found.modified()?)?;
        Ok(atomic::rename(&staged, to)?)
    };
    if_there(copy()).map(drop).map_err(io_error("copy", from))
}

/// What the operation in progress in `git` names by its object alone, such as the other side of a merge or what a rebase put
/// aside, each with the file or directory that does; what was put aside is a stash. What is still to be done comes last.
pub(super) fn objects_of_operations(git: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for name in OPERATION_FILES {
        let place = git.join(name);
        let inner = directory::entries(&place).unwrap_or_default();
        for file in inner.into_iter().take(MOST_FILES).chain([place]) {
            let file_name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let name = if ["autostash", "MERGE_AUTOSTASH"].contains(&file_name) { STASH } else { name };
            let is_list = file_name.contains("todo") || file_name == "done";
            let text = read_small(&file).unwrap_or_default();
            let words = text.split(|character: char| !character.is_ascii_hexdigit());
            let objects = words.filter(|word| is_object_name(word) && word.bytes().any(|digit| digit != b'0'));
            found.extend(objects.map(|object| (is_list, name.to_owned(), object.to_owned())));
        }
    }
    found.sort();
    found.dedup();
    found.into_iter().map(|(_, name, object)| (name, object)).collect()
}

/// What in a store of objects is neither a file nor a directory.
pub(super) fn special_file(place: &Path) -> Option<PathBuf> {
    if !place.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Some(place.to_owned());
    }
    let inner = directory::entries_with_kinds(place).unwrap_or_default();
    inner.into_iter().find_map(|(path, kind)| match kind.is_dir() {
        true => special_file(&path),
        false => Some(path).filter(|_| !kind.is_file()),
    })
}

/// What a git directory sets for a sparse checkout of its worktree, as lines of a file of settings; `None`: it has none.
pub(super) fn sparse_settings(git: &Path) -> Option<String> {
    let text = read_small(&git.join("config.worktree"))?;
    let (mut section, mut found) = (String::new(), BTreeSet::new());
    for line in text.lines().map(|line| line.trim().to_ascii_lowercase()) {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']).to_owned();
        } else if let Some((key, "true")) = line.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
            found.insert(format!("{section}.{key}"));
        }
    }
    let line = |setting: &&&str| found.contains(**setting);
    let set = SPARSE.iter().filter(line).filter_map(|setting| setting.split_once('.'));
    let text: String = set.map(|(section, key)| format!("[{section}]\n\t{key} = true\n")).collect();
    Some(text).filter(|_| found.contains(SPARSE[0]))
}

/// The settings of sparse checkouts; without the first the others say nothing.
const SPARSE: [&str; 3] = ["core.sparsecheckout", "core.sparsecheckoutcone", "index.sparse"];

/// Copies a directory of small files; links are left out.
pub(super) fn copy_directory(from: &Path, to: &Path) -> Result<()> {
    atomic::remove_all(to).map_err(io_error("remove", to))?;
    create_directory_unsynced(to)?;
    for (path, kind) in directory::entries_with_kinds(from).unwrap_or_default().into_iter().take(MOST_FILES) {
        let target = to.join(path.file_name().unwrap_or_default());
        if kind.is_dir() {
            copy_directory(&path, &target)?;
        } else if kind.is_file() && path.metadata().is_ok_and(|found| found.len() <= LARGEST_FILE) {
            copy_with_time(&path, &target)?;
        }
    }
    Ok(())
}

/// A path as a value in a file of git's settings.
pub(super) fn quoted(path: &Path) -> Vec<u8> {
    let escaped = path.as_os_str().as_encoded_bytes().iter().flat_map(|&byte| match byte {
        b'"' => b"\\\"".to_vec(),
        b'\\' => b"\\\\".to_vec(),
        b'\n' => b"\\n".to_vec(),
        byte => vec![byte],
    });
    [b"\"".to_vec(), escaped.collect(), b"\"".to_vec()].concat()
}

pub(super) fn is_object_name(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}
