//! A disk as the system calls of a run make it, and what of it outlasts a power cut: what was synced, and any part of
//! the rest (as in ALICE: Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use crate::support::trace::{Argument, Call, texts_of};

pub(super) type Inode = usize;
pub(super) const ROOT: Inode = 0;

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Directory,
    Link(PathBuf),
    /// What it holds, and what of that is synced; `None`: nothing ever was.
    File {
        data: Rc<Vec<u8>>,
        synced: Option<Rc<Vec<u8>>>,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    /// Whether a cut can take from it; the rest is beside the disk.
    pub(super) on_disk: bool,
}

pub(super) type Names = HashMap<Inode, BTreeMap<OsString, Inode>>;

/// What one call changed in directories; all of it is kept or none.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) what: String,
    pub(super) entries: Vec<(Inode, OsString, Option<Inode>)>,
}

/// An open file, which several descriptors may share.
#[derive(Debug, Clone)]
struct Open {
    inode: Inode,
    offset: usize,
    append: bool,
}

#[derive(Debug, Clone, Default)]
struct Process {
    directory: PathBuf,
    /// The threads of a process share a table.
    table: usize,
}

#[derive(Clone)]
pub(crate) struct Disk {
    /// The directory whose contents a cut takes from.
    pub(super) disk: PathBuf,
    pub(super) nodes: Vec<Node>,
    pub(super) names: Names,
    pub(super) synced: Names,
    pub(super) pending: Vec<Change>,
    processes: HashMap<u32, Process>,
    tables: Vec<HashMap<i32, usize>>,
    opened: Vec<Open>,
    /// What files held when a sync of them began.
    syncing: HashMap<(u32, usize), Rc<Vec<u8>>>,
    /// The number of calls that changed something.
    pub(crate) changes: usize,
}

impl Disk {
    /// The files below `root`, all synced. A cut takes from what is below `root/disk`.
    pub(crate) fn of(root: &Path) -> Self {
        let node = Node { kind: Kind::Directory, mode: 0o755, on_disk: false };
        let mut disk = Self {
            disk: root.join("disk"),
            nodes: vec![node],
            names: HashMap::from([(ROOT, BTreeMap::new())]),
            synced: HashMap::from([(ROOT, BTreeMap::new())]),
            pending: Vec::new(),
            processes: HashMap::new(),
            tables: Vec::new(),
            opened: Vec::new(),
            syncing: HashMap::new(),
            changes: 0,
        };
        let mut place = ROOT;
        for part in root.components().skip(1) {
            place = disk.add(place, part.as_os_str(), Kind::Directory, 0o755);
        }
        disk.read(root, place);
        disk.synced = disk.names.clone();
        disk.pending.clear();
        disk.changes = 0;
        disk
    }

