//! Signatures and sign-offs of Lanewright's commits, where git would make them in the user's name.

use std::borrow::Cow;
use std::time::Duration;

use lanewright_model::{CommitId, Sign, SignOff};

use crate::command::{Git, GitError, ProgramError, Result, io_error, path_text};
use crate::fast::libgit2;
use crate::history::identity::{committer, overridden_identity, run_identified};
use crate::repo::{Repository, commit_id, is_true};

/// How long one signature may take, such as the time in which the user answers a window that asks for a passphrase.
const LIMIT: Duration = Duration::from_secs(60);

/// The format of signatures where `gpg.format` is not set.
const OPENPGP: &str = "openpgp";

/// The program of each format, by the setting that names it, and the one that git runs where it is not set.
const PROGRAMS: &[(&str, &[&str], &str)] = &[
    (OPENPGP, &["gpg.openpgp.program", "gpg.program"], "gpg"),
    ("x509", &["gpg.x509.program"], "gpgsm"),
    ("ssh", &["gpg.ssh.program"], "ssh-keygen"),
];

/// How the signatures begin that git recognizes.
const SIGNATURES: &[&str] = &[
    "-----BEGIN PGP SIGNATURE-----",
    "-----BEGIN PGP MESSAGE-----",
    "-----BEGIN SIGNED MESSAGE-----",
    "-----BEGIN SSH SIGNATURE-----",
];

/// With what commits are signed.
#[derive(Debug)]
pub(crate) struct Signing {
    format: String,
    /// Settings for git, as `name=value`.
    settings: Vec<String>,
}

impl Signing {
    /// `None`: commits are not signed.
    pub(crate) fn of(repository: &Repository) -> Result<Option<Self>> {
        let get = |name: &str| repository.setting_of_commits(name);
        if repository.commit_rules.sign == Sign::Off || !get("commit.gpgsign")?.is_some_and(|value| is_true(&value)) {
            return Ok(None);
        }
        let format = get("gpg.format")?.unwrap_or_else(|| OPENPGP.to_owned());
        if repository.commit_rules.settings.is_none() {
            return Ok(Some(Self { format, settings: Vec::new() }));
        }
        let mut settings = vec![format!("gpg.format={format}")];
        for (of_format, names, default) in PROGRAMS.iter().filter(|it| it.0 == format) {
            let mut set = names.iter().map(|name| get(name)).collect::<Result<Vec<_>>>()?.into_iter().flatten();
            settings.push(format!("gpg.{of_format}.program={}", set.next().unwrap_or_else(|| (*default).to_owned())));
        }
        let key = match get("user.signingkey")? {
            // As git does.
            None if format != "ssh" => committer(repository)?,
            key => key,
        };
        match key {
            Some(key) => settings.push(format!("user.signingKey={key}")),
            None => {
                let command = get("gpg.ssh.defaultkeycommand")?.unwrap_or_default();
                settings.push(format!("gpg.ssh.defaultKeyCommand={command}"));
                if repository.configuration()?.get("user.signingkey").is_some() {
                    settings.push("user.signingKey=".to_owned());
                }
            }
        }
        Ok(Some(Self { format, settings }))
    }

    /// Runs `git`, which makes a commit and is given no further argument, in the user's name.
    pub(crate) fn run(&self, git: Git<'_>) -> Result<CommitId> {
        let settings = self.settings.iter().map(String::as_str);
        let git = settings.fold(git, Git::configured).arg("-S").within(LIMIT);
        // No program may ask on the terminal, which shows the run: `gpg` looks at the first, `ssh-keygen` at the others.
        let git = git.variable("GPG_TTY", "").variable("SSH_ASKPASS", "false").variable("SSH_ASKPASS_REQUIRE", "force");
        let reading = |commit: &CommitId| git.with_arguments(["cat-file", "commit", commit.as_str()]);
        let made = commit_id(&run_identified(&git).map_err(|error| self.failed(error))?)?;
        match signature_in(&path_text(&reading(&made).run()?)) {
            Some(signature) if SIGNATURES.contains(&signature.as_str()) => Ok(made),
            found => {
                let found = found.map_or_else(|| "no signature".to_owned(), |it| format!("`{it}` and no signature"));
                Err(self.error(format!("the signing program wrote {found}")))
            }
        }
    }

