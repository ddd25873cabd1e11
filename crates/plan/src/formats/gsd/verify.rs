//! What proves that a task is done: commands, which become gates, and prose, which people and agents read.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::command::{
    GateFault, commands, expects_failure, is_syntax, may_be_call, may_be_command, quotes_program, script_gate,
    searches, without_remark,
};
use crate::faults::Faults;
use crate::markdown::inline::{dedent, one_line};
use crate::markdown::{clean, without_marker};
use crate::source_text::File;

use super::names::is_kept_by_lanewright;

const MAX_COMMANDS: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Checks {
    pub(super) gates: Vec<String>,
    /// Everything that is no gate, as it is written.
    pub(super) prose: String,
}

static AUTOMATED: LazyLock<Regex> = pattern!(r"(?s)<automated[^>]*>(.*?)(?:</automated>|\z)");

/// Reads the part of a file that says how a task is verified.
pub(super) fn read(file: &File<'_>, content: Range<usize>, faults: &Faults<'_>) -> Checks {
    let mut reader = Reader { file, faults, checks: Checks::default() };
    let text = &file.text[content.clone()];
    let mut end = 0;
    for element in AUTOMATED.captures_iter(text) {
        let (whole, inside) = (element.get_match(), element.get(1).map_or(0..0, |inside| inside.range()));
        reader.prose(&text[end..whole.start()]);
        end = whole.end();
        let behind = text[end..].split('<').next().unwrap_or("");
        reader.automated(content.start + inside.start, &text[inside], behind);
    }
    if end > 0 {
        reader.prose(&text[end..]);
    } else {
        reader.plain(content.start, text);
    }
    reader.checks.gates.truncate(MAX_COMMANDS);
    reader.checks
}

struct Reader<'a, 'f> {
    file: &'a File<'a>,
    faults: &'a Faults<'f>,
    checks: Checks,
}

impl Reader<'_, '_> {
    fn prose(&mut self, text: &str) {
        let lines = [std::mem::take(&mut self.checks.prose), without_tags(&dedent(text)).trim().to_owned()];
        self.checks.prose = lines.join("\n").trim_matches('\n').to_owned();
    }

    /// The text of an `<automated>` element, and the text after it.
    fn automated(&mut self, start: usize, written: &str, behind: &str) {
        let span = self.file.span(start..start + written.len());
        let text = decoded(&clean(written));
        let whole = unfenced(text.trim());
        if whole.is_empty() {
            return;
        }
        let (script, remark) = if whole.contains('\n') { (whole, "") } else { without_remark(whole) };
        let script = unwrapped(script);
        let expected = behind.trim_start().lines().next().filter(|line| says_what_is_expected(line)).unwrap_or("");
        let search = searches(&script);
        let gate = if !(may_be_command(&script) || may_be_call(&script) || is_syntax(&script)) {
            Err(GateFault::NotACommand)
        } else if expects_failure(remark, search) || expects_failure(expected, search) {
            Err(GateFault::ExpectsFailure)
        } else {
            gate(&script)
        };
        match gate {
            Ok(gate) => {
                self.checks.gates.push(gate);
                self.prose(remark);
            }
            Err(why) => {
                why.warn(whole, span, self.faults);
                self.prose(whole);
            }
        }
    }

    /// Text without any `<automated>`: gates are only the commands that it plainly has one run.
    fn plain(&mut self, start: usize, text: &str) {
        self.checks.prose = dedent(text);
        let span = self.file.span(start..start + text.len());
        let text = decoded(&dedent(text));
        let found = commands(&text);
        let run = found.iter().map(|command| one_line(command)).collect::<Vec<_>>().join(" ");
        let marks = |line: &str| one_line(without_marker(line).trim_matches(['`', '.', ';', '$', ' ']));
        let said: Vec<String> =
            text.lines().map(marks).filter(|line| !line.is_empty() && !line.starts_with("```")).collect();
        let mut says_more = run != said.join(" ");
        for command in found {
            match gate(&command) {
                Ok(gate) => self.checks.gates.push(gate),
                Err(why) => {
                    says_more = true;
                    why.warn(&command, span, self.faults);
                }
            }
        }
        if !says_more {
            self.checks.prose.clear();
        }
    }
}

