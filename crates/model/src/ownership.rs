//! Which files a lane may change, and which no lane may.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::plan::{Lane, OwnershipRule};

/// Compiled `owns` globs of a lane.
#[derive(Debug, Clone)]
pub struct Ownership {
    globs: GlobSet,
    anything: bool,
}

impl Ownership {
    /// What an agent of `lane` may change.
    ///
    /// # Errors
    /// The first glob that is no glob.
    pub fn allowed_to(lane: &Lane) -> Result<Self, globset::Error> {
        match lane.ownership {
            OwnershipRule::Enforced => Self::new(&lane.owns),
            OwnershipRule::Advisory => Self::new::<&str>(&[]),
            OwnershipRule::Nothing => Ok(Self { globs: GlobSet::empty(), anything: false }),
        }
    }

    /// Compiles `owns`; an empty list owns everything. A name without wildcard owns itself and what is below it.
    ///
    /// # Errors
    /// The first glob that cannot be compiled, with the reason.
    pub fn new<S: AsRef<str>>(owns: &[S]) -> Result<Self, globset::Error> {
        let mut builder = GlobSetBuilder::new();
        for pattern in owns {
            let pattern = pattern.as_ref().trim_start_matches("./");
            builder.add(glob(pattern)?);
            if !pattern.contains(WILDCARDS) {
                builder.add(glob(&format!("{}/**", pattern.trim_end_matches('/')))?);
            }
        }
        Ok(Self { globs: builder.build()?, anything: owns.is_empty() })
    }

    /// Whether the lane may change `path`, relative to the repository's root.
    pub fn allows(&self, path: &str) -> bool {
        self.anything || self.globs.is_match(path)
    }
}

/// Files that decide what runs on other machines, or how git treats files: a lane that does not own them is reported.
const FAR_REACHING: &[&str] = &[
    ".gitattributes",
    ".gitmodules",
    ".lfsconfig",
    ".github/workflows/",
    ".github/actions/",
    ".gitlab-ci.yml",
    ".circleci/",
    "Jenkinsfile",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    ".husky/",
    ".githooks/",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".envrc",
];

/// Whether a file decides what runs elsewhere: at the root, or `.gitattributes` anywhere.
pub fn is_far_reaching(path: &str) -> bool {
    let is = |known: &&str| if known.ends_with('/') { path.starts_with(known) } else { path == *known };
    FAR_REACHING.iter().any(is) || path.ends_with("/.gitattributes")
}

/// Compiles one `owns` or `copy` glob: `*` stays within a directory, `**` does not.
///
/// # Errors
/// Why the glob cannot be compiled.
pub fn glob(pattern: &str) -> Result<globset::Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}

/// Whether a glob of files names `path`: one without `/` does so in any directory. A glob that is not valid names nothing.
pub fn names_file(pattern: &str, path: &str) -> bool {
    let name = if pattern.contains('/') { path } else { path.rsplit('/').next().unwrap_or(path) };
    glob(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(name))
}

/// Files that no lane changes without an approval. They are compared without case, as some systems compare the names of files.
#[derive(Debug)]
pub struct Protection {
    files: Option<Ownership>,
    /// What each glob begins with before its first wildcard.
    beginnings: Vec<String>,
}

impl Protection {
    /// A glob that is not valid protects nothing; settings have none.
    pub fn new(globs: &[String]) -> Self {
        let globs = globs.iter().map(|glob| glob.trim_start_matches("./").trim_end_matches('/').to_lowercase());
        let mut globs: Vec<String> = globs.collect();
        let beginnings = globs.iter().filter_map(|glob| glob.split(WILDCARDS).next()).map(str::to_owned).collect();
        // A directory with all that is below it, and what is in its place: a link, a submodule or a file.
        let directories: Vec<String> = globs
            .iter()
            .map(|glob| glob.strip_suffix("/**").map_or_else(|| format!("{glob}/**"), str::to_owned))
            .collect();
        globs.extend(directories);
        let anywhere: Vec<String> = globs
            .iter()
            .filter(|glob| !glob.trim_end_matches("/**").contains('/'))
            .map(|glob| format!("**/{glob}"))
            .collect();
        globs.extend(anywhere);
        Self { files: Ownership::new(&globs).ok().filter(|_| !globs.is_empty()), beginnings }
    }

    /// Whether a glob names `path`, a directory above it, or something below it: then it is a link, a submodule, or a file in the
    /// place of a directory.
    pub fn covers(&self, path: &str) -> bool {
        let path = path.to_lowercase();
        let is_above = |beginning: &String| beginning.strip_prefix(&path).is_some_and(|rest| rest.starts_with('/'));
        self.files.as_ref().is_some_and(|files| files.allows(&path)) || self.beginnings.iter().any(is_above)
    }
}

/// A list, in the syntax of TOML, of globs that match nothing but `paths` and, where one ends with `/`, what is below it.
///
/// Bytes that are not UTF-8, which [`String::from_utf8_lossy`] has replaced, become a `*`, and the end of a line a `?`.
pub fn literal_globs<'p>(paths: impl Iterator<Item = &'p str>) -> String {
    let glob = |path: &str| {
        let name = path.strip_suffix('/').unwrap_or(path);
        let literal: String = name.chars().map(literal).collect();
        // A name with wildcards does not own what is below it.
        let below = if literal.contains(WILDCARDS) && path.ends_with('/') { "/**" } else { "" };
        literal + below
    };
    toml::Value::from(paths.map(glob).collect::<Vec<_>>()).to_string()
}

