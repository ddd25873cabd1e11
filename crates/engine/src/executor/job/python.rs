//! A Python environment outside of the checkout that has it installed as an editable package: its programs run the checkout's
//! code in every worktree, and an installation by a lane would have it run the lane's code for the user.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lanewright_files::time_limit::output_within;
use lanewright_files::{directory, regular_file};
use lanewright_programs::process::find_program;

use super::inroads::Inroads;

/// The environment of a worktree that takes its place.
const OWN: &str = ".venv";

/// Variables by which a plan chooses another environment, or has the worktree's code come first.
const CHOICES: &[&str] = &["PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH"];

#[derive(Debug)]
pub struct CheckoutPython {
    prefix: PathBuf,
    /// What in it leads to the checkout, and where.
    pub(super) place: PathBuf,
    pub(super) target: PathBuf,
    /// Of a virtual environment: the directory of the program that it was made with.
    base: Option<PathBuf>,
    /// The user's `PATH`.
    pub(super) path: String,
}

impl CheckoutPython {
    /// The first of those that `VIRTUAL_ENV`, `CONDA_PREFIX` and the first Python of `PATH` name, which may be a shim.
    pub(super) fn of(checkouts: &[PathBuf], variables: &[(String, String)]) -> Option<Self> {
        let value = |wanted| variables.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        let is_outside = |place: &Path| !checkouts.iter().any(|checkout| place.starts_with(checkout));
        // Python ignores it where it is empty.
        if value("PYTHONPATH")
            .filter(|path| !path.is_empty())
            .is_some_and(|path| path.split(':').any(|part| Path::new(part).is_relative()))
        {
            return None;
        }
        let path = value("PATH")?;
        let outside: Vec<&str> = path.split(':').filter(|part| is_outside(Path::new(part))).collect();
        let program = python_in(&outside.join(":"));
        let of_program = program.as_deref().and_then(Path::parent).filter(|place| place.ends_with("bin"));
        let named = [value("VIRTUAL_ENV"), value("CONDA_PREFIX")].into_iter().flatten().map(Path::new);
        let prefixes = named.chain(of_program.and_then(Path::parent)).map(Path::to_owned);
        let behind = program.as_deref().map(behind_shims).unwrap_or_default();
        // Which of them a shim runs, only its program knows.
        let runs = |prefix: &Path| {
            program.as_deref().is_none_or(|program| !behind.iter().any(|it| it == prefix) || runs(program, prefix))
        };
        let mut prefixes = prefixes.chain(behind.iter().cloned()).filter(|it| it.is_absolute() && is_outside(it));
        prefixes.find_map(|prefix| {
            let settings = regular_file::read_if_there(&prefix.join("pyvenv.cfg")).ok().flatten();
            let settings = settings.map(|text| String::from_utf8_lossy(&text).into_owned());
            let home = |line: &str| Some(line.strip_prefix("home")?.trim_start().strip_prefix('=')?.trim().into());
            // A shim stays in `PATH`.
            let is_named = || !behind.contains(&prefix);
            let base = settings.as_deref().and_then(|text| text.lines().find_map(home)).filter(|_| is_named());
            // What is installed for the user counts outside of virtual environments.
            let users = value("HOME").filter(|_| settings.is_none()).map(|home| Path::new(home).join(".local"));
            let local = (prefix == *"/usr").then(|| prefix.join("local"));
            let mut roots = [Some(prefix.to_owned()), local, users].into_iter().flatten();
            let (place, target) = roots.find_map(|root| Inroads::new(checkouts, &root).in_site_packages(&root))?;
            if !runs(&prefix) {
                return None;
            }
            Some(Self { prefix, place, target, base, path: path.to_owned() })
        })
    }

    /// Whether a job in `worktree` would use it, whose plan sets `own`; `moved` is what it gets of the user's variables.
    pub(super) fn is_used(
        &self,
        worktree: &Path,
        own: &BTreeMap<String, String>,
        moved: &BTreeMap<&str, Option<String>>,
    ) -> bool {
        let moved = |name| moved.get(name).and_then(Option::as_deref);
        let path = moved("PATH").unwrap_or(&self.path);
        !CHOICES.iter().any(|name| own.contains_key(*name))
            && !moved("PYTHONPATH")
                .is_some_and(|path| path.split(':').any(|part| Path::new(part).starts_with(worktree)))
            && !python_in(path).is_some_and(|program| program.starts_with(worktree))
    }