    fn read(&mut self, directory: &Path, inode: Inode) {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let (path, metadata) = (entry.path(), entry.metadata().unwrap());
            let kind = if metadata.is_dir() {
                Kind::Directory
            } else if metadata.is_symlink() {
                Kind::Link(fs::read_link(&path).unwrap())
            } else {
                let data = Rc::new(fs::read(&path).unwrap());
                Kind::File { data: data.clone(), synced: Some(data) }
            };
            let below = self.add(inode, &entry.file_name(), kind, metadata.mode() & 0o777);
            if metadata.is_dir() {
                self.read(&path, below);
            }
        }
    }

    fn add(&mut self, directory: Inode, name: &OsStr, kind: Kind, mode: u32) -> Inode {
        let inode = self.nodes.len();
        let on_disk = self.nodes[directory].on_disk || self.path_is_disk(directory, name);
        if matches!(kind, Kind::Directory) {
            self.names.insert(inode, BTreeMap::new());
            self.synced.insert(inode, BTreeMap::new());
        }
        self.nodes.push(Node { kind, mode, on_disk });
        self.change(format!("create {}", name.to_string_lossy()), vec![(directory, name.to_owned(), Some(inode))]);
        inode
    }

    fn path_is_disk(&self, directory: Inode, name: &OsStr) -> bool {
        self.disk.file_name() == Some(name) && self.inode(self.disk.parent().unwrap()) == Some(directory)
    }

    fn change(&mut self, what: String, entries: Vec<(Inode, OsString, Option<Inode>)>) {
        self.changes += 1;
        apply(&mut self.names, &entries);
        if entries.iter().all(|(directory, ..)| self.nodes[*directory].on_disk) {
            self.pending.push(Change { what, entries });
        } else {
            apply(&mut self.synced, &entries);
        }
    }

    pub(super) fn inode(&self, path: &Path) -> Option<Inode> {
        let (directory, name) = self.entry(path)?;
        if name.is_empty() {
            return Some(directory);
        }
        let inode = *self.names[&directory].get(&name)?;
        match &self.nodes[inode].kind {
            Kind::Link(target) => self.inode(&path.parent()?.join(target)),
            _ => Some(inode),
        }
    }

    /// The directory of a path and its last name, which may be a link; `None`: there is no such directory here.
    fn entry(&self, path: &Path) -> Option<(Inode, OsString)> {
        let (mut stack, mut parts) = (vec![ROOT], path.components().skip(1).peekable());
        while let Some(part) = parts.next() {
            match part {
                Component::ParentDir => {
                    stack.pop();
                }
                Component::Normal(name) if parts.peek().is_none() => return Some((*stack.last()?, name.to_owned())),
                Component::Normal(name) => {
                    let inode = *self.names[stack.last()?].get(name)?;
                    match &self.nodes[inode].kind {
                        Kind::Directory => stack.push(inode),
                        Kind::Link(target) => {
                            let here = self.path_of(&stack);
                            let rest: PathBuf = parts.collect();
                            return self.entry(&here.join(target).join(rest));
                        }
                        Kind::File { .. } => return None,
                    }
                }
                _ => {}
            }
        }
        Some((*stack.last()?, OsString::new()))
    }

    fn path_of(&self, stack: &[Inode]) -> PathBuf {
        let names = stack.windows(2).map(|pair| {
            let found = self.names[&pair[0]].iter().find(|(_, inode)| **inode == pair[1]);
            found.expect("a directory has a name").0
        });
        Path::new("/").join(names.collect::<PathBuf>())
    }

    fn path(&mut self, call: &Call, directory: Option<usize>, at: usize) -> PathBuf {
        let base = match directory.map(|at| &call.arguments[at]) {
            Some(Argument::File(_, path)) => path.clone(),
            _ => self.process(call.pid).directory.clone(),
        };
        base.join(OsStr::from_bytes(call.text(at)))
    }

    fn process(&mut self, pid: u32) -> &mut Process {
        if !self.processes.contains_key(&pid) {
            self.tables.push(HashMap::new());
            let process = Process { directory: PathBuf::from("/"), table: self.tables.len() - 1 };
            self.processes.insert(pid, process);
        }
        self.processes.get_mut(&pid).unwrap()
    }

    fn table(&mut self, pid: u32) -> &mut HashMap<i32, usize> {
        let table = self.process(pid).table;
        &mut self.tables[table]
    }

    /// The open file behind a descriptor; `None`: something else, such as a pipe.
    fn opened(&mut self, call: &Call, at: usize) -> Option<&mut Open> {
        let (descriptor, Argument::File(_, path)) = (call.descriptor(at), &call.arguments[at]) else { return None };
        let named = self.inode(path).filter(|_| path.is_absolute());
        let known = self.table(call.pid).get(&descriptor).copied();
        let is_deleted = path.as_os_str().as_bytes().ends_with(b" (deleted)");
        if let Some(known) = known.filter(|known| is_deleted || named == Some(self.opened[*known].inode)) {
            return self.opened.get_mut(known);
        }
        // Opened before the trace, or by a program that gave it to this one.
        self.opened.push(Open { inode: named?, offset: 0, append: true });
        let open = self.opened.len() - 1;
        self.table(call.pid).insert(descriptor, open);
        self.opened.get_mut(open)
    }

    /// Before a call that has not returned yet: a sync covers only what was written when it began.
    pub(crate) fn begin(&mut self, call: &Call) {
        if matches!(call.name.as_str(), "fsync" | "fdatasync")
            && let Some(open) = self.opened(call, 0).cloned()
            && let Kind::File { data, .. } = &self.nodes[open.inode].kind
        {
            self.syncing.insert((call.pid, call.began), data.clone());
        }
    }

    pub(crate) fn apply(&mut self, call: &Call) {
        if call.result < 0 {
            return;
        }
        match call.name.as_str() {
            "clone" | "clone3" | "vfork" | "fork" => {
                let child = u32::try_from(call.result).unwrap();
                let shares = call.arguments.iter().any(|word| format!("{word:?}").contains("CLONE_FILES"));
                self.start(call.pid, child, shares);
            }
            "chdir" => self.process(call.pid).directory = self.path(call, None, 0),
            "fchdir" => {
                if let Argument::File(_, path) = &call.arguments[0] {
                    self.process(call.pid).directory = path.clone();
                }
            }
            "open" | "creat" | "openat" | "openat2" => self.open(call),
            "dup" | "dup2" | "dup3" | "fcntl" => self.duplicate(call),
            "write" => self.write(call, None, call.text(1)),
            "writev" => self.write(call, None, &texts_of(call.word(1)).concat()),
            "pwrite64" => self.write(call, Some(usize::try_from(call.number(3)).unwrap()), call.text(1)),
            "copy_file_range" => self.copy(call, 0, 2),
            "sendfile" => self.copy(call, 1, 0),
            "lseek" => {
                if let Some(open) = self.opened(call, 0) {
                    open.offset = usize::try_from(call.result).unwrap();
                }
            }
            "ftruncate" => {
                let size = usize::try_from(call.number(1)).unwrap();
                if let Some(inode) = self.opened(call, 0).map(|open| open.inode) {
                    self.edit(inode, |data| data.resize(size, 0));
                }
            }
            "truncate" => {
                let (path, size) = (self.path(call, None, 0), usize::try_from(call.number(1)).unwrap());
                if let Some(inode) = self.inode(&path) {
                    self.edit(inode, |data| data.resize(size, 0));
                }
            }
            "mkdir" => self.make(call, None, 0, Kind::Directory, 0o755),
            "mkdirat" => self.make(call, Some(0), 1, Kind::Directory, 0o755),
            "symlink" => self.make(call, None, 1, Kind::Link(OsStr::from_bytes(call.text(0)).into()), 0o777),
            "symlinkat" => self.make(call, Some(1), 2, Kind::Link(OsStr::from_bytes(call.text(0)).into()), 0o777),
            "unlink" | "rmdir" => self.remove(call, None, 0),
            "unlinkat" => self.remove(call, Some(0), 1),
            "rename" => self.rename(call, (None, 0), (None, 1), false),
            "renameat" | "renameat2" => {
                let exchange = call.arguments.get(4).is_some_and(|word| format!("{word:?}").contains("EXCHANGE"));
                self.rename(call, (Some(0), 1), (Some(2), 3), exchange);
            }
            "link" => self.link(call, (None, 0), (None, 1)),
            "linkat" => self.link(call, (Some(0), 1), (Some(2), 3)),
            "fsync" | "fdatasync" => self.sync(call),
            "sync" | "syncfs" => panic!("not modelled: {call:?}"),
            "fchmod" => {
                let mode = u32::from_str_radix(call.word(1), 8).unwrap();
                if let Some(inode) = self.opened(call, 0).map(|open| open.inode) {
                    self.nodes[inode].mode = mode;
                }
            }
            "chmod" | "fchmodat" => {
                let (directory, at) = if call.name == "chmod" { (None, 0) } else { (Some(0), 1) };
                let path = self.path(call, directory, at);
                let mode = u32::from_str_radix(call.word(at + 1), 8).unwrap();
                if let Some(inode) = self.inode(&path) {
                    self.nodes[inode].mode = mode;
                }
            }
            _ => {}
        }
    }

    /// A process or thread of `parent`; its own calls may be in the trace before its parent's call returns.
    pub(crate) fn start(&mut self, parent: u32, child: u32, shares: bool) {
        if self.processes.contains_key(&child) {
            return;
        }
        let mut process = self.process(parent).clone();
        if !shares {
            let table = self.tables[process.table].clone();
            self.tables.push(table);
            process.table = self.tables.len() - 1;
        }
        self.processes.insert(child, process);
    }

    fn open(&mut self, call: &Call) {
        let (directory, at) = if call.name.starts_with("openat") { (Some(0), 1) } else { (None, 0) };
        let path = self.path(call, directory, at);
        let flags = if call.name == "creat" { "O_CREAT|O_TRUNC" } else { call.word(at + 1) };
        let has = |flag: &str| flags.contains(flag);
        let descriptor = i32::try_from(call.result).unwrap();
        self.table(call.pid).remove(&descriptor);
        let inode = match self.inode(&path) {
            Some(inode) => inode,
            None if has("O_CREAT") => {
                let Some((directory, name)) = self.entry(&path) else { return };
                let mode =
                    call.arguments.get(at + 2).map_or(0o666, |_| u32::from_str_radix(call.word(at + 2), 8).unwrap());
                let data = Kind::File { data: Rc::default(), synced: None };
                self.add(directory, &name, data, mode & 0o755)
            }
            None => return,
        };
        if has("O_TRUNC") {
            self.edit(inode, Vec::clear);
        }
        self.opened.push(Open { inode, offset: 0, append: has("O_APPEND") });
        let open = self.opened.len() - 1;
        self.table(call.pid).insert(descriptor, open);
    }

    fn duplicate(&mut self, call: &Call) {
        if call.name == "fcntl" && !call.word(1).starts_with("F_DUPFD") {
            return;
        }
        let (from, to) = (call.descriptor(0), i32::try_from(call.result).unwrap());
        match self.table(call.pid).get(&from).copied() {
            Some(open) => self.table(call.pid).insert(to, open),
            None => self.table(call.pid).remove(&to),
        };
    }

    fn edit(&mut self, inode: Inode, edit: impl FnOnce(&mut Vec<u8>)) {
        let on_disk = self.nodes[inode].on_disk;
        if let Kind::File { data, synced } = &mut self.nodes[inode].kind {
            edit(Rc::make_mut(data));
            if !on_disk {
                *synced = Some(data.clone());
            }
            self.changes += 1;
        }
    }

    fn write(&mut self, call: &Call, at: Option<usize>, bytes: &[u8]) {
        let written = usize::try_from(call.result).unwrap();
        let Some(open) = self.opened(call, 0).cloned() else { return };
        let Kind::File { data, .. } = &self.nodes[open.inode].kind else { return };
        let start = if open.append { data.len() } else { at.unwrap_or(open.offset) };
        let end = start + written;
        self.edit(open.inode, |data| {
            if data.len() < end {
                data.resize(end, 0);
            }
            data[start..end].copy_from_slice(&bytes[..written]);
        });
        if at.is_none() {
            self.opened(call, 0).unwrap().offset = end;
        }
    }

    fn copy(&mut self, call: &Call, from: usize, to: usize) {
        let count = usize::try_from(call.result).unwrap();
        let Some(source) = self.opened(call, from).cloned() else { return };
        let Some(target) = self.opened(call, to).cloned() else { return };
        let Kind::File { data, .. } = &self.nodes[source.inode].kind else { return };
        let bytes = data[source.offset..source.offset + count].to_vec();
        self.edit(target.inode, |data| {
            data.resize(data.len().max(target.offset + count), 0);
            data[target.offset..target.offset + count].copy_from_slice(&bytes);
        });
        self.opened(call, from).unwrap().offset += count;
        self.opened(call, to).unwrap().offset += count;
    }

    fn make(&mut self, call: &Call, directory: Option<usize>, at: usize, kind: Kind, mode: u32) {
        let path = self.path(call, directory, at);
        if let Some((directory, name)) = self.entry(&path) {
            self.add(directory, &name, kind, mode);
        }
    }

    fn remove(&mut self, call: &Call, directory: Option<usize>, at: usize) {
        let path = self.path(call, directory, at);
        if let Some((directory, name)) = self.entry(&path) {
            self.change(format!("remove {}", path.display()), vec![(directory, name, None)]);
        }
    }

    fn rename(&mut self, call: &Call, from: (Option<usize>, usize), to: (Option<usize>, usize), exchange: bool) {
        let (from, to) = (self.path(call, from.0, from.1), self.path(call, to.0, to.1));
        let (Some((here, old)), Some((there, new))) = (self.entry(&from), self.entry(&to)) else { return };
        let (moved, replaced) = (self.names[&here].get(&old).copied(), self.names[&there].get(&new).copied());
        if moved.is_some() && (moved != replaced) {
            let left = if exchange { replaced } else { None };
            let what = format!("rename {} to {}", from.display(), to.display());
            self.change(what, vec![(here, old, left), (there, new, moved)]);
        }
    }

    fn link(&mut self, call: &Call, from: (Option<usize>, usize), to: (Option<usize>, usize)) {
        let (from, to) = (self.path(call, from.0, from.1), self.path(call, to.0, to.1));
        let (Some((here, old)), Some((there, new))) = (self.entry(&from), self.entry(&to)) else { return };
        let inode = self.names[&here].get(&old).copied();
        self.change(format!("link {} to {}", from.display(), to.display()), vec![(there, new, inode)]);
    }

    fn sync(&mut self, call: &Call) {
        let covered = self.syncing.remove(&(call.pid, call.began));
        let Some(inode) = self.opened(call, 0).map(|open| open.inode) else { return };
        self.changes += 1;
        if let Kind::File { data, synced } = &mut self.nodes[inode].kind {
            *synced = Some(covered.unwrap_or_else(|| data.clone()));
        }
        // Also the names that lead to it, as ext4, XFS and btrfs have it.
        let mut leads_to = BTreeSet::from([inode]);
        for change in self.pending.iter().rev() {
            for (directory, _, named) in &change.entries {
                if named.is_some_and(|named| leads_to.contains(&named)) {
                    leads_to.insert(*directory);
                }
            }
        }
        let is_covered = |change: &Change| {
            change.entries.iter().any(|(directory, _, named)| {
                *directory == inode || named.is_some_and(|named| leads_to.contains(&named))
            })
        };
        let (covered, pending) = std::mem::take(&mut self.pending).into_iter().partition(is_covered);
        self.pending = pending;
        let covered: Vec<Change> = covered;
        covered.iter().for_each(|change| apply(&mut self.synced, &change.entries));
    }
}

pub(super) fn apply(names: &mut Names, entries: &[(Inode, OsString, Option<Inode>)]) {
    for (directory, name, inode) in entries {
        let directory = names.get_mut(directory).unwrap();
        match inode {
            Some(inode) => directory.insert(name.clone(), *inode),
            None => directory.remove(name),
        };
    }
}