/// `text` without the tags that say who or what checks.
pub(super) fn without_tags(text: &str) -> String {
    ["automated", "human-check", "human_check", "human", "manual"]
        .iter()
        .fold(text.to_owned(), |text, tag| text.replace(&format!("<{tag}>"), "").replace(&format!("</{tag}>"), ""))
}

/// The gate that a command makes, unless it looks at a file that agents may not change.
fn gate(command: &str) -> Result<String, GateFault> {
    if is_kept(command) { Err(GateFault::ManagedFile) } else { script_gate(command) }
}

fn says_what_is_expected(line: &str) -> bool {
    let first = line.trim_start_matches(['(', '-', '*', ' ']).split([' ', ':']).next().unwrap_or("").to_lowercase();
    ["expect", "expected", "expects", "should", "must", "output", "returns", "no", "zero", "none", "→", "=>"]
        .contains(&first.as_str())
}

/// A command that an editor wrapped over lines as one line; a script of several commands as it is.
fn unwrapped(script: &str) -> String {
    if quotes_program(script) {
        return dedent(script);
    }
    let begins = |line: &str| line.starts_with(['"', '\'', '-', '|', '&', '/']) || line.contains("--");
    let wrapped = script.lines().skip(1).map(str::trim).any(|line| begins(line) && !may_be_command(line));
    let unfinished = |line: &str| ["run", "exec", "npx", "-m", "-k"].contains(&line.rsplit(' ').next().unwrap_or(line));
    let wrapped = wrapped || script.lines().map(str::trim_end).any(unfinished);
    let joined = script.lines().map(|line| line.trim().trim_end_matches('\\').trim_end()).collect::<Vec<_>>().join(" ");
    let is_one = wrapped
        && !script.contains("<<")
        && !script.contains('#')
        && lanewright_agents::shell::parse(&joined).is_some();
    if is_one { joined } else { script.to_owned() }
}

/// Whether a command looks at a file that agents may not change.
fn is_kept(script: &str) -> bool {
    script.split(|c: char| c.is_whitespace() || "\"';|&()".contains(c)).any(is_kept_by_lanewright)
}

