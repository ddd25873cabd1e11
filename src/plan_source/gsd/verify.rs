//! What proves that a task is done: commands, which become gates, and prose, which people and agents read.

use std::ops::Range;

use crate::model::CommandLine;
use crate::plan_source::faults::{Faults, quoted};
use crate::plan_source::source_text::File;

use super::endless::is_endless;
use super::kept_by_lanekeeper;
use super::parens::mended;
use super::shell::{is_complete, is_plain_command, may_be_call, may_be_command, needs_bash, without_remark};
use super::text::{clean, dedented};

/// The most commands of one task.
const MAX_COMMANDS: usize = 100;

/// What a `verify` element holds.
#[derive(Debug, Default)]
pub(super) struct Checks {
    pub(super) commands: Vec<CommandLine>,
    /// Everything that is no command, as it is written.
    pub(super) prose: String,
}

/// Reads the part of a file that says how a task is verified.
pub(super) fn read(file: &File<'_>, content: Range<usize>, faults: &Faults<'_>) -> Checks {
    let mut checks = Checks::default();
    let mut reader = Reader { file, faults, checks: &mut checks };
    let text = &file.text[content.clone()];
    let mut at = 0;
    let mut any = false;
    while let Some(found) = text[at..].find("<automated") {
        let open = at + found;
        let Some(tag) = text[open..].find('>') else { break };
        let begin = open + tag + 1;
        let close = text[begin..].find("</automated>").map(|close| begin + close);
        let end = close.unwrap_or(text.len());
        any = true;
        reader.prose(&text[at..open]);
        reader.automated(content.start + begin, &text[begin..end]);
        at = close.map_or(text.len(), |close| close + "</automated>".len());
    }
    if any {
        reader.prose(&text[at..]);
    } else {
        reader.plain(content.start, text);
    }
    checks.commands.truncate(MAX_COMMANDS);
    checks
}

struct Reader<'a, 'f> {
    file: &'a File<'a>,
    faults: &'a Faults<'f>,
    checks: &'a mut Checks,
}

impl Reader<'_, '_> {
    fn prose(&mut self, text: &str) {
        let mut text = dedented(text);
        for tag in ["human-check", "human", "manual", "human_check"] {
            text = text.replace(&format!("<{tag}>"), "").replace(&format!("</{tag}>"), "");
        }
        let text = text.trim();
        if !text.is_empty() {
            if !self.checks.prose.is_empty() {
                self.checks.prose.push('\n');
            }
            self.checks.prose.push_str(text);
        }
    }

    /// The text of an `<automated>` element.
    fn automated(&mut self, start: usize, written: &str) {
        let span = self.file.span(start..start + written.len());
        let text = decoded(&clean(written));
        let script = unfenced(text.trim());
        let whole = script;
        let (script, remark) = if script.contains('\n') { (script, "") } else { without_remark(script) };
        let endless = is_endless(script);
        let mended = (may_be_command(script) || may_be_call(script)).then(|| mended(script)).flatten();
        let Some(script) = mended.filter(|_| !endless) else {
            if !whole.is_empty() {
                let fault = if endless { "never ends by itself" } else { "is no command" };
                let help = if endless {
                    "write a command that ends in `<automated>`; it is told to the agent instead"
                } else {
                    "write a shell line in `<automated>`; it is told to the agent instead"
                };
                self.faults.warning(span, format!("{} {fault}", quoted(whole)), help);
            }
            return self.prose(whole);
        };
        if is_kept(&script) {
            let message = format!("{} looks at a file that Lanekeeper keeps", quoted(&script));
            self.faults.warning(span, message, "check files of the lane; this is told to the agent, but is no gate");
            self.prose(&format!("`{script}`"));
        } else {
            self.checks.commands.push(command(&script));
        }
        self.prose(remark);
    }

    /// Text without any `<automated>`: gates are only the lines that are commands beyond doubt.
    fn plain(&mut self, start: usize, text: &str) {
        self.checks.prose = dedented(text);
        let commands = plain_commands(&decoded(&clean(text)));
        let span = self.file.span(start..start + text.len());
        let commands = commands.iter().filter_map(|line| mended(line));
        for line in commands {
            if is_kept(&line) {
                let message = format!("{} looks at a file that Lanekeeper keeps", quoted(&line));
                self.faults.warning(
                    span,
                    message,
                    "check files of the lane; this is told to the agent, but is no gate",
                );
            } else {
                self.checks.commands.push(command(&line));
            }
        }
        let all_gates = text.lines().filter(|line| !line.trim().is_empty()).count() == self.checks.commands.len();
        if all_gates {
            self.checks.prose.clear();
        }
    }
}

