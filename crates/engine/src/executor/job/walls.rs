//! Which wall a job gets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lanewright_agents::sandbox::Places;
use lanewright_git::{self as git, WrittenByCommits};
use lanewright_model::{GitDirectory, JobSpec, Runner, SandboxChoice, Wall, WallBuilder};
use lanewright_programs::wall;

use super::brief::BriefFiles;
use crate::executor::Executor;

/// What the jobs of a run reach, from the settings.
#[derive(Debug, Clone)]
pub struct Walls {
    pub choice: SandboxChoice,
    /// What jobs may write besides their worktrees, as written.
    pub writable: Vec<String>,
    /// What they cannot read, as written; `None`: what is so by default.
    pub hidden: Option<Vec<String>>,
    pub network: bool,
}

impl Walls {
    /// `None`: jobs reach whatever the user may.
    fn builder(&self) -> Option<WallBuilder> {
        match self.choice {
            SandboxChoice::Off => None,
            SandboxChoice::Auto => wall::available().builder.clone(),
            // Where nothing can be built, Landlock refuses to start the job.
            SandboxChoice::On => Some(wall::available().builder.clone().unwrap_or(WallBuilder::Landlock)),
        }
    }
}

impl Executor {
    /// Puts the job of `spec` behind a wall, if its jobs are to have one: an agent of `runner` with its `files`, or a gate.
    pub(super) fn wall_in(&self, spec: &mut JobSpec, agent: Option<(Option<&Runner>, &BriefFiles)>) {
        let Some(builder) = self.walls.builder() else { return };
        let variable = variables(&spec.environment);
        let places = Places { variable: &variable };
        let has_own = agent.is_some() && self.facts.options.git_directory == GitDirectory::Private;
        let git = if has_own {
            // Where it cannot be told, the job cannot be started either.
            let writable = git::agent_git_directories(&self.repository, &spec.directory).unwrap_or_default();
            WrittenByCommits { writable, fixed: vec![spec.directory.join(".git")] }
        } else {
            self.repository.written_by_commits(&spec.directory)
        };
        let mut writable = vec![spec.directory.clone()];
        writable.extend(git.writable);
        writable.extend(self.walls.writable.iter().filter_map(|text| places.place(text)));
        writable.extend(places.caches());
        if let Some((runner, files)) = agent {
            let (written, made) = places.of_runner(runner);
            for directory in made {
                // Where it cannot be made, its program could not make it either, and reports that.
                let _ = std::fs::create_dir_all(directory);
            }
            writable.extend(written);
            writable.extend(files.exchange());
        }
        let mut hidden: Vec<PathBuf> =
            places.hidden(self.walls.hidden.as_deref()).into_iter().chain(places.sockets()).collect();
        // What of them an agent gets is in its own.
        if has_own && git::settings_have_credentials(&self.repository).unwrap_or_default() {
            hidden.push(self.repository.common_dir().join("config"));
        }
        spec.wall = Some(Wall { builder, writable, fixed: git.fixed, hidden, network: self.walls.network });
    }
}

/// The values of variables as a job with `own` sees them.
fn variables(own: &BTreeMap<String, String>) -> impl Fn(&str) -> Option<String> {
    move |name| own.get(name).cloned().or_else(|| std::env::var(name).ok()).filter(|value| !value.is_empty())
}
