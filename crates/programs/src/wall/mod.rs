//! Walls around jobs: built by bubblewrap, which makes namespaces, or by Landlock, rules of the kernel (decision 73).
//!
//! A supervisor starts each step of its job with [`spawn`]. [`choose`] finds what this machine can build, by building it.

mod bubblewrap;
#[cfg_attr(not(target_os = "linux"), path = "no_landlock.rs")]
mod landlock;
mod scratch;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use lanewright_model::{Wall, WallBuilder};

pub use scratch::Scratch;

/// What this machine can build a wall with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// `None`: nothing.
    pub builder: Option<WallBuilder>,
    /// Why a better one is not used, each with its remedy.
    pub refused: Vec<Refusal>,
}

/// Why something builds no wall here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub reason: String,
    pub remedy: String,
}

/// What this process can build a wall with, found once.
pub fn available() -> &'static Choice {
    static AVAILABLE: OnceLock<Choice> = OnceLock::new();
    AVAILABLE.get_or_init(|| choose(&std::env::var("PATH").unwrap_or_default()))
}

/// The version of the kernel's Landlock that can be used; `None`: it has none.
pub fn landlock_version() -> Option<u32> {
    landlock::version()
}

/// The first of bubblewrap and Landlock that builds a wall which holds here: a program in it writes where it may and
/// nowhere else. `path` is the value of `PATH`.
pub fn choose(path: &str) -> Choice {
    let mut refused = Vec::new();
    let candidates = [bubblewrap::find(path).map(WallBuilder::Bubblewrap), Ok(WallBuilder::Landlock)];
    for candidate in candidates {
        match candidate.and_then(|builder| check(&builder).map(|()| builder)) {
            Ok(builder) => return Choice { builder: Some(builder), refused },
            Err(refusal) => refused.push(refusal),
        }
    }
    Choice { builder: None, refused }
}

/// Builds a wall and tries to get over it.
///
/// # Errors
/// It cannot be built, or does not hold.
pub fn check(builder: &WallBuilder) -> Result<(), Refusal> {
    let failed = |error: io::Error| refusal(builder, &error.to_string());
    let place = tempfile::Builder::new().prefix("lanewright-wall-").tempdir().map_err(failed)?;
    let place = place.path().canonicalize().map_err(failed)?;
    let (inside, outside) = (place.join("inside"), place.join("outside"));
    for directory in [&inside, &outside] {
        std::fs::create_dir(directory).map_err(failed)?;
    }
    let scratch = Scratch::create().map_err(failed)?;
    let wall = Wall {
        builder: builder.clone(),
        writable: vec![inside.clone()],
        fixed: Vec::new(),
        hidden: Vec::new(),
        network: true,
    };
    // The braces have the shell go on where a redirection fails.
    let line = format!(
        "echo x >own && {{ echo x >\"$TMPDIR/own\"; }} && {{ (echo x >'{}/foreign') 2>/dev/null; true; }}",
        outside.display()
    );
    let arguments = ["/bin/sh", "-c", &line].map(str::to_owned);
    let child = spawn(Some((&wall, &scratch)), &arguments, &inside, |command| {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    });
    let output = child.and_then(Child::wait_with_output).map_err(failed)?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match (output.status.success(), inside.join("own").exists(), outside.join("foreign").exists()) {
        (true, true, false) => Ok(()),
        (_, _, true) => Err(refusal(builder, "a program in it wrote outside")),
        _ if said.is_empty() => Err(refusal(builder, &format!("a program in it failed: {}", output.status))),
        _ => Err(refusal(builder, &said)),
    }
}

fn refusal(builder: &WallBuilder, reason: &str) -> Refusal {
    match builder {
        WallBuilder::Bubblewrap(_) => bubblewrap::refusal(reason),
        WallBuilder::Landlock => landlock::refusal(reason),
    }
}

/// Starts the program of `arguments` in `directory`, behind the wall if there is one, as the leader of a process group. `set_up`
/// sets its environment and its streams.
///
/// # Errors
/// The program cannot be started, or the wall cannot be built.
pub fn spawn(
    wall: Option<(&Wall, &Scratch)>,
    arguments: &[String],
    directory: &Path,
    set_up: impl FnOnce(&mut Command),
) -> io::Result<Child> {
    use std::os::unix::process::CommandExt;

    let (program, rest) = arguments.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = match wall {
        Some((Wall { builder: WallBuilder::Bubblewrap(bwrap), .. }, _)) => Command::new(bwrap),
        _ => Command::new(program),
    };
    command.current_dir(directory).process_group(0);
    set_up(&mut command);
    let Some((wall, scratch)) = wall else { return command.args(rest).spawn() };
    match &wall.builder {
        WallBuilder::Bubblewrap(bwrap) => {
            bubblewrap::require_program(program, &command, directory)?;
            let places = bubblewrap::Places::new(wall, directory, scratch);
            set_temporary(&mut command, places.temporary());
            command.args(places.arguments(wall, directory)).args(arguments);
            // The rules would take from a `bwrap` with the set-user-ID bit what it makes namespaces with.
            if bubblewrap::needs_rights(bwrap) { command.spawn() } else { landlock::spawn_apart(command) }
        }
        WallBuilder::Landlock => {
            set_temporary(&mut command, scratch.path());
            command.args(rest);
            landlock::spawn(command, wall, directory, scratch)
        }
    }
}

/// The value of the variable `name` as a program that `command` starts sees it.
fn variable(command: &Command, name: &str) -> Option<OsString> {
    let own = command.get_envs().find(|(known, _)| *known == name);
    own.map_or_else(|| std::env::var_os(name), |(_, value)| value.map(ToOwned::to_owned))
}

/// Has programs keep temporary files in `place`.
fn set_temporary(command: &mut Command, place: &Path) {
    command.env("TMPDIR", place);
    for name in ["TMP", "TEMP"] {
        if variable(command, name).is_some() {
            command.env(name, place);
        }
    }
}

/// `paths` without symbolic links, and without those that do not exist.
fn existing<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    paths.into_iter().filter_map(|path| path.canonicalize().ok()).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