/// The commands among the lines of `text`.
fn plain_commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fence: Option<(bool, String)> = None;
    let mut pending = String::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(info) = line.strip_prefix("```") {
            match fence.take() {
                Some((is_shell, script)) => {
                    found.extend(is_shell.then(|| script_commands(&script)).into_iter().flatten())
                }
                None => {
                    let word = info.split_whitespace().next().unwrap_or("").to_ascii_lowercase();
                    fence = Some((matches!(word.as_str(), "sh" | "bash" | "shell" | "console" | "zsh"), String::new()));
                }
            }
            continue;
        }
        if let Some((_, script)) = &mut fence {
            script.push_str(line);
            script.push('\n');
            continue;
        }
        let joined = format!("{pending}{line}");
        let first = pending.is_empty();
        pending.clear();
        let open = joined.ends_with('\\') || joined.ends_with("&&") || joined.ends_with("||");
        if open
            && (!first || is_plain_command(joined.trim_end_matches(['\\', '&', '|']).trim()))
            && joined.len() < 4_000
        {
            pending = format!("{} ", joined.trim_end_matches('\\').trim_end());
        } else if let Some(command) = line_command(&joined) {
            found.push(command);
        }
    }
    found
}

/// The command of one line, if the line is nothing else.
fn line_command(line: &str) -> Option<String> {
    let line = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).unwrap_or(line).trim();
    let boxes = ["[ ] ", "[x] ", "[X] "];
    let line = boxes.iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line).trim();
    if let Some(inside) = line.trim_end_matches(['.', ';']).strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
        return (!inside.contains('`') && may_be_command(inside) && ends(inside)).then(|| inside.trim().to_owned());
    }
    if let Some(command) = line.strip_prefix("$ ") {
        return (may_be_command(command) && !is_endless(command)).then(|| command.trim().to_owned());
    }
    is_plain_command(line).then(|| line.to_owned())
}

/// Whether a command in backticks is one that ends by itself and needs nothing that runs beside it.
fn ends(command: &str) -> bool {
    let first = command.split_whitespace().next().unwrap_or("");
    !["curl", "wget", "open", "http", "psql", "ssh"].contains(&first)
        && !is_endless(command)
        && (is_plain_command(command) || !starts_server(command))
}

fn starts_server(command: &str) -> bool {
    let parts = ["run dev", "start", "serve", "watch", "runserver", "up"];
    parts.iter().any(|part| command.split_once(' ').is_some_and(|(_, rest)| rest.contains(part)))
}

/// The commands of a fenced block of shell: one by one where each stands for itself, else as one script.
fn script_commands(script: &str) -> Vec<String> {
    let lines: Vec<&str> = script.lines().map(str::trim).collect();
    let commands = lines.iter().copied().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let commands: Vec<&str> = commands.map(|line| line.strip_prefix("$ ").unwrap_or(line)).collect();
    let single = |line: &&str| {
        let first = line.split_whitespace().next().unwrap_or("");
        let binds =
            ["cd", "export", "if", "for", "while", "do", "done", "fi", "then", "else", "set", "source", "}", "|"];
        is_complete(line)
            && !binds.contains(&first)
            && !line.ends_with(['\\', '|', '&', '{'])
            && !line.contains("<<")
            && !is_variable(first)
    };
    if is_endless(script)
        || tells_outcome(&lines)
        || commands.iter().any(|line| starts_server(line) && !is_plain_command(line))
    {
        return Vec::new();
    }
    if commands.iter().all(single) {
        return commands.into_iter().filter(|line| may_be_command(line) && ends(line)).map(str::to_owned).collect();
    }
    let whole = script.trim();
    if may_be_command(whole) && is_complete(&commands.join("\n")) { vec![whole.to_owned()] } else { Vec::new() }
}

/// Whether remarks in a script say what a reader should see: then its exit code says nothing.
fn tells_outcome(lines: &[&str]) -> bool {
    let comment = |line: &str| line.starts_with('#');
    let behind = lines.windows(2).enumerate().any(|(at, pair)| {
        let ends = lines.get(at + 2).is_none_or(|next| next.is_empty());
        !pair[0].is_empty() && !comment(pair[0]) && comment(pair[1]) && ends
    });
    let told = |line: &&str| {
        let remark = line
            .split_once('#')
            .map_or("", |(before, remark)| if before.ends_with([' ']) || before.is_empty() { remark } else { "" });
        let remark = remark.to_ascii_lowercase();
        ["expect", "should", "must", "output", "->", "→", "=>", "returns", "prints"]
            .iter()
            .any(|word| remark.contains(word))
    };
    behind || lines.iter().any(told)
}

