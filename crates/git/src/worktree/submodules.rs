//! Submodules of worktrees: filled from those of the user's checkout, without a network, and their new commits kept there.

use std::path::{Path, PathBuf};

use lanewright_files::atomic;
use lanewright_files::directory::create_directory_unsynced;
use lanewright_model::CommitId;

use crate::command::{Git, GitError, Result, io_error, nul_separated, path_text};
use crate::history::run_identified;
use crate::query::nested::Nested;
use crate::query::{LINK, has_real_parents};
use crate::repo::{Repository, git_directory};

/// Below it the user's copy of a submodule has the commits that agents made in theirs.
const KEPT: &str = "refs/lanewright/commits";

/// What becomes of an agent's work in submodules.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SubmoduleWork {
    /// A sentence for each submodule whose changes or commit would be lost with the worktree.
    pub lost: Vec<String>,
    /// New files in submodules, which are in none of the agent's commits, and the ref of the user's copy that has them. They
    /// may be what a build left.
    pub new_files: Vec<(String, String)>,
}

struct Submodule {
    /// Relative to the worktree.
    path: String,
    /// The repository that is checked out in the worktree.
    place: PathBuf,
    /// The user's copy of that repository, where it would be.
    source: PathBuf,
}

impl Submodule {
    fn is_filled(&self) -> bool {
        self.place.join(".git").exists()
    }

    /// Saves new files in the user's copy. Returns the first one's path and the ref that has them, if there are any; `None`:
    /// other files differ, or there is no copy.
    fn keep_new_files(&self) -> Result<Option<Vec<(String, String)>>> {
        let Some(nested) = Nested::open(&self.place)? else { return Ok(None) };
        let Some(changes) = nested.changes()? else { return Ok(None) };
        let Some(first) = changes.first() else { return Ok(Some(Vec::new())) };
        let is_new = changes.iter().all(|line| line.starts_with(b"?? "));
        if !is_new || !self.source.join("HEAD").is_file() {
            return Ok(None);
        }
        let kept = keep_files(&nested, &self.place, &self.source)?;
        Ok(Some(vec![(format!("{}/{}", self.path, path_text(&first[3..])), kept)]))
    }
}

/// The submodules that `.gitmodules` of `worktree` names. `modules` has the user's copies.
fn submodules(worktree: &Path, modules: &Path) -> Result<Vec<(String, Submodule)>> {
    if !worktree.join(".gitmodules").is_file() {
        return Ok(Vec::new());
    }
    let git = Git::new(worktree).reading_only().args(["config", "--null", "--file", ".gitmodules", "--get-regexp"]);
    let listing = git.arg(r"^submodule\..*\.path$").attempt()?.stdout;
    let entries = nul_separated(&listing).filter_map(|entry| {
        let (key, path) = path_text(entry).split_once('\n').map(|(key, path)| (key.to_owned(), path.to_owned()))?;
        let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?.to_owned();
        // As git does: such a name is no directory of its own.
        let is_inside = |text: &str| !Path::new(text).has_root() && !text.split('/').any(|part| part == "..");
        let submodule = Submodule { place: worktree.join(&path), source: modules.join(&name), path };
        let is_safe =
            is_inside(&name) && is_inside(&submodule.path) && has_real_parents(worktree, Path::new(&submodule.path));
        is_safe.then_some((name, submodule))
    });
    Ok(entries.collect())
}

impl Repository {
    fn modules(&self) -> PathBuf {
        self.common_dir().join("modules")
    }

    /// Gives the submodules of `worktree` their files, if the rules say so: clones of the user's copies, as the commit has them that is checked out.
    /// What an agent committed in one that another commit is checked out in now is kept first. Returns those of which the
    /// user has no copy; they stay empty.
    ///
    /// # Errors
    /// What git says, for a commit that neither the copy nor the submodule's remote has, or for changes in the way.
    pub fn fill_submodules(&self, worktree: &Path) -> Result<Vec<String>> {
        if self.left_out_rules.fills_submodules { fill(worktree, &self.modules()) } else { Ok(Vec::new()) }
    }

    /// Keeps in the user's copies the commits of submodules that `to` has and `from` has not, so that they outlive the
    /// worktree, and new files.
    pub fn keep_submodules(&self, worktree: &Path, from: &CommitId, to: &CommitId) -> Result<SubmoduleWork> {
        let filled = self.filled_submodules(worktree)?;
        let mut work = SubmoduleWork::default();
        if filled.is_empty() {
            return Ok(work);
        }
        let links = self.differences(from, to)?.into_iter().filter(|it| it.to == LINK);
        let moved: Vec<String> = links.map(|it| path_text(&it.path)).collect();
        for submodule in filled {
            let Submodule { path, place, source } = &submodule;
            match submodule.keep_new_files()? {
                None => work.lost.push(format!("the submodule {path} has changes that are not committed in it")),
                Some(new) => {
                    work.new_files.extend(new);
                    if moved.contains(path) && !keep(place, source)? {
                        work.lost.push(format!("the commit of the submodule {path} is in this worktree only; push it"));
                    }
                }
            }
        }
        Ok(work)
    }

