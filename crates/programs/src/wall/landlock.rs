//! Walls of Landlock: rules of the kernel that a thread takes on, and every process that it starts has.
//!
//! Rules allow, and cannot except what lies in a place that they allow.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, RestrictionStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use lanewright_model::Wall;
use rustix::thread::{CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities};

use super::{Refusal, Scratch, existing};

/// Before it, files outside can be truncated.
const NEEDED: ABI = ABI::V3;

/// What is asked for where the kernel has it: devices' `ioctl`, signals and abstract sockets.
const WANTED: ABI = ABI::V6;

/// Devices that programs write to.
const DEVICES: [&str; 8] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"];

/// What root keeps: what package managers and test suites need for files of their own. Without the others it neither reads
/// disks nor the memory of processes outside, and mounts nothing.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

pub(super) fn refusal(reason: &str) -> Refusal {
    let remedy = match version() {
        None => "boot a kernel with `landlock` in the parameter `lsm` (`cat /sys/kernel/security/lsm`)".to_owned(),
        Some(found) => format!("use Linux 6.2 or newer (this kernel has version {found} of Landlock, 3 is needed)"),
    };
    Refusal { reason: format!("Landlock builds no wall ({reason})"), remedy }
}

/// The version of the kernel's Landlock that can be used; `None`: it has none.
pub(super) fn version() -> Option<u32> {
    let status = thread::spawn(|| Ruleset::default().handle_access(AccessFs::WriteFile)?.create()?.restrict_self());
    match status.join().ok()?.ok()?.landlock {
        LandlockStatus::Available { effective_abi, .. } => Some(effective_abi as u32),
        _ => None,
    }
}

/// Starts `command` behind `wall`.
pub(super) fn spawn(command: Command, wall: &Wall, directory: &Path, scratch: &Scratch) -> io::Result<Child> {
    let mut writable = existing(&wall.writable);
    writable.push(scratch.path().to_owned());
    let shared_memory = Path::new("/dev/shm");
    if ![directory].into_iter().chain(writable.iter().map(PathBuf::as_path)).any(|path| path.starts_with(shared_memory))
    {
        writable.push(shared_memory.to_owned());
    }
    let network = wall.network;
    spawn_with(command, move || {
        drop_capabilities()?;
        restrict(&writable, network).map_err(io::Error::other)
    })
}

/// Starts `command`, which makes namespaces of its own, so that it and what it starts reach no abstract socket of a process
/// outside, where the kernel has rules for that: no namespace but the network's holds them.
pub(super) fn spawn_apart(command: Command) -> io::Result<Child> {
    let rules = || Ruleset::default().scope(Scope::AbstractUnixSocket)?.create()?.restrict_self();
    spawn_with(command, move || rules().map_err(io::Error::other))
}

/// Starts `command` in a thread that has taken on rules before, since the thread that calls this must stay free of them.
fn spawn_with(
    mut command: Command,
    take_on: impl FnOnce() -> io::Result<RestrictionStatus> + Send + 'static,
) -> io::Result<Child> {
    let spawned = thread::Builder::new().name("landlock".to_owned()).spawn(move || {
        take_on()?;
        command.spawn()
    })?;
    spawned.join().map_err(|_| io::Error::other("the thread that takes on the rules of Landlock panicked"))?
}

fn restrict(writable: &[PathBuf], network: bool) -> Result<RestrictionStatus, RulesetError> {
    let mut rules =
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::from_all(NEEDED))?;
    if !network {
        rules = rules.handle_access(AccessNet::from_all(ABI::V4))?;
    }
    let rules = rules.set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(WANTED))?;
    let rules = rules.scope(Scope::from_all(WANTED))?.create()?;
    let to_device: BitFlags<AccessFs> = AccessFs::WriteFile | AccessFs::IoctlDev;
    rules
        .add_rules(path_beneath_rules(["/"], AccessFs::from_read(WANTED)))?
        .add_rules(path_beneath_rules(DEVICES, to_device))?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(WANTED)))?
        .restrict_self()
}

/// Takes from this thread what root could get around the rules with. Others have nothing that can be taken.
fn drop_capabilities() -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let mut sets = capabilities(None)?;
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        // Numbers that this kernel does not have are refused.
        let _ = remove_capability_from_bounding_set(capability);
    }
    for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
        *set = set.intersection(KEPT);
    }
    Ok(set_capabilities(None, sets)?)
}
