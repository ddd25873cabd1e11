//! Finds out which forge a remote has, and whether its program is usable.

use std::path::PathBuf;

use lanewright_model::ForgeChoice;
use lanewright_model::text::headline;

use super::address::Address;
use super::error::ForgeError;
use super::program::{is_installed, run, words};
use super::{Forge, gh, glab};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ForgeProgram {
    Gh,
    Glab,
    /// The user's: the program and its arguments.
    Command(Vec<String>),
}

#[derive(Debug, Clone)]
pub struct ForgeSettings {
    pub choice: ForgeChoice,
    pub command: Option<Vec<String>>,
    pub status_command: Option<Vec<String>>,
    pub remote: String,
    /// Where the remote is: as git resolves it, and as the user wrote it.
    pub urls: Vec<String>,
    pub directory: PathBuf,
}

impl Forge {
    /// Finds out which forge is meant, and that it can be used: the program is there and logged in.
    pub fn ready(settings: ForgeSettings) -> Result<Self, ForgeError> {
        let address = settings.urls.iter().find_map(|url| Address::parse(url));
        let ForgeSettings { choice, command, status_command, remote, directory, .. } = settings;
        let forge = Self { program: ForgeProgram::Gh, directory, address, remote, status_command };
        let with = |program: ForgeProgram| Self { program, ..forge.clone() };
        let chosen = match (choice, command) {
            (ForgeChoice::Command | ForgeChoice::Auto, Some(command)) => with(ForgeProgram::Command(command)),
            (ForgeChoice::Command, None) => return Err(ForgeError::NoCommand),
            (ForgeChoice::Gh, _) => with(ForgeProgram::Gh),
            (ForgeChoice::Glab, _) => with(ForgeProgram::Glab),
            (ForgeChoice::Auto, None) => return forge.guess(),
        };
        chosen.check()?;
        Ok(chosen)
    }

    /// The forge that the host's name indicates, else the one whose program is usable.
    fn guess(self) -> Result<Self, ForgeError> {
        let named = |name: &str| self.address.as_ref().is_some_and(|address| address.host.contains(name));
        let candidates = match () {
            () if named("github") => vec![ForgeProgram::Gh],
            () if named("gitlab") => vec![ForgeProgram::Glab],
            () => [(ForgeProgram::Gh, "gh"), (ForgeProgram::Glab, "glab")]
                .into_iter()
                .filter_map(|(program, name)| is_installed(name).then_some(program))
                .collect(),
        };
        let mut refusal = None;
        for program in candidates {
            let candidate = Self { program, ..self.clone() };
            match candidate.check() {
                Ok(()) => return Ok(candidate),
                // The first one is the likelier one.
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        Err(refusal.unwrap_or(ForgeError::Unknown { remote: self.remote }))
    }

    fn check(&self) -> Result<(), ForgeError> {
        match &self.program {
            ForgeProgram::Command(command) => self.check_command(command),
            ForgeProgram::Gh => self.check_login("gh", gh::INSTALL),
            ForgeProgram::Glab => self.check_login("glab", glab::INSTALL),
        }
    }

    /// The variable with a token that the program reads, as it is set where it runs.
    fn token(&self) -> &'static str {
        let is_set = |name: &str| std::env::var_os(name).is_some();
        match self.program == ForgeProgram::Glab {
            true if is_set("GITLAB_CI") => {
                "GITLAB_TOKEN to a project access token with the scope api, in a masked variable of the project"
            }
            true => "GITLAB_TOKEN to a token with the scope api",
            false if is_set("GITHUB_ACTIONS") => {
                "GH_TOKEN in the `env` of the step: ${{ github.token }}, with the permission pull-requests: write"
            }
            false => "GH_TOKEN to a token that may write pull requests",
        }
    }

    fn check_command(&self, command: &[String]) -> Result<(), ForgeError> {
        let program = command.first().ok_or(ForgeError::NoCommand)?;
        // A program with a slash in its name is seen from where it runs.
        let there = if program.contains('/') { self.directory.join(program).exists() } else { is_installed(program) };
        if there {
            return Ok(());
        }
        let remedy = "install it, or set `pull_request_command` in lanewright.toml to another program".to_owned();
        Err(ForgeError::Missing { program: program.clone(), remedy })
    }

    fn check_login(&self, program: &'static str, install: &str) -> Result<(), ForgeError> {
        if !is_installed(program) {
            return Err(ForgeError::Missing { program: program.to_owned(), remedy: install.to_owned() });
        }
        let host = self.public_address().map(|address| address.host.clone());
        let host: Vec<String> = host.into_iter().flat_map(|host| ["--hostname".to_owned(), host]).collect();
        let asked = match self.program == ForgeProgram::Glab {
            true => glab::login(self),
            false => [words([program, "auth", "status"]), host.clone()].concat(),
        };
        match run(&self.directory, &asked, &[]) {
            Ok(_) => Ok(()),
            Err(ForgeError::Failed { said, .. }) => {
                let login = [words([program, "auth", "login"]), host].concat().join(" ");
                let remedy = format!("log in: {login}; or set {}", self.token());
                Err(ForgeError::NotLoggedIn { program, said: headline(&said, 200), remedy })
            }
            Err(error) => Err(error),
        }
    }
}