    /// Moves the new files of submodules of `worktree` into the user's copies, if nothing else differs in them.
    pub(crate) fn take_new_files_of_submodules(&self, worktree: &Path) -> Result<()> {
        for submodule in self.filled_submodules(worktree)? {
            if submodule.keep_new_files()?.is_some_and(|kept| !kept.is_empty()) {
                Git::new(&submodule.place).without_hooks().args(["clean", "-ffdq"]).run()?;
            }
        }
        Ok(())
    }

    fn filled_submodules(&self, worktree: &Path) -> Result<Vec<Submodule>> {
        let known = submodules(worktree, &self.modules())?.into_iter().map(|(_, submodule)| submodule);
        Ok(known.filter(Submodule::is_filled).collect())
    }
}

fn fill(worktree: &Path, modules: &Path) -> Result<Vec<String>> {
    let mut empty = Vec::new();
    for (name, submodule) in submodules(worktree, modules)? {
        let Submodule { path, place, source } = &submodule;
        let git = || Git::new(worktree).without_hooks();
        let update = ["submodule", "--quiet", "update", "--init", "--checkout", "--", path.as_str()];
        if submodule.is_filled() {
            let status = git().args(["submodule", "status", "--", path.as_str()]).run()?;
            if status.starts_with(b"+") {
                keep(place, source)?;
                empty_for_another_commit(worktree, &name, place)?;
            }
        }
        if !submodule.is_filled() && !source.join("HEAD").is_file() {
            empty.push(path.clone());
            continue;
        }
        if !submodule.is_filled() {
            let key = format!("submodule.{name}.url");
            let url = git().args(["config", "--get", &key]).line_if_any()?;
            let from_copy = format!("{key}={}", source.display());
            let clone = git().configured("protocol.file.allow=always").configured(&from_copy).args(update);
            let filled = clone.attempt()?;
            if !submodule.is_filled() {
                return Err(clone.failure(&filled).into());
            }
            if let Some(url) = url {
                Git::new(place).args(["config", "remote.origin.url", &url]).run()?;
            }
            if !filled.status.success() {
                // The user's copy has not got the commit yet.
                Git::new(worktree).without_hooks().reaching_out().args(update).run()?;
            }
        }
        let inner = fill(place, &source.join("modules"))?;
        empty.extend(inner.into_iter().map(|inner| format!("{path}/{inner}")));
    }
    Ok(empty)
}

/// Removes the files and the git directory of a submodule, if nothing is changed in it: git would check the other commit out
/// by settings that an agent may have written.
///
/// # Errors
/// [`GitError::Dirty`] where something is.
fn empty_for_another_commit(worktree: &Path, name: &str, place: &Path) -> Result<()> {
    let changes = match Nested::open(place)? {
        Some(nested) => nested.changes()?,
        None => None,
    };
    if changes.is_none_or(|changes| !changes.is_empty()) {
        return Err(GitError::Dirty { path: place.to_owned(), paths: vec![".".to_owned()] });
    }
    let own = git_directory(worktree)?.join("modules").join(name);
    for directory in [place, &own] {
        atomic::remove_all(directory).map_err(io_error("remove", directory))?;
    }
    create_directory_unsynced(place)?;
    Ok(())
}

/// Whether the head of the submodule in `place` outlives it: it is in `source`, perhaps only now, or on a branch of a remote.
fn keep(place: &Path, source: &Path) -> Result<bool> {
    let head = Git::new(place).args(["rev-parse", "--verify", "HEAD"]).line()?;
    if !source.join("HEAD").is_file() {
        let git = Git::new(place).args(["branch", "--remotes", "--format=%(refname)", "--contains", &head]);
        return Ok(!git.run()?.is_empty());
    }
    // What a name leads to is there whole.
    let is_kept = format!("--contains={head}");
    let names = in_copy(source).args(["for-each-ref", "--count=1", &is_kept]).attempt()?;
    if names.status.success() && !names.stdout.is_empty() {
        return Ok(true);
    }
    fetch(place, source, &head)?;
    Ok(true)
}

/// Saves the new files of the submodule in `place`, in a commit that only `source` has. Returns its ref there.
fn keep_files(nested: &Nested<'_>, place: &Path, source: &Path) -> Result<String> {
    let index = nested.empty_index();
    let git = || nested.git().variable("GIT_INDEX_FILE", &index);
    git().args(["read-tree", "HEAD"]).run()?;
    git().args(["add", "--all"]).run()?;
    let tree = git().arg("write-tree").line()?;
    let made = git().args(["commit-tree", &tree, "-p", "HEAD", "-m", "New files in a submodule"]);
    fetch(place, source, &path_text(run_identified(&made)?.trim_ascii()))
}

/// Copies a commit of the submodule in `place` to `source`, under a ref that it returns.
fn fetch(place: &Path, source: &Path, commit: &str) -> Result<String> {
    let reference = format!("{KEPT}/{commit}");
    let git = in_copy(source).configured("protocol.file.allow=always");
    let git = git.args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--"]);
    git.arg(git_directory(place)?).arg(format!("{commit}:{reference}")).run()?;
    Ok(reference)
}

fn in_copy(source: &Path) -> Git<'_> {
    Git::new(source).variable("GIT_DIR", source).without_hooks()
}
