//! Whether pull requests can be opened, found out before the first lane begins (`--merge pr`).

use lanewright_git::{Remote, branch_reference, upstream_remote, written_url};
use lanewright_model::MergeMode;
use lanewright_model::text::shell_line;
use lanewright_programs::forge::{Forge, ForgeSettings};

use crate::cli::{ExitStatus, Hint, RepositoryContext, Result};

/// The forge that opens the pull requests of a run on `base`; `None`: the run opens none.
pub(crate) fn ready(within: &RepositoryContext, merge: MergeMode, base: &str) -> Result<Option<Forge>> {
    if merge != MergeMode::Pr {
        return Ok(None);
    }
    let (repository, settings) = (&within.repository, &within.settings);
    let name = match &settings.remote.value {
        Some(name) => name.clone(),
        None => upstream_remote(repository, base)?.unwrap_or_else(|| "origin".to_owned()),
    };
    let remote = Remote::named(repository, &name)?;
    let urls = [Some(remote.url()?), written_url(repository, &name)?].into_iter().flatten().collect();
    let forge = Forge::ready(ForgeSettings {
        choice: settings.forge.value,
        command: settings.pull_request_command.value.clone(),
        remote: name,
        urls,
        directory: repository.main_worktree().to_owned(),
    })?;
    require_base(&remote, base)?;
    Ok(Some(forge))
}

/// A pull request needs a branch to be merged into.
fn require_base(remote: &Remote, base: &str) -> Result<()> {
    let reference = branch_reference(base);
    if remote.references(&[&reference])?.iter().any(|(name, _)| *name == reference) {
        return Ok(());
    }
    let name = remote.name();
    let message = format!("there is no branch `{base}` on {name} that a pull request could be merged into");
    let push = shell_line(["git", "push", "--set-upstream", name, base]);
    Err(ExitStatus::Blocked.error(message).hint(format!("push it: {push}")))
}
