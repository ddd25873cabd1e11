//! How a gate's line is run: so that a failure anywhere in a pipeline is one.

use std::ops::Range;

use super::parse::{Script, parse};

/// Which shell a line needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// Any: every command of it decides for itself.
    Posix,
    /// bash: without it, only the last program of a pipeline is judged.
    ForPipelines,
    /// bash: no other shell takes it.
    Bash,
}

/// Which shell the line of a gate needs.
pub fn shell_of(text: &str) -> Shell {
    match parse(text) {
        Some(script) if script.needs_bash || text.contains("pipefail") => Shell::Bash,
        Some(script) if !script.stages().is_empty() => Shell::ForPipelines,
        _ => Shell::Posix,
    }
}

/// `text` for bash: a pipeline fails where any of its programs does. One that only died because nobody read on (141) did
/// not fail; one that is missing (127) fails the whole script, also behind `!`.
pub fn strict(text: &str) -> String {
    let Some(script) = parse(text) else { return text.to_owned() };
    let mut stages: Vec<(usize, &str)> = Vec::new();
    for stage in script.stages() {
        stages.extend([(stage.start, "{ "), (stage.end, " || _stage; }")]);
    }
    if stages.is_empty() {
        return text.to_owned();
    }
    stages.sort_by_key(|(at, _)| *at);
    let mut guarded = PRELUDE.to_owned();
    let mut copied = 0;
    for (at, mark) in stages {
        guarded.push_str(&text[copied..at]);
        guarded.push_str(mark);
        copied = at;
    }
    guarded.push_str(&text[copied..]);
    guarded
}

/// On the script's first line, so that the line numbers of its errors hold.
const PRELUDE: &str = "set -o pipefail; trap 'exit 127' USR1; \
    _stage() { local code=$?; case $code in 141) return 0;; 127) kill -s USR1 $$;; esac; return $code; }; ";

impl Script {
    /// The places of all commands that stand in a pipeline with others.
    fn stages(&self) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        self.collect_stages(&mut found);
        found
    }

    fn collect_stages(&self, found: &mut Vec<Range<usize>>) {
        for pipeline in self.lists.iter().flat_map(|list| &list.pipelines).map(|(_, pipeline)| pipeline) {
            for command in &pipeline.commands {
                found.extend((pipeline.commands.len() > 1).then(|| command.range.clone()));
                command.scripts().chain(&command.substituted).for_each(|script| script.collect_stages(found));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// The exit code of `script` where bash runs it as a gate.
    fn code(script: &str) -> i32 {
        let mut bash = Command::new("bash");
        bash.arg("-c").arg(strict(script)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        bash.status().unwrap().code().unwrap()
    }

    #[test]
    fn a_failure_anywhere_in_a_pipeline_is_one() {
        let cases = [
            ("false | tail -1", 1),
            ("(exit 7) | cat | cat", 7),
            ("no-such-program -x 2>&1 | tail -1", 127),
            ("! no-such-program | grep x", 127),
            ("no-such-program | grep x || true", 127),
            ("yes | head -1", 0),
            ("yes | grep -q y && test -e /nowhere", 1),
            ("yes | grep -q y && true", 0),
            ("! yes | grep -q y", 1),
            ("! echo a | grep -q n", 0),
            ("echo a | grep -q n", 1),
            ("x=$(yes | head -1) && test $x = y", 0),
            ("for i in 1 2; do echo $i; done | grep -q 2", 0),
            ("if yes | head -1; then exit 4; fi", 4),
            ("cat <<END | grep -q b\na | x\nEND", 1),
            ("cat <<END | grep -q x # no\na | x\nEND\ntrue", 0),
            ("set -e\nfalse | cat\ntrue", 1),
            ("no-such-program || true", 0),
            ("{ yes; } | { head -1; }", 0),
            ("(yes | head -1) | cat", 0),
            ("test \"$(seq 3 | wc -l)\" -eq 3", 0),
            ("[[ $(yes | head -1) == y ]]", 0),
        ];
        for (script, expected) in cases {
            assert_eq!(code(script), expected, "{script}: {}", strict(script));
        }
    }

    #[test]
    fn lines_without_a_pipeline_stay_as_they_are() {
        for script in ["make", "a || b", "grep 'a | b' c", "# a | b\nls", "not ( shell"] {
            assert_eq!(strict(script), script);
        }
        let shells = [
            ("make", Shell::Posix),
            ("a | b", Shell::ForPipelines),
            ("[[ -f a ]]", Shell::Bash),
            ("diff <(a) <(b)", Shell::Bash),
            ("a &> b", Shell::Bash),
            ("grep '[[:space:]]' a", Shell::Posix),
            ("x && [[ -f a ]]", Shell::Bash),
            ("set -o pipefail; make", Shell::Bash),
            ("echo $(a | b)", Shell::ForPipelines),
        ];
        for (script, shell) in shells {
            assert_eq!(shell_of(script), shell, "{script}");
        }
    }
}
