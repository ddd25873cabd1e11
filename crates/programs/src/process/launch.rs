//! Starts supervisors.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lanewright_model::redact::is_secret;
use lanewright_model::{JobSpec, ProcessId, is_foreign_git_variable};

use super::ProcessError;
use super::files::JobFiles;
use super::platform;
use crate::process::LiveProcess;

/// The environment variable with the launcher of a supervisor, as `pid:start time`.
pub(super) const LAUNCHER_VARIABLE: &str = "LANEWRIGHT_LAUNCHER";

/// A supervisor that this process started and has to collect: give it to [`wait`](super::wait).
#[must_use = "a supervisor that is not waited for stays in the process table as a zombie"]
#[derive(Debug)]
pub struct Launched {
    child: Child,
}

impl Launched {
    /// The supervisor. Where the same job was launched twice, [`observe`](super::observe) finds the one that runs it.
    pub fn supervisor(&self) -> ProcessId {
        let pid = i32::try_from(self.child.id()).unwrap_or_default();
        ProcessId::of(pid).unwrap_or(ProcessId { pid, started: 0 })
    }

    pub(super) fn collect(mut self) {
        // Fails only if it was collected already; then it has ended as well.
        let _ = self.child.wait();
    }
}

/// Starts `program supervise <job directory>` for `spec`.
///
/// Launching the same job again is harmless at any time: however many supervisors are started in one directory, one of
/// them runs the job, once. A `spec.json` that is already there stays.
///
/// # Errors
/// The directory or the spec cannot be written, or the program cannot be started.
pub fn launch(program: &Path, job_directory: &Path, spec: &JobSpec) -> Result<Launched, ProcessError> {
    let directory = std::path::absolute(job_directory).map_err(ProcessError::file("find", job_directory))?;
    let files = JobFiles::at(&directory);
    files.create()?;
    let (secrets, open): (BTreeMap<_, _>, BTreeMap<_, _>) =
        spec.environment.clone().into_iter().partition(|(name, value)| is_secret(name, value, &spec.redact));
    if files.spec()?.is_none() {
        files.write_spec(&JobSpec { environment: open, ..spec.clone() })?;
    }
    let log = files.open_log()?;
    let mut command = Command::new(program);
    // No code runs between fork and exec, so that the system can start it without copying our memory; the
    // supervisor leaves our session by itself.
    command.arg0("lanewright").arg("supervise").arg(&directory).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    // Other variables that the job does not get stay with its supervisor, which takes their values out of the output.
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_foreign_git_variable(name) && !spec.inherits(name)) {
        command.env_remove(name);
    }
    // Secrets are never written: the supervisor has them in its own environment, which its steps inherit.
    command.envs(secrets);
    let me = ProcessId::current();
    command.env(LAUNCHER_VARIABLE, format!("{}:{}", me.pid, me.started));
    let child = command.spawn().map_err(|source| ProcessError::Launch { program: program.to_owned(), source })?;
    Ok(Launched { child })
}

/// Starts `program` with `arguments` so that it outlives us: in `directory`, in a session of its own, as `lanewright
/// detached`. What it prints goes into `output`. The child may be collected, and need not be where we end first.
pub fn start_detached(
    program: &Path,
    arguments: &[impl AsRef<OsStr>],
    directory: &Path,
    output: Output,
    environment: &[(&str, &str)],
) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.arg0("lanewright").arg(DETACHED).args(arguments).current_dir(directory).stdin(Stdio::null());
    match output {
        Output::Nowhere => command.stdout(Stdio::null()).stderr(Stdio::null()),
        Output::File(file) => command.stdout(file.try_clone()?).stderr(file),
    };
    command.envs(environment.iter().copied()).spawn()
}

#[derive(Debug)]
pub enum Output {
    Nowhere,
    File(std::fs::File),
}

/// The argument that has this program leave its parent's session before it carries out the rest.
pub const DETACHED: &str = "detached";

/// The word before the root of a pool of worktrees whose trash this program deletes, after [`DETACHED`].
pub const DELETE_TRASH: &str = "delete-trash";

/// Leaves the parent's session; for a process that was started as `lanewright detached`.
pub fn leave_session() {
    // Fails only for the leader of a process group, which has no terminal's signals to fear either.
    let _ = rustix::process::setsid();
}

/// Keeps the descriptors with which this process was started from every process that it starts: a supervisor outlives the
/// caller, and would hold a lock or a pipe of the caller's for as long. Standard input, output and error stay.
pub fn set_descriptors_close_on_exec() {
    close_fds::set_fds_cloexec(3, &[]);
}

/// The program to give to [`launch`]: this one, also when its file was replaced during the run.
pub fn current_program() -> io::Result<PathBuf> {
    platform::current_program()
}

pub(super) fn launcher() -> Option<ProcessId> {
    let launcher = std::env::var(LAUNCHER_VARIABLE).ok();
    let launcher = launcher.as_deref().and_then(|text| {
        let (pid, started) = text.split_once(':')?;
        Some(ProcessId { pid: pid.parse().ok()?, started: started.parse().ok()? })
    });
    launcher.or_else(|| ProcessId::of(rustix::process::getppid()?.as_raw_nonzero().get()))
}