/// A block of code without its fence, or a command without its backticks.
fn unfenced(text: &str) -> &str {
    if let Some(inside) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) {
        return inside.split_once('\n').map_or("", |(_, script)| script).trim();
    }
    let ticked = text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')).filter(|inside| !inside.contains('`'));
    ticked.unwrap_or(text).trim()
}

/// `text` with its entities as characters, where it was written with entities: a bare `&` that a shell takes says that
/// it was not.
pub(super) fn decoded(text: &str) -> String {
    const ENTITIES: [(&str, &str); 6] =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"), ("&amp;", "&")];
    let is_entity = |at: usize| ENTITIES.iter().any(|(entity, _)| text[at..].starts_with(entity));
    if !text.match_indices('&').any(|(at, _)| is_entity(at)) {
        return text.to_owned();
    }
    let decoded = ENTITIES.iter().fold(text.to_owned(), |text, (entity, character)| text.replace(entity, character));
    let mixed = !text.match_indices('&').all(|(at, _)| is_entity(at));
    let as_written = mixed
        && (lanewright_agents::shell::parse(text).is_some() || lanewright_agents::shell::parse(&decoded).is_none());
    if as_written { text.to_owned() } else { decoded }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_text::SourceText;

    fn checks(text: &str) -> (Vec<String>, String, usize) {
        let faults = Faults::new(SourceText::new("p", text));
        let read = read(&faults.source.files()[0], 0..text.len(), &faults);
        (read.gates, read.prose, faults.into_diagnostics().len())
    }

    #[test]
    fn verify_separates_gates_from_prose() {
        let cases: [(&str, &[&str], &str, usize); 31] = [
            ("<automated>npm test</automated>", &["npm test"], "", 0),
            ("<automated>cd a &amp;&amp; make 2>&amp;1 | tail</automated>", &["cd a && make 2>&1"], "", 0),
            ("<automated>cd a &amp;&amp; make 2>&1</automated>", &["cd a && make 2>&1"], "", 0),
            ("<automated>grep -c x a — 0 matches</automated>", &[], "grep -c x a", 1),
            ("<automated>grep -rn x a</automated>\nExpected: no output", &[], "grep -rn x a", 1),
            ("<automated>npm test</automated>\nExpected: no errors", &["npm test"], "Expected", 0),
            ("<automated>npm test || true</automated>", &[], "npm test || true", 1),
            ("<automated>cd a && uv run\npytest b</automated>", &["cd a && uv run pytest b"], "", 0),
            ("Search for it:\n```bash\nrg old src\nnpm test\n```\nBoth return no results.", &["npm test"], "Search", 0),
            ("<automated>cd a &&\nnpm run build -- \n  --all</automated>", &["cd a && npm run build -- --all"], "", 0),
            ("<automated>grep '&amp;' a && b</automated>", &["grep '&amp;' a && b"], "", 0),
            ("<automated>MISSING — no test</automated>", &[], "MISSING — no test", 1),
            ("<automated>npx tsc — no errors</automated>", &["npx tsc"], "no errors", 0),
            ("<automated></automated>\nLook at it.", &[], "Look at it.", 0),
            ("<automated>a -x\nb -y</automated>", &["set -e\na -x\nb -y"], "", 0),
            ("<automated>```sh\nmake\n```</automated>", &["make"], "", 0),
            ("<automated>[[ -f a ]] && b</automated>", &["[[ -f a ]] && b"], "", 0),
            ("<automated>grep x .planning/STATE.md</automated>", &[], "grep x .planning/STATE.md", 1),
            ("<automated>npm test</automated><human-check>Click.</human-check>", &["npm test"], "Click.", 0),
            ("test -f a.gd\ngrep -q \"x y\" a.gd", &["test -f a.gd", "grep -q \"x y\" a.gd"], "", 0),
            ("All tests pass.", &[], "All tests pass.", 0),
            ("`npm test`\nThe page loads.", &["npm test"], "`npm test`\nThe page loads.", 0),
            ("Run `npm test` -- all pass.", &["npm test"], "Run `npm test` -- all pass.", 0),
            ("$ make check", &["make check"], "", 0),
            ("test -f a\n    make check passes", &["test -f a", "make check"], "test -f a", 0),
            ("<automated>docker compose up</automated>", &[], "docker compose up", 1),
            ("`npm run dev`\n- `node server.js`", &[], "`npm run dev`", 0),
            ("- [ ] Server starts\n- [ ] `npm test`", &["npm test"], "- [ ] Server", 0),
            ("<automated>a -x (all of it) && b</automated>", &[], "a -x", 1),
            ("ls app/(a)/b.ts", &["ls app/\\(a\\)/b.ts"], "", 0),
            ("<automated>forge test</automated>", &["forge test"], "", 0),
        ];
        for (text, commands, prose, warnings) in cases {
            let (found, told, count) = checks(text);
            assert_eq!(
                (found.as_slice(), count),
                (&commands.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>()[..], warnings),
                "{text}"
            );
            assert!(told.starts_with(prose) && (told.is_empty() == prose.is_empty()), "{text}: {told}");
        }
    }

    #[test]
    fn programs_in_quotes_keep_their_lines() {
        let program = "python3 -c \"\nimport os\nif not os.path.exists('a'):\n    raise SystemExit(1)\n\"";
        let (commands, ..) = checks(&format!("<automated>{program}</automated>"));
        assert_eq!(commands, [program]);
        let (commands, ..) =
            checks("<automated>\n    node -e '\n      let a = 1;\n      process.exit(a)\n    '\n  </automated>");
        assert_eq!(commands, ["node -e '\n  let a = 1;\n  process.exit(a)\n'"]);
    }

    #[test]
    fn shell_blocks_are_split_or_kept_whole() {
        let (commands, ..) = checks("```bash\n# it is there\ntest -f a\n\ngrep -q b a\n```");
        assert_eq!(commands, ["test -f a", "grep -q b a"]);
        let (commands, ..) = checks("```bash\ncd web\nnpm test\n```");
        assert_eq!(commands, ["set -e\ncd web\nnpm test"]);
        let (commands, ..) = checks("```bash\nnpm run dev\n```\n```ts\nlet a = 1\n```");
        assert_eq!(commands, Vec::<String>::new());
        let (commands, ..) = checks("```bash\ngrep -c x a\n# 0\n```\n```sh\nls a # should be there\n```");
        assert_eq!(commands, ["ls a"]);
        let (commands, ..) = checks("cargo test \\\n  --lib\n");
        assert_eq!(commands, ["cargo test --lib"]);
    }
}
