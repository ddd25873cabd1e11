//! Which forge it is, and whether it can be spoken to.

use std::path::PathBuf;

use super::address::Address;
use super::error::ForgeError;
use super::program::{is_installed, run, words};
use super::{Forge, gh, glab};
use crate::model::ForgeChoice;
use crate::model::text::headline;

/// Who opens the pull requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Speaker {
    /// GitHub's program.
    Gh,
    /// GitLab's program.
    Glab,
    /// The user's: the program and its arguments.
    Command(Vec<String>),
}

/// What is known of a forge before it is spoken to.
#[derive(Debug, Clone)]
pub struct Wish {
    /// What the settings say.
    pub choice: ForgeChoice,
    /// The user's own command, where there is one.
    pub command: Option<Vec<String>>,
    /// What the user calls the remote.
    pub remote: String,
    /// Where the remote is: as git resolves it, and as the user wrote it.
    pub urls: Vec<String>,
    /// Where the programs run.
    pub directory: PathBuf,
}

impl Forge {
    /// Finds out which forge is meant, and that it can be used: the program is there and logged in.
    ///
    /// # Errors
    /// [`ForgeError`] with its remedy.
    pub fn ready(wish: Wish) -> Result<Self, ForgeError> {
        let address = wish.urls.iter().find_map(|url| Address::parse(url));
        let Wish { choice, command, remote, directory, .. } = wish;
        let forge = Self { speaker: Speaker::Gh, directory, address, remote };
        let with = |speaker: Speaker| Self { speaker, ..forge.clone() };
        let chosen = match (choice, command) {
            (ForgeChoice::Command | ForgeChoice::Auto, Some(command)) => with(Speaker::Command(command)),
            (ForgeChoice::Command, None) => return Err(ForgeError::NoCommand),
            (ForgeChoice::Gh, _) => with(Speaker::Gh),
            (ForgeChoice::Glab, _) => with(Speaker::Glab),
            (ForgeChoice::Auto, None) => return forge.guess(),
        };
        chosen.check()?;
        Ok(chosen)
    }

    /// The forge of a host whose name says so, else of the program that can be used there.
    fn guess(self) -> Result<Self, ForgeError> {
        let named = |name: &str| self.address.as_ref().is_some_and(|address| address.host.contains(name));
        let candidates = match () {
            () if named("github") => vec![Speaker::Gh],
            () if named("gitlab") => vec![Speaker::Glab],
            () => [(Speaker::Gh, "gh"), (Speaker::Glab, "glab")]
                .into_iter()
                .filter_map(|(speaker, program)| is_installed(program).then_some(speaker))
                .collect(),
        };
        let mut refusal = None;
        for speaker in candidates {
            let candidate = Self { speaker, ..self.clone() };
            match candidate.check() {
                Ok(()) => return Ok(candidate),
                // The first one is the likelier one.
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        Err(refusal.unwrap_or(ForgeError::Unknown { remote: self.remote }))
    }

    fn check(&self) -> Result<(), ForgeError> {
        match &self.speaker {
            Speaker::Command(command) => self.check_command(command),
            Speaker::Gh => self.check_login("gh", gh::INSTALL),
            Speaker::Glab => self.check_login("glab", glab::INSTALL),
        }
    }

    fn check_command(&self, command: &[String]) -> Result<(), ForgeError> {
        let program = command.first().ok_or(ForgeError::NoCommand)?;
        // A program with a slash in its name is seen from where it runs.
        let there = if program.contains('/') { self.directory.join(program).exists() } else { is_installed(program) };
        if there {
            return Ok(());
        }
        let remedy = "install it, or set `pull_request_command` in lanekeeper.toml to what is there".to_owned();
        Err(ForgeError::Missing { program: program.clone(), remedy })
    }

    fn check_login(&self, program: &'static str, install: &str) -> Result<(), ForgeError> {
        if !is_installed(program) {
            return Err(ForgeError::Missing { program: program.to_owned(), remedy: install.to_owned() });
        }
        let mut status = words([program, "auth", "status"]);
        let host = self.address.as_ref().filter(|address| !address.is_alias()).map(|address| address.host.clone());
        let host: Vec<String> = host.into_iter().flat_map(|host| ["--hostname".to_owned(), host]).collect();
        status.extend(host.iter().cloned());
        match run(&self.directory, &status, &[]) {
            Ok(_) => Ok(()),
            Err(ForgeError::Failed { said, .. }) => {
                let login = [words([program, "auth", "login"]), host].concat().join(" ");
                let remedy = format!("log in: {login}; or give it a token through its environment variable");
                Err(ForgeError::NotLoggedIn { program, said: headline(&said, 200), remedy })
            }
            Err(error) => Err(error),
        }
    }
}