    fn failed(&self, error: GitError) -> GitError {
        let said = match &error {
            GitError::Program(ProgramError::Failed { stderr, .. }) if !is_about_objects(stderr) => stderr.as_str(),
            GitError::Program(ProgramError::TimedOut { .. }) => "no signature within a minute",
            _ => return error,
        };
        // The last are for programs.
        let lines = said.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("[GNUPG:]"));
        let mut lines: Vec<&str> = lines.collect();
        lines.dedup();
        self.error(lines.join(", "))
    }

    fn error(&self, said: String) -> GitError {
        GitError::Signing { format: self.format.clone(), said }
    }
}

/// Whether git failed to store the commit, not to sign it.
fn is_about_objects(stderr: &str) -> bool {
    let words =
        ["unable to write", "unable to create", "insufficient permission", "not a valid object", "No space left"];
    words.iter().any(|words| stderr.contains(words))
}

/// The first line of the signature in a commit; `None`: it has none.
fn signature_in(commit: &str) -> Option<String> {
    let headers = commit.lines().take_while(|line| !line.is_empty());
    let mut fields = headers.filter_map(|line| line.split_once(' '));
    fields.find(|(name, _)| name.starts_with("gpgsig")).map(|(_, value)| value.to_owned())
}

impl Repository {
    /// Signs a commit for nothing, where commits are signed: the key may be gone, or want a passphrase. Writes nothing into
    /// the repository. `commit` is one that exists.
    ///
    /// # Errors
    /// [`GitError::Signing`].
    pub fn check_signing(&self, commit: &CommitId) -> Result<()> {
        let Some(signing) = Signing::of(self)? else { return Ok(()) };
        let elsewhere = tempfile::tempdir().map_err(io_error("create", &std::env::temp_dir()))?;
        // Quoted, since the path may have a colon.
        let objects = self.common_dir().join("objects").display().to_string();
        let objects = format!("\"{}\"", objects.replace('\\', "\\\\").replace('"', "\\\""));
        let (tree, identity) = (self.tree_of(commit)?, overridden_identity(self)?);
        let git = identity.iter().map(String::as_str).fold(self.git(), Git::configured);
        let git = git.variable("GIT_OBJECT_DIRECTORY", elsewhere.path());
        let git = git.variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
        signing.run(git.args(["commit-tree", &tree, "-m", "A signature for nothing"])).map(drop)
    }
}

/// `message` with the user's sign-off, where commits have one and the user a name.
pub(crate) fn signed_off<'m>(repository: &Repository, message: &'m str) -> Result<Cow<'m, str>> {
    let is_on = match repository.commit_rules.sign_off {
        SignOff::On => true,
        SignOff::Off => false,
        SignOff::Auto => repository.setting_of_commits("format.signoff")?.is_some_and(|value| is_true(&value)),
    };
    let Some(committer) = is_on.then(|| committer(repository)).transpose()?.flatten() else {
        return Ok(message.into());
    };
    // Not `git interpret-trailers`, which runs the commands that settings name for trailers.
    let (text, line) = (message.trim_end(), format!("Signed-off-by: {committer}"));
    if text.lines().any(|known| known == line) {
        return Ok(message.into());
    }
    let between = if libgit2::trailers_in(text).is_empty() { "\n\n" } else { "\n" };
    Ok(format!("{text}{between}{line}\n").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_is_found_among_headers_only() {
        let head = "tree 0\nauthor A <a@x> 1 +0000\n";
        let signed = format!("{head}gpgsig -----BEGIN SSH SIGNATURE-----\n U1NI\n\nmessage\n");
        assert_eq!(signature_in(&signed).as_deref(), Some("-----BEGIN SSH SIGNATURE-----"));
        assert_eq!(signature_in(&format!("{head}gpgsig-sha256 x\n\nm\n")).as_deref(), Some("x"));
        assert_eq!(signature_in(&format!("{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n")), None);
    }

    #[test]
    fn failure_to_store_is_not_one_to_sign() {
        let signing = Signing { format: "ssh".to_owned(), settings: Vec::new() };
        let failed = |stderr: &str| {
            let (command, stderr) = ("git commit-tree".to_owned(), stderr.to_owned());
            let failed = ProgramError::Failed { command, directory: "/r".into(), code: Some(1), stderr };
            signing.failed(failed.into())
        };
        let error =
            failed("error: gpg failed to sign the data:\ngpg: no key\n\ngpg: no key\n[GNUPG:] FAILURE sign 17\n\n");
        assert_eq!(error.to_string(), "cannot sign commits: error: gpg failed to sign the data:, gpg: no key");
        let full = "error: unable to write loose object file: No space left on device\n";
        assert!(matches!(failed(full), GitError::Program(_)));
    }
}
