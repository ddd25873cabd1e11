//! A tree made of another one and a few changes, without an index: what did not change is not looked at.

use std::collections::BTreeMap;

use git2::{ErrorClass, ErrorCode, Oid, Repository, Tree, TreeEntry};

/// What paths hold now; `None`: nothing.
pub(crate) type Changes = BTreeMap<Vec<u8>, Option<(u32, Oid)>>;

/// `tree` with `changes`. As in git, no directory is empty, the root excepted.
pub(crate) fn updated(git: &Repository, tree: Oid, changes: &Changes) -> Result<Oid, git2::Error> {
    let changes: Vec<Change<'_>> = changes.iter().map(|(path, now)| (path.as_slice(), *now)).collect();
    let tree = git.find_tree(tree)?;
    match rewrite(git, Some(&tree), &changes)? {
        Some(tree) => Ok(tree),
        None => git.treebuilder(None)?.write(),
    }
}

/// A path, seen from some directory, and what it holds now.
type Change<'a> = (&'a [u8], Option<(u32, Oid)>);

/// Writes the directory that was `tree`; `None`: nothing is left in it.
fn rewrite(git: &Repository, tree: Option<&Tree<'_>>, changes: &[Change<'_>]) -> Result<Option<Oid>, git2::Error> {
    let mut builder = git.treebuilder(tree)?;
    let (mut files, mut directories) = (Vec::new(), BTreeMap::<&[u8], Vec<Change<'_>>>::new());
    for &(path, now) in changes {
        match path.iter().position(|&byte| byte == b'/') {
            Some(slash) => directories.entry(&path[..slash]).or_default().push((&path[slash + 1..], now)),
            None => files.push((path, now)),
        }
    }
    // What is removed first makes room: a file may have become a directory, and the other way round.
    for (name, _) in files.iter().filter(|(name, now)| now.is_none() && is_file(tree, name)) {
        builder.remove(*name)?;
    }
    for (name, inner) in directories {
        let known = tree.and_then(|tree| tree.get_name_bytes(name)).filter(|it| it.filemode() == DIRECTORY);
        let known = known.map(|entry| git.find_tree(entry.id())).transpose()?;
        match rewrite(git, known.as_ref(), &inner)? {
            Some(inner) => drop(builder.insert(name, inner, DIRECTORY)?),
            None if known.is_some() => builder.remove(name)?,
            None => {}
        }
    }
    for (name, now) in files {
        if let Some((mode, object)) = now {
            builder.insert(name, object, mode.cast_signed())?;
        }
    }
    if builder.is_empty() {
        return Ok(None);
    }
    let kept = |entry: &TreeEntry<'_>| builder.get(entry.name_bytes()).is_ok_and(|kept| kept.is_some());
    refuse_missing(git, tree.into_iter().flatten().filter(kept))?;
    builder.write().map(Some)
}

/// As `git write-tree` does: a tree that is new leads to nothing that git has lost. What was inserted was looked for.
fn refuse_missing<'a>(git: &Repository, entries: impl Iterator<Item = TreeEntry<'a>>) -> Result<(), git2::Error> {
    let objects = git.odb()?;
    for entry in entries {
        if entry.filemode() != SUBMODULE && !objects.exists(entry.id()) {
            let what = format!("{} of {:?} is missing", entry.id(), String::from_utf8_lossy(entry.name_bytes()));
            return Err(git2::Error::new(ErrorCode::NotFound, ErrorClass::Odb, what));
        }
    }
    Ok(())
}

const DIRECTORY: i32 = 0o040000;
const SUBMODULE: i32 = 0o160000;

fn is_file(tree: Option<&Tree<'_>>, name: &[u8]) -> bool {
    tree.and_then(|tree| tree.get_name_bytes(name)).is_some_and(|entry| entry.filemode() != DIRECTORY)
}
