//! The user's checkout, byte for byte.

use std::fs;

use super::TestEnv;

/// What no run may change unless it has to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsersCheckout {
    head: Vec<u8>,
    index: Vec<u8>,
    config: Vec<u8>,
    status: String,
    files: Vec<(String, Vec<u8>)>,
    /// Every ref but the integration branch, which runs are there to move.
    refs: Vec<String>,
}

impl UsersCheckout {
    pub(super) fn take(env: &TestEnv) -> Self {
        let bytes = |below: &str| fs::read(env.path(below)).unwrap_or_default();
        let names = ["README.md", "staged.txt", "untracked.txt"];
        let refs = env.git(&["for-each-ref", "--format=%(objectname) %(refname)"]);
        Self {
            head: bytes("repo/.git/HEAD"),
            index: bytes("repo/.git/index"),
            config: bytes("repo/.git/config"),
            status: env.git(&["--no-optional-locks", "status", "--porcelain"]),
            files: names.iter().map(|name| ((*name).to_owned(), bytes(&format!("repo/{name}")))).collect(),
            refs: refs.lines().filter(|line| !line.ends_with(" refs/heads/main")).map(str::to_owned).collect(),
        }
    }

    /// The same without refs, where a run that has not ended keeps its own.
    pub(crate) fn without_refs(self) -> Self {
        Self { refs: Vec::new(), ..self }
    }
}
