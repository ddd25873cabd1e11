//! Whether pull requests can be opened, found out before the first lane begins (`--merge pr`).

use lanewright_git::{Remote, branch_reference, upstream_remote, written_url};
use lanewright_model::MergeMode;
use lanewright_model::text::shell_line;
use lanewright_programs::forge::{Forge, ForgeSettings};

use crate::cli::{ExitStatus, Hint, RepositoryContext, Result};

/// The forge that opens the pull requests of a run on `base`, and is asked about them if the run `follows` them; `None`: the
/// run opens none.
pub(crate) fn ready(
    within: &RepositoryContext,
    (merge, follows): (MergeMode, bool),
    base: &str,
) -> Result<Option<Forge>> {
    if merge != MergeMode::Pr {
        return Ok(None);
    }
    let remote = branch_remote(within, base)?;
    let forge = Forge::ready(forge_settings(within, &remote)?)?;
    if follows {
        forge.can_follow()?;
    }
    require_base(&remote, base)?;
    Ok(Some(forge))
}

/// The remote that the branches of a run on `base` are pushed to.
pub(crate) fn branch_remote(within: &RepositoryContext, base: &str) -> Result<Remote> {
    let name = match &within.settings.remote.value {
        Some(name) => name.clone(),
        None => upstream_remote(&within.repository, base)?.unwrap_or_else(|| "origin".to_owned()),
    };
    Ok(Remote::named(&within.repository, &name)?)
}

/// What is known of the forge that has `remote`.
pub(crate) fn forge_settings(within: &RepositoryContext, remote: &Remote) -> Result<ForgeSettings> {
    let (repository, settings) = (&within.repository, &within.settings);
    Ok(ForgeSettings {
        choice: settings.forge.value,
        command: settings.pull_request_command.value.clone(),
        status_command: settings.pull_request_status_command.value.clone(),
        remote: remote.name().to_owned(),
        urls: [Some(remote.url()?), written_url(repository, remote.name())?].into_iter().flatten().collect(),
        directory: repository.main_worktree().to_owned(),
    })
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