/// The glob of one character.
fn literal(character: char) -> String {
    match character {
        '?' | '*' | '[' | ']' | '{' | '}' | '\\' => format!("[{character}]"),
        '\u{fffd}' => "*".to_owned(),
        '\n' | '\r' => "?".to_owned(),
        other => other.to_string(),
    }
}

/// What makes a glob of a name.
const WILDCARDS: [char; 5] = ['*', '?', '[', '{', '\\'];

/// Where Lanewright keeps its state, relative to the main worktree's root; no agent may change it.
pub const RUN_LOG_DIRECTORY: &str = ".claude/ai-dev-kit/run-logs";

/// Whether no agent may ever commit `path`: the state files and anything of git's own.
pub fn is_prohibited(path: &str) -> bool {
    let inside_state =
        path.strip_prefix(RUN_LOG_DIRECTORY).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    inside_state || path.split('/').any(|part| part.eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_glob_owns_its_contents() {
        let owns = Ownership::new(&["src/ledger/**", "docs", "*.md"]).unwrap();
        for path in ["src/ledger/a.rs", "src/ledger/deep/b.rs", "docs/x/y", "README.md"] {
            assert!(owns.allows(path), "{path}");
        }
        for path in ["src/ledger2/a.rs", "docs2", "sub/README.md", "sub.md/x"] {
            assert!(!owns.allows(path), "{path}");
        }
    }

    #[test]
    fn protection_covers_directories_their_places_and_any_case() {
        let globs = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>();
        for written in [".github/**", ".github", ".github/", "./.github/**", ".GitHub"] {
            let protection = Protection::new(&globs(&[written, "Makefile"]));
            for path in [".github/workflows/ci.yml", ".github", ".GITHUB/x", "Makefile", "a/makefile"] {
                assert!(protection.covers(path), "{written}: {path}");
            }
            for path in [".gitignore", "github/x", "a/.github2", "Makefile.am"] {
                assert!(!protection.covers(path), "{written}: {path}");
            }
        }
        for (written, covered, others) in [
            ("**/hooks/**", ["hooks", "a/hooks", "a/hooks/x"], ["hooks2", "a/hook"]),
            ("packages/*/deploy", ["packages/a/deploy", "packages/a/deploy/x", "packages"], ["packages/a/x", "deploy"]),
            ("{.github,.husky}/**", [".husky", ".github/x", ".husky/x"], [".hus", "github"]),
        ] {
            let protection = Protection::new(&globs(&[written]));
            covered.iter().for_each(|path| assert!(protection.covers(path), "{written}: {path}"));
            others.iter().for_each(|path| assert!(!protection.covers(path), "{written}: {path}"));
        }
        assert!(!Protection::new(&[]).covers("x"));
        assert!(Protection::new(&globs(&["deploy/*.sh"])).covers("deploy"));
        assert!(!Protection::new(&globs(&["deploy/*.sh"])).covers("deploy/x.txt"));
    }

    #[test]
    fn literal_globs_match_their_paths_only() {
        let paths = ["app/[slug]/a b.png", "{x}/*?", "back\\slash", "esc\u{1b}[31m\n\"'.bin", "[id]/node_modules/"];
        let list = literal_globs(paths.into_iter());
        assert!(!list.contains('\n') && !list.contains('\u{1b}'), "{list}");
        let table: toml::Table = format!("take = {list}").parse().unwrap();
        let globs: Vec<&str> = table["take"].as_array().unwrap().iter().map(|glob| glob.as_str().unwrap()).collect();
        for (path, glob) in paths.iter().zip(globs) {
            let path = if path.ends_with('/') { format!("{path}a/b.js") } else { (*path).to_owned() };
            assert!(Ownership::new(&[glob]).unwrap().allows(&path), "{glob} for {path}");
        }
        assert!(!Ownership::new(&["app/[[]slug]/x"]).unwrap().allows("app/s/x"));
        assert_eq!(literal_globs(["a/b.bin", "node_modules/"].into_iter()), r#"["a/b.bin", "node_modules"]"#);
        assert!(Ownership::new(&["caf*"]).unwrap().allows(&String::from_utf8_lossy(b"caf\xe9")));
        assert_eq!(literal_globs(["caf\u{fffd}"].into_iter()), r#"["caf*"]"#);
    }

    #[test]
    fn empty_owns_allows_any_path() {
        assert!(Ownership::new::<&str>(&[]).unwrap().allows("any/thing"));
    }

    #[test]
    fn state_files_and_git_directories_are_prohibited() {
        for path in [".claude/ai-dev-kit/run-logs/r.jsonl", "a/.git", "nested/.git/config", "x/.GIT/y"] {
            assert!(is_prohibited(path), "{path}");
        }
        assert!(!is_prohibited(".claude/commands/x.md"));
        assert!(!is_prohibited(".gitignore"));
    }
}
