//! Commands, apart by whether they can judge work.

use super::judge::{Why, script_gate};
use super::rooted::relocated;
use crate::faults::Faults;
use crate::source_text::Span;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Commands {
    pub(crate) gates: Vec<String>,
    /// Those that are no gates.
    pub(crate) others: Vec<(String, Why)>,
}

impl Commands {
    pub(crate) fn judged(commands: Vec<String>) -> Self {
        let mut judged = Self::default();
        for command in commands {
            match script_gate(&command) {
                Ok(gate) => judged.gates.push(gate),
                Err(why) => judged.others.push((command, why)),
            }
        }
        judged
    }

    /// Puts the lane's worktree in place of `root`; a gate that names other files of another machine is none. Whether any
    /// gate was changed.
    pub(crate) fn relocate(&mut self, root: Option<&str>) -> bool {
        let mut any = false;
        for gate in std::mem::take(&mut self.gates) {
            match relocated(&gate, root) {
                Some(moved) => {
                    any |= moved != gate;
                    self.gates.push(moved);
                }
                None => self.others.push((gate, Why::Elsewhere)),
            }
        }
        any
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.gates.extend(other.gates);
        self.others.extend(other.others);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.gates.is_empty() && self.others.is_empty()
    }

    pub(crate) fn warn(&self, place: impl Into<Span>, faults: &Faults<'_>) {
        let place = place.into();
        for (command, why) in &self.others {
            // `set -e` is Lanewright's own.
            let (message, help) = why.explain(command.strip_prefix("set -e\n").unwrap_or(command));
            faults.warning(place, message, help);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::statement::commands_of_cell;
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
            assert_eq!(Commands::judged(commands_of_cell(text)).gates, *commands, "{text}");
        }
    }
}