    /// Whether `worktree` has an environment that takes its place.
    pub(super) fn is_replaced_in(worktree: &Path) -> bool {
        worktree.join(OWN).join("pyvenv.cfg").is_file()
    }

    /// Whether jobs that have no environment of their own do not use it either: a virtual environment is taken out of `PATH`.
    pub(super) fn can_be_left_out(&self) -> bool {
        self.base.is_some()
    }

    /// Has a job in `worktree` use the environment there instead, also where its own set-up makes that.
    pub(super) fn replace(&self, worktree: &Path, variables: &mut BTreeMap<&str, Option<String>>) {
        let (own, bin) = (worktree.join(OWN), worktree.join(OWN).join("bin"));
        let path = variables.get("PATH").and_then(Option::as_deref).unwrap_or(&self.path);
        // The Python that it was made with is in other places first, so that other programs stay the user's.
        let others = path.split(':').filter(|part| self.base.is_none() || !Path::new(part).starts_with(&self.prefix));
        let base = self.base.as_ref().map(|base| base.to_string_lossy());
        let path = std::iter::once(bin.to_string_lossy()).chain(others.map(Into::into)).chain(base);
        let path = path.collect::<Vec<_>>().join(":");
        let active = Self::is_replaced_in(worktree).then(|| own.to_string_lossy().into_owned());
        // Else `pip` would change what the user has.
        let guard = Some("1".to_owned());
        variables.extend([("PATH", Some(path)), ("VIRTUAL_ENV", active), ("PIP_REQUIRE_VIRTUALENV", guard)]);
    }

    /// Why a job that would use it must not run, with the remedies.
    pub(super) fn refusal(&self) -> String {
        format!(
            "{} leads to {} in another checkout, whose code would be run and judged: it is in the Python environment {} that \
             is active; give each worktree its own (`setup = [\"python3 -m venv .venv && .venv/bin/pip install -e .\"]`), or \
             leave this one (`deactivate`), then resume",
            self.place.display(),
            self.target.display(),
            self.prefix.display()
        )
    }

    /// The note at the start of a run.
    pub fn note(&self) -> String {
        format!(
            "{} leads to {}: lanes get the environment {OWN} of their own worktrees instead, and are blocked without one and without `setup`",
            self.place.display(),
            self.target.display()
        )
    }
}

/// Where the shims of pyenv, or those of asdf and mise, look for the Python that they run.
const BEHIND_SHIMS: &[&str] = &["versions", "installs/python"];

/// The environments of which `program` runs one, if it is a shim.
fn behind_shims(program: &Path) -> Vec<PathBuf> {
    let root = program.parent().filter(|place| place.ends_with("shims")).and_then(Path::parent);
    let places = root.into_iter().flat_map(|root| BEHIND_SHIMS.iter().map(|name| root.join(name)));
    places.flat_map(|place| directory::entries(&place).unwrap_or_default()).collect()
}

/// Whether `program` runs the Python of `prefix`, also where it does not answer.
fn runs(program: &Path, prefix: &Path) -> bool {
    let mut command = Command::new(program);
    command.args(["-c", "import sys; print(sys.prefix)"]).stdin(Stdio::null());
    let answer = output_within(command, ANSWER_LIMIT).ok().flatten().map(|output| output.stdout);
    let answer = answer.map(|text| PathBuf::from(String::from_utf8_lossy(&text).trim()));
    let known = answer.filter(|answer| answer.is_absolute()).and_then(|answer| answer.canonicalize().ok());
    known.is_none_or(|known| prefix.canonicalize().is_ok_and(|prefix| prefix == known))
}

const ANSWER_LIMIT: Duration = Duration::from_secs(10);

fn python_in(path: &str) -> Option<PathBuf> {
    ["python3", "python"].iter().find_map(|name| find_program(path, name))
}
