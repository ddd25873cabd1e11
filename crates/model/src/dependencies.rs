//! What a worktree needs besides the files of its commit: what programs install from lock files, local files, submodules.

use super::word_enum;

/// A lock file, the directories that its packages are installed in, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependencies {
    pub lock_file: &'static str,
    /// Beside the lock file. Git ignores them, so a new worktree does not have them.
    pub places: &'static [&'static str],
    /// The command that installs exactly what the lock file names.
    pub install: &'static str,
}

/// Of tools that do not install what is missing by themselves: cargo and go do.
pub const DEPENDENCIES: &[Dependencies] = &[
    Dependencies { lock_file: "package-lock.json", places: &["node_modules"], install: "npm ci" },
    Dependencies {
        lock_file: "pnpm-lock.yaml",
        places: &["node_modules"],
        install: "pnpm install --frozen-lockfile --prefer-offline",
    },
    Dependencies {
        lock_file: "yarn.lock",
        places: &["node_modules", ".yarn/cache", ".yarn/unplugged"],
        install: "yarn install",
    },
    Dependencies { lock_file: "bun.lock", places: &["node_modules"], install: "bun install --frozen-lockfile" },
    Dependencies { lock_file: "uv.lock", places: &[".venv"], install: "uv sync --frozen" },
    Dependencies { lock_file: "poetry.lock", places: &[".venv"], install: "poetry install" },
    Dependencies { lock_file: "Pipfile.lock", places: &[".venv"], install: "pipenv sync" },
    Dependencies { lock_file: "Gemfile.lock", places: &["vendor/bundle"], install: "bundle install" },
    Dependencies { lock_file: "composer.lock", places: &["vendor"], install: "composer install" },
];

/// Files of a checkout that programs in it need and that are often not in git.
pub const LOCAL_FILES: &[&str] = &[".env", ".env.local", ".envrc", ".tool-versions", "mise.toml", ".mise.toml"];

/// Manifests of packages of Go, cargo, npm and Python: they may say where others are.
pub const MANIFESTS: &[&str] = &["go.mod", "go.work", "Cargo.toml", "package.json", "pyproject.toml"];

/// Lock files, and the commands that make them again from what names the dependencies, without installing these where the
/// tool can.
pub const LOCK_FILES: &[(&str, &str)] = &[
    ("package-lock.json", "npm install --package-lock-only --ignore-scripts"),
    ("pnpm-lock.yaml", "pnpm install --lockfile-only --ignore-scripts"),
    ("yarn.lock", "yarn install --mode=update-lockfile"),
    ("bun.lock", "bun install --lockfile-only"),
    ("Cargo.lock", "cargo update --workspace"),
    ("uv.lock", "uv lock"),
    ("poetry.lock", "poetry lock"),
    ("go.sum", "go mod tidy"),
];

word_enum! {
    /// Whether worktrees get the files of submodules.
    #[derive(Default)]
    Submodules {
        /// From the copies that the checkout has.
        Init = "init",
        /// They are empty there.
        #[default]
        Off = "off",
    }
}
