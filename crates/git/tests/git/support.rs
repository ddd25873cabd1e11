//! A repository in a temporary directory, and tests that see nothing of the machine's git settings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use lanewright_git::{
    Checkout, CommitRequest, Committed, GitError, Holder, Mode, Pool, Publication, Repository, commit_all,
};
use lanewright_model::event::Worktree;
use lanewright_model::{AgentName, CommitId, LaneId, RunId};
use tempfile::TempDir;

/// Set in the process that runs a test's body.
const PINNED: &str = "LANEWRIGHT_GIT_TEST_PINNED";

/// Declares tests, each of which runs in a process of its own with pinned git settings.
macro_rules! pinned_tests {
    ($(fn $name:ident() $body:block)*) => {$(
        #[test]
        fn $name() {
            fn body() $body
            $crate::support::pinned(concat!(module_path!(), "::", stringify!($name)), &[], body);
        }
    )*};
}

/// Runs `body` in a fresh process of this test binary whose environment names settings of our own.
pub(crate) fn pinned(test: &str, more: &[(&str, &str)], body: fn()) {
    if std::env::var_os(PINNED).is_some() {
        return body();
    }
    let home = TempDir::new().unwrap();
    let output = command_for(test, home.path(), more).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// The command that runs one test's body, with its home in `home`.
pub(crate) fn command_for(test: &str, home: &Path, more: &[(&str, &str)]) -> Command {
    let settings = home.join("gitconfig");
    if !settings.exists() {
        fs::write(&settings, "[user]\nname = Tester\nemail = tester@localhost\n[init]\ndefaultBranch = main\n")
            .unwrap();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test.split_once("::").unwrap().1, "--exact", "--nocapture"]);
    command.env(PINNED, "1").env("HOME", home).env("XDG_CONFIG_HOME", home.join("config"));
    command.env("GIT_CONFIG_GLOBAL", settings).env("GIT_CONFIG_NOSYSTEM", "1");
    command.envs(more.iter().copied());
    command
}

/// A repository with a first commit, and room for a pool beside it.
pub(crate) struct World {
    pub(crate) directory: TempDir,
    pub(crate) main: PathBuf,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(init: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let main = fs::canonicalize(directory.path()).unwrap().join("repo");
        fs::create_dir(&main).unwrap();
        let world = Self { directory, main };
        git(&world.main, &[&["init", "--quiet"], init].concat());
        for (name, text) in [("a.txt", "a\n"), ("src/b.rs", "b\n"), (".gitignore", "*.log\ntarget/\n.env\n")] {
            write(&world.main.join(name), text);
        }
        commit(&world.main, "first");
        world
    }

    pub(crate) fn repository(&self) -> Repository {
        Repository::discover(&self.main).unwrap()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.main.with_file_name("repo.lanes")
    }

    pub(crate) fn pool(&self, limit: u32) -> Pool {
        Pool::new(self.repository(), &self.root(), limit, false)
    }

    pub(crate) fn head(&self) -> CommitId {
        head(&self.main)
    }

    /// Everything that no work in lanes may change for the user.
    pub(crate) fn users_state(&self) -> Vec<Vec<u8>> {
        let files = [".git/HEAD", ".git/index", ".git/config", ".git/logs/HEAD"];
        let mut state: Vec<_> = files.iter().map(|file| fs::read(self.main.join(file)).unwrap()).collect();
        state.push(git_output(&self.main, &["--no-optional-locks", "status", "--porcelain", "--ignored"]).stdout);
        state
    }

    pub(crate) fn branches(&self) -> Vec<String> {
        lines(&git(&self.main, &["for-each-ref", "--format=%(refname:short)", "refs/heads"]))
    }

    /// The worktrees that git lists, the main one left out.
    pub(crate) fn worktrees(&self) -> Vec<String> {
        let listing = git(&self.main, &["worktree", "list", "--porcelain"]);
        let paths = listing.lines().filter_map(|line| line.strip_prefix("worktree "));
        paths.skip(1).map(str::to_owned).collect()
    }
}

pub(crate) fn run_id(text: &str) -> RunId {
    RunId::new(text).unwrap()
}

pub(crate) fn holder(lane: &str, agent: Option<&str>) -> Holder {
    Holder {
        run: run_id("r1"),
        lane: Some(LaneId::new(lane).unwrap()),
        agent: agent.map(|name| AgentName::new(name).unwrap()),
    }
}

pub(crate) fn fresh(branch: &str, start: &CommitId) -> Checkout {
    Checkout { branch: Some(branch.to_owned()), start: start.clone(), mode: Mode::FreshBranch, adopt: false }
}

pub(crate) fn detached(start: &CommitId) -> Checkout {
    Checkout { branch: None, start: start.clone(), mode: Mode::FreshBranch, adopt: false }
}

pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Commits everything in `worktree`.
pub(crate) fn commit(worktree: &Path, message: &str) -> CommitId {
    git(worktree, &["add", "--all"]);
    git(worktree, &["commit", "--quiet", "--allow-empty", "-m", message]);
    head(worktree)
}

