//! The commands by which people judge a repository, from the manifests in its root: what a plan without gates can be judged
//! by. Pure over the texts of the files; nested packages are not looked at, for a command of the root covers them or they
//! are projects of their own.

mod languages;
mod scripts;
mod targets;

use super::{Diagnostic, Severity};

/// A command and what says that the repository has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedGate {
    /// A shell line for the repository's root.
    pub command: String,
    /// `` `test` of Makefile ``, `Cargo.toml`.
    pub source: String,
}

/// The commands of a repository, in the order in which they are run, and the manifests that cannot be read.
#[derive(Debug, Default)]
pub struct RepositoryGates {
    pub gates: Vec<ProposedGate>,
    /// Warnings.
    pub faults: Vec<Diagnostic>,
}

/// What a command judges. Where the task runner of a repository has a command for it, those of its languages are left out:
/// it calls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Check,
    Lint,
    Types,
    Test,
    Build,
}

/// The commands of the repository whose root has the files that `read` gives: the text of the file with a name, `None`
/// where there is none, or why it cannot be read.
pub fn repository_gates(read: &dyn Fn(&str) -> Option<Result<String, String>>) -> RepositoryGates {
    let mut root = Root { read, found: Vec::new(), faults: Vec::new() };
    targets::find(&mut root);
    let of_task_runner: Vec<Purpose> = root.found.iter().map(|(purpose, _)| *purpose).collect();
    scripts::find(&mut root);
    languages::find(&mut root);
    let is_runner = |at: usize| at < of_task_runner.len();
    let found = root.found.into_iter().enumerate();
    let kept = found.filter(|(at, (purpose, _))| is_runner(*at) || !of_task_runner.contains(purpose));
    RepositoryGates { gates: kept.map(|(_, (_, gate))| gate).collect(), faults: root.faults }
}

/// The root of a repository, and what was found there.
struct Root<'r> {
    read: &'r dyn Fn(&str) -> Option<Result<String, String>>,
    found: Vec<(Purpose, ProposedGate)>,
    faults: Vec<Diagnostic>,
}

impl Root<'_> {
    /// The text of the file without a byte order mark; one that cannot be read is a fault.
    fn text(&mut self, name: &str) -> Option<String> {
        match (self.read)(name)? {
            Ok(text) => Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)),
            Err(error) => {
                self.fault(Diagnostic::at_line(
                    Severity::Warning,
                    name,
                    "",
                    1,
                    &format!("{name}: {error}"),
                    UNREADABLE,
                ));
                None
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        (self.read)(name).is_some()
    }

    fn toml(&mut self, name: &str) -> Option<toml::Table> {
        let text = self.text(name)?;
        let fault = |error: &toml::de::Error| {
            let offset = error.span().map_or(0, |span| span.start);
            let message = format!("invalid TOML: {}", error.message());
            Diagnostic::at_offset(Severity::Warning, name, &text, offset, &message, UNREADABLE)
        };
        text.parse().inspect_err(|error| self.fault(fault(error))).ok()
    }

    fn fault(&mut self, fault: Diagnostic) {
        self.faults.push(fault);
    }

    fn add(&mut self, purpose: Purpose, command: impl Into<String>, source: impl Into<String>) {
        self.found.push((purpose, ProposedGate { command: command.into(), source: source.into() }));
    }
}

const UNREADABLE: &str = "its commands are not proposed as gates; fix it, or set `tests` in lanewright.toml";

#[cfg(test)]
mod tests;