fn is_variable(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_'))
}

/// A script as a gate: all of its lines must succeed.
fn command(script: &str) -> CommandLine {
    let script =
        if script.trim().contains('\n') { format!("set -e\n{}", script.trim()) } else { script.trim().to_owned() };
    if needs_bash(&script) {
        return CommandLine::Arguments(vec!["bash".to_owned(), "-c".to_owned(), script]);
    }
    CommandLine::Shell(script)
}

/// Whether a command looks at a file that agents may not change.
fn is_kept(script: &str) -> bool {
    script.split(|c: char| c.is_whitespace() || "\"';|&()".contains(c)).any(kept_by_lanekeeper)
}

/// A block of code without its fence, or a command without its backticks.
fn unfenced(text: &str) -> &str {
    if let Some(inside) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) {
        return inside.split_once('\n').map_or("", |(_, script)| script).trim();
    }
    let ticked = text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')).filter(|inside| !inside.contains('`'));
    ticked.unwrap_or(text).trim()
}

/// `text` with its entities as characters, where it was written with entities: a bare `&` says that it was not.
pub(super) fn decoded(text: &str) -> String {
    const ENTITIES: [(&str, &str); 6] =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"), ("&amp;", "&")];
    let is_entity = |at: usize| ENTITIES.iter().any(|(entity, _)| text[at..].starts_with(entity));
    if !text.contains('&') || !text.match_indices('&').all(|(at, _)| is_entity(at)) {
        return text.to_owned();
    }
    ENTITIES.iter().fold(text.to_owned(), |text, (entity, character)| text.replace(entity, character))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_source::source_text::SourceText;

    fn checks(text: &str) -> (Vec<String>, String, usize) {
        let faults = Faults::new(SourceText::new("p", text));
        let read = read(&faults.source.files()[0], 0..text.len(), &faults);
        let commands = read.commands.iter().map(ToString::to_string).collect();
        (commands, read.prose, faults.into_diagnostics().len())
    }

    #[test]
    fn commands_become_gates_and_prose_stays() {
        let cases: [(&str, &[&str], &str, usize); 22] = [
            ("<automated>npm test</automated>", &["npm test"], "", 0),
            ("<automated>cd a &amp;&amp; make 2>&amp;1 | tail</automated>", &["cd a && make 2>&1 | tail"], "", 0),
            ("<automated>grep '&amp;' a && b</automated>", &["grep '&amp;' a && b"], "", 0),
            ("<automated>MISSING — no test</automated>", &[], "MISSING — no test", 1),
            ("<automated>npx tsc — no errors</automated>", &["npx tsc"], "no errors", 0),
            ("<automated></automated>\nLook at it.", &[], "Look at it.", 0),
            ("<automated>a -x\nb -y</automated>", &["set -e\na -x\nb -y"], "", 0),
            ("<automated>```sh\nmake\n```</automated>", &["make"], "", 0),
            ("<automated>[[ -f a ]] && b</automated>", &["bash -c '[[ -f a ]] && b'"], "", 0),
            ("<automated>grep x .planning/STATE.md</automated>", &[], "`grep x .planning/STATE.md`", 1),
            ("<automated>npm test</automated><human-check>Click.</human-check>", &["npm test"], "Click.", 0),
            ("test -f a.gd\ngrep -q \"x y\" a.gd", &["test -f a.gd", "grep -q \"x y\" a.gd"], "", 0),
            ("All tests pass.", &[], "All tests pass.", 0),
            ("`npm test`\nThe page loads.", &["npm test"], "`npm test`\nThe page loads.", 0),
            ("Run `npm test` -- all pass.", &[], "Run `npm test` -- all pass.", 0),
            ("$ make check", &["make check"], "", 0),
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
    fn blocks_of_shell_are_taken_line_by_line_or_whole() {
        let (commands, ..) = checks("```bash\n# it is there\ntest -f a\n\ngrep -q b a\n```");
        assert_eq!(commands, ["test -f a", "grep -q b a"]);
        let (commands, ..) = checks("```bash\ncd web\nnpm test\n```");
        assert_eq!(commands, ["set -e\ncd web\nnpm test"]);
        let (commands, ..) = checks("```bash\nnpm run dev\n```\n```ts\nlet a = 1\n```");
        assert_eq!(commands, Vec::<String>::new());
        let (commands, ..) = checks("```bash\ngrep -c x a\n# 0\n```\n```sh\nls a # should be there\n```");
        assert_eq!(commands, Vec::<String>::new());
        let (commands, ..) = checks("cargo test \\\n  --lib\n");
        assert_eq!(commands, ["cargo test --lib"]);
    }
}