pub(crate) fn head(worktree: &Path) -> CommitId {
    CommitId::new(&git(worktree, &["rev-parse", "HEAD"])).unwrap()
}

pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = git_output(directory, arguments);
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

pub(crate) fn git_output(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("git");
    for name in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C").arg("-C").arg(directory).args(arguments).output().unwrap()
}

pub(crate) fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

pub(crate) fn status(worktree: &Path) -> String {
    git(worktree, &["status", "--porcelain"])
}

/// Every file and link below `path`, `.git` left out, with its content and permissions.
pub(crate) fn contents(path: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).unwrap().flatten().filter(|entry| entry.file_name() != ".git") {
        let name = PathBuf::from(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(contents(&entry.path()).into_iter().map(|(inner, it)| (name.join(inner), it)));
        } else if kind.is_symlink() {
            let leads_to = fs::read_link(entry.path()).unwrap();
            found.insert(name, (0, leads_to.as_os_str().as_bytes().to_vec()));
        } else {
            let mode = entry.metadata().unwrap().permissions().mode();
            found.insert(name, (mode, fs::read(entry.path()).unwrap()));
        }
    }
    found
}

/// Waits until `condition` holds, for at most half a minute.
pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::yield_now();
    }
}

/// A slot of lane `A`, on its branch.
pub(crate) fn lane(world: &World) -> Worktree {
    world.pool(4).open(&holder("A", None), &fresh("lane/P1/A", &world.head())).unwrap()
}

/// Commits everything in the slot of lane `A`.
pub(crate) fn commit_in(world: &World, slot: &Worktree) -> Result<Committed, GitError> {
    let request = CommitRequest {
        worktree: &slot.path,
        branch: &slot.branch,
        message: "work",
        trailers: &[("Run", "r1"), ("Lane", "A")],
        since: &slot.head,
    };
    commit_all(&world.repository(), &request)
}

/// The paths of a commit.
pub(crate) fn tree(world: &World, commit: &CommitId) -> Vec<String> {
    lines(&git(&world.main, &["ls-tree", "-r", "--name-only", commit.as_str()]))
}

/// A commit that continues `main`, made elsewhere, by a change in a detached slot.
pub(crate) fn made_elsewhere(world: &World, change: impl Fn(&Path)) -> CommitId {
    let path = world.main.with_file_name("elsewhere");
    git(&world.main, &["worktree", "add", "-q", "--detach", path.to_str().unwrap()]);
    change(&path);
    let made = commit(&path, "made elsewhere");
    git(&world.main, &["worktree", "remove", "--force", path.to_str().unwrap()]);
    made
}

/// The paths that prevented a publication.
pub(crate) fn dirty(publication: Publication) -> Vec<String> {
    match publication {
        Publication::CheckedOutDirty { blockers, .. } => {
            assert!(!blockers.remedy.is_empty());
            blockers.paths
        }
        other => panic!("{other:?}"),
    }
}

/// A commit that changes, adds and removes files, and makes a file of a directory and the reverse.
pub(crate) fn many_kinds(world: &World) -> CommitId {
    made_elsewhere(world, |path| {
        write(&path.join("a.txt"), "new\n");
        write(&path.join("new"), "new\n");
        write(&path.join("empty"), "");
        fs::remove_dir_all(path.join("src")).unwrap();
        write(&path.join("src"), "a file now\n");
    })
}

/// What a user does to tracked files that [`many_kinds`] leaves alone.
pub(crate) type Beside = fn(&World);

pub(crate) fn world_with_files_beside() -> World {
    let world = World::new();
    for name in ["beside/one", "beside/two", "beside/three"] {
        write(&world.main.join(name), "old\n");
    }
    commit(&world.main, "more");
    world
}

pub(crate) const BESIDE: [(&str, Beside); 7] = [
    ("changed", |world| write(&world.main.join("beside/one"), "mine\n")),
    ("staged", |world| {
        write(&world.main.join("beside/one"), "mine\n");
        git(&world.main, &["add", "beside/one"]);
    }),
    ("staged and changed", |world| {
        write(&world.main.join("beside/one"), "mine\n");
        git(&world.main, &["add", "beside/one"]);
        write(&world.main.join("beside/one"), "more\n");
    }),
    ("staged and new", |world| {
        write(&world.main.join("beside/new"), "mine\n");
        git(&world.main, &["add", "beside/new"]);
    }),
    ("removed", |world| fs::remove_file(world.main.join("beside/two")).unwrap()),
    ("removed and staged", |world| {
        git(&world.main, &["rm", "-q", "beside/two"]);
    }),
    ("all of it", |world| {
        write(&world.main.join("beside/new"), "mine\n");
        write(&world.main.join("beside/one"), "mine\n");
        git(&world.main, &["add", "."]);
        git(&world.main, &["rm", "-q", "beside/two"]);
        write(&world.main.join("beside/three"), "mine\n");
    }),
];
