//! The commands of phase plans: those of a cell, a sentence or a script, and which of them judge a lane's work.

use crate::plan::command::{Why, in_statement, is_plain_command, may_be_command, relocated, script_gate};
use crate::plan::markdown::inline::{codes, is_nothing, one_line};

/// Commands, as far as they can judge.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Commands {
    pub(super) gates: Vec<String>,
    /// Those that are no gates.
    pub(super) others: Vec<(String, Why)>,
}

impl Commands {
    /// The commands of a cell of a command column.
    pub(super) fn in_cell(text: &str) -> Self {
        if is_nothing(text) {
            return Self::default();
        }
        if !codes(text).is_empty() {
            return Self::judged(in_statement(text));
        }
        let line = one_line(text);
        let sure = is_plain_command(&line) || (may_be_command(&line) && line.contains(" --"));
        Self::judged(Some(line).filter(|_| sure).into_iter().collect())
    }

    pub(super) fn in_sentence(text: &str) -> Self {
        Self::judged(in_statement(text))
    }

    pub(super) fn judged(commands: Vec<String>) -> Self {
        let mut judged = Self::default();
        for command in commands {
            match script_gate(&command) {
                Ok(gate) => judged.gates.push(gate),
                Err(why) => judged.others.push((command, why)),
            }
        }
        judged
    }

    /// Puts the lane's worktree in place of `root`; what names other files of another machine is no gate.
    pub(super) fn relocate(&mut self, root: Option<&str>) {
        for gate in std::mem::take(&mut self.gates) {
            match relocated(&gate, root) {
                Some(moved) => self.gates.push(moved),
                None => self.others.push((gate, Why::Elsewhere)),
            }
        }
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.gates.extend(other.gates);
        self.others.extend(other.others);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.gates.is_empty() && self.others.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_command_column() {
        let cases: &[(&str, &[&str])] = &[
            ("`npm run test -- tests/unit`", &["npm run test -- tests/unit"]),
            ("pytest tests/a.py -v", &["pytest tests/a.py -v"]),
            ("`npm run build && npx tool --help`", &["npm run build && npx tool --help"]),
            ("`ruff check --all`, then `pytest -q`", &["ruff check --all", "pytest -q"]),
            ("`pytest -q` (if there is none, say so)", &[]),
            ("`ruff check src/`; there is no other linter here", &["ruff check src/"]),
            ("Manual review", &[]),
            ("test coverage is complete", &[]),
            ("see `## Verification` step 2", &[]),
            ("`src/cli/index.ts`", &[]),
            ("—", &[]),
            ("n/a", &[]),
            ("`rg -n old src/` returns no matches", &[]),
            ("`rg -n old src/`, which must fail", &[]),
            ("`test ! -e old.txt || make check`", &["test ! -e old.txt || make check"]),
            ("`TMPDIR=/var/tmp uv run pytest`", &["TMPDIR=/var/tmp uv run pytest"]),
            ("`! rg -n old src/`", &["! rg -n old src/"]),
            ("`./check.sh`", &["./check.sh"]),
            ("`git status --short` shows owned paths only", &[]),
            ("`pytest -q | tail -3`", &["pytest -q"]),
            ("`python - <<'E'\n    print(1)\n    E`", &["python - <<'E'\nprint(1)\nE"]),
            ("`pytest a\n    b`", &["pytest a b"]),
            ("`python -c \"a\n    b\"`", &["python -c \"a\nb\""]),
        ];
        for (text, commands) in cases {
            assert_eq!(Commands::in_cell(text).gates, *commands, "{text}");
        }
    }
}
