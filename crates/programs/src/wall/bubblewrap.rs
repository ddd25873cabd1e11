//! Walls of namespaces, made by `bwrap`.
//!
//! Its first process waits outside and exits as the program does; its second is the first process of the new namespace and
//! ends when nothing is left in it. `--die-with-parent` is not used: it would kill what the program left behind at once,
//! where a supervisor asks first.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use lanewright_files::regular_file;
use lanewright_model::Wall;

use super::scratch::Scratch;
use super::{Refusal, existing, variable};
use crate::process::find_program;

/// What is at a place inside.
enum Mount {
    /// A file or directory of outside.
    Same {
        writable: bool,
    },
    /// Another one of outside.
    Other(PathBuf),
    /// Few devices, no disks among them.
    Devices,
    /// The processes inside only.
    Processes,
    Nothing {
        is_directory: bool,
    },
}

pub(super) fn find(path: &str) -> Result<PathBuf, Refusal> {
    find_program(path, "bwrap").ok_or_else(|| Refusal {
        reason: "bubblewrap is not installed".to_owned(),
        remedy: "install it: `apt install bubblewrap` (Debian, Ubuntu), `dnf install bubblewrap` (Fedora)".to_owned(),
    })
}

/// Whether `bwrap` has the rights of its owner, as some systems without user namespaces install it.
pub(super) fn needs_rights(bwrap: &Path) -> bool {
    bwrap.metadata().is_ok_and(|metadata| metadata.mode() & SET_USER_ID != 0)
}

/// Why it builds no wall, from what it printed.
pub(super) fn refusal(said: &str) -> Refusal {
    let is_one =
        |file: &str, value: &str| regular_file::read_text(Path::new(file)).is_ok_and(|text| text.trim() == value);
    let remedy = if is_one("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "AppArmor refuses user namespaces: give /usr/bin/bwrap a profile with `userns,`, or set \
         `sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
    } else if is_one("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "allow user namespaces: `sysctl kernel.unprivileged_userns_clone=1`"
    } else if is_one("/proc/sys/user/max_user_namespaces", "0") {
        "allow user namespaces: `sysctl user.max_user_namespaces=10000`"
    } else {
        "in a container, allow user namespaces and mounts: `--security-opt seccomp=unconfined --security-opt \
         systempaths=unconfined` with Docker"
    };
    let first = said.lines().next().unwrap_or_default();
    Refusal { reason: format!("bubblewrap builds no wall ({first})"), remedy: remedy.to_owned() }
}

/// Refuses what `bwrap` would find missing only inside, as the system does for a program without a wall.
pub(super) fn require_program(name: &str, command: &Command, directory: &Path) -> io::Result<()> {
    let exists = if name.contains('/') {
        directory.join(name).exists()
    } else {
        let path = variable(command, "PATH").unwrap_or_default();
        find_program(&path.to_string_lossy(), name).is_some()
    };
    if exists && directory.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
}

const SET_USER_ID: u32 = 0o4000;

/// Directories that a job has for itself where nothing that it needs lies in them.
const PRIVATE: [&str; 2] = ["/tmp", "/dev/shm"];

/// What is where inside.
pub(super) struct Places {
    /// By place; a directory comes before what lies in it.
    mounts: Vec<(PathBuf, Mount)>,
    temporary: PathBuf,
}

impl Places {
    pub(super) fn new(wall: &Wall, directory: &Path, scratch: &Scratch) -> Self {
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let of = |paths: &[PathBuf], mount: fn() -> Mount| -> Vec<(PathBuf, Mount)> {
            existing(paths).into_iter().map(|path| (path, mount())).collect()
        };
        let mut mounts = of(&wall.writable, || Mount::Same { writable: true });
        mounts.extend(of(&wall.fixed, || Mount::Same { writable: false }));
        let needs =
            |place: &str| directory.starts_with(place) || mounts.iter().any(|(path, _)| path.starts_with(place));
        let [has_tmp, has_shm] = PRIVATE.map(|place| !needs(place));
        let temporary = if has_tmp { PathBuf::from("/tmp") } else { scratch.path().to_owned() };
        let beside_shm = !has_shm || (!has_tmp && temporary.starts_with("/dev/shm"));
        mounts.push((temporary.clone(), Mount::Other(scratch.path().to_owned())));
        if beside_shm {
            mounts.push(("/dev/shm".into(), Mount::Same { writable: false }));
        }
        mounts.push(("/".into(), Mount::Same { writable: false }));
        mounts.push(("/dev".into(), Mount::Devices));
        mounts.push(("/proc".into(), Mount::Processes));
        // What is both is hidden: the sort keeps the order of equal places.
        mounts.extend(existing(&wall.hidden).into_iter().map(|path| {
            let is_directory = path.is_dir();
            (path, Mount::Nothing { is_directory })
        }));
        mounts.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self { mounts, temporary }
    }

    /// Where programs keep temporary files, as they see it.
    pub(super) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// The arguments of `bwrap` before the program's.
    pub(super) fn arguments(&self, wall: &Wall, directory: &Path) -> Vec<OsString> {
        let mut arguments = vec!["--unshare-user", "--unshare-pid", "--unshare-ipc"];
        if !wall.network {
            arguments.push("--unshare-net");
        }
        // A session of its own: a signal to the group of the program inside does not reach `bwrap`, which would end before it.
        arguments.extend(["--new-session", "--cap-drop", "ALL"]);
        let mut arguments: Vec<OsString> = arguments.into_iter().map(OsString::from).collect();
        for (place, mount) in &self.mounts {
            let (option, source) = match mount {
                Mount::Same { writable: true } => ("--bind-try", Some(place.as_path())),
                Mount::Same { writable: false } => ("--ro-bind-try", Some(place.as_path())),
                Mount::Other(other) => ("--bind", Some(other.as_path())),
                Mount::Devices => ("--dev", None),
                Mount::Processes => ("--proc", None),
                Mount::Nothing { is_directory: true } => ("--tmpfs", None),
                Mount::Nothing { is_directory: false } => ("--ro-bind", Some(Path::new("/dev/null"))),
            };
            arguments.push(option.into());
            arguments.extend(source.map(Into::into));
            arguments.push(place.into());
        }
        arguments.extend(["--chdir".into(), directory.into(), "--".into()]);
        arguments
    }
}
