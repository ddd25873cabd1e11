//! One task: its kind, its files, its gates, and when it counts as done.

use std::collections::HashSet;
use std::ops::Range;

use lanewright_model::text::headline;
use lanewright_model::{CommandLine, TaskId, TaskKind};

use super::tasks::{Child, RawTask, attributes};
use super::verify;
use crate::command::Commands;
use crate::draft::{PromptDraft, TaskDraft};
use crate::faults::{Faults, quoted};
use crate::markdown::inline::{codes, dedent, is_nothing};
use crate::markdown::{as_code, clean, list_items, paragraph, unfenced_lines};
use crate::path::{below_root, in_prose, items, listed};
use crate::source_text::{At, File, Span};

const MAX_NAME: usize = 200;

/// A task before its prompt is put together.
#[derive(Default)]
pub(super) struct ReadTask {
    pub(super) span: Span,
    id: Option<String>,
    pub(super) name: Option<At<String>>,
    pub(super) kind: At<TaskKind>,
    pub(super) remarks: Vec<String>,
    files: Vec<At<String>>,
    /// What `files` says, where that is more than names.
    pub(super) files_prose: String,
    says_no_files: bool,
    pub(super) commands: Commands,
    pub(super) verify: String,
    acceptance_criteria: Vec<At<String>>,
}

pub(super) fn read(file: &File<'_>, raw: &RawTask<'_>, faults: &Faults<'_>) -> ReadTask {
    let span = file.span(raw.range.start..raw.head_end);
    for (at, name) in &raw.unclosed {
        let message = format!("`<{name}>` is not closed");
        let help = format!("close it with `</{name}>`; it is taken to end where the next element begins");
        faults.warning(file.span(*at..*at), message, help);
    }
    let attributes = if raw.is_heading { Vec::new() } else { attributes(raw.head) };
    let attribute = |name: &str| attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
    let (kind, type_remark) = kind(attribute("type"));
    let mut task = ReadTask {
        span,
        id: attribute("id").filter(|id| TaskId::new(id).is_ok()).map(str::to_owned),
        name: name(file, raw, attribute("name").or(attribute("title")), span),
        kind: At::new(kind, span),
        remarks: remarks(&attributes, type_remark),
        ..ReadTask::default()
    };
    raw.children.iter().for_each(|child| task.take(file, child, faults));
    if let Some(files) = attribute("files") {
        task.add_files(files, &|_| span, faults);
    }
    task.take_labels(file, raw, faults);
    if task.kind.value.is_human() {
        task.commands = Commands::default();
    }
    task
}

/// The kind of a task, and the word of its type where that says something more.
fn kind(word: Option<&str>) -> (TaskKind, Option<String>) {
    let Some(word) = word.map(str::trim).filter(|word| !word.is_empty()) else { return (TaskKind::Auto, None) };
    let lower = word.to_ascii_lowercase().replace('_', "-");
    if let Some(rest) = lower.strip_prefix("checkpoint").or_else(|| lower.starts_with("human-").then_some(&lower)) {
        let kind = match rest {
            rest if rest.contains("decision") || rest.contains("decide") => TaskKind::Decision,
            rest if rest.contains("action") => TaskKind::HumanAction,
            _ => TaskKind::HumanVerify,
        };
        return (kind, None);
    }
    let plain = ["auto", "execute", "automated", "autonomous", "task"].contains(&lower.as_str());
    let remark = match lower.as_str() {
        _ if plain => None,
        "tdd" => Some("Work test first: write a test that fails, then the code that makes it pass.".to_owned()),
        _ => Some(format!("The plan says that this task is of the type `{}`.", clean(word))),
    };
    (TaskKind::Auto, remark)
}

fn remarks(attributes: &[(String, String)], type_remark: Option<String>) -> Vec<String> {
    let tdd = attributes.iter().any(|(name, value)| name == "tdd" && value == "true");
    let mut remarks: Vec<String> = type_remark.into_iter().collect();
    if tdd && remarks.is_empty() {
        remarks.extend(kind(Some("tdd")).1);
    }
    let own = ["type", "tdd", "gate", "id", "name", "title", "files"];
    for (name, value) in attributes.iter().filter(|(name, value)| !own.contains(&name.as_str()) && !value.is_empty()) {
        remarks.push(format!("{name}: {}", clean(value)));
    }
    remarks
}

fn name(file: &File<'_>, raw: &RawTask<'_>, attribute: Option<&str>, span: Span) -> Option<At<String>> {
    let element = raw.children.iter().find(|child| child.name == "name");
    let (text, span) = match element {
        Some(child) => (&file.text[child.content.clone()], file.span(child.content.clone())),
        None if raw.is_heading => (raw.head, span),
        None => match attribute.or_else(|| asked(file, raw)) {
            Some(text) => (text, span),
            None => return None,
        },
    };
    let text = if raw.is_heading { text.replace("**", "") } else { text.to_owned() };
    let words = clean(&text).split_whitespace().collect::<Vec<_>>().join(" ");
    (!words.is_empty()).then(|| At::new(headline(&words, MAX_NAME), span))
}

/// The first line of what a checkpoint without a name asks for.
fn asked<'a>(file: &File<'a>, raw: &RawTask<'_>) -> Option<&'a str> {
    let asks = ["decision", "what-built", "instructions"];
    let child = raw.children.iter().find(|child| asks.contains(&child.name))?;
    file.text[child.content.clone()].lines().map(str::trim).find(|line| !line.is_empty())
}

impl ReadTask {
    fn take(&mut self, file: &File<'_>, child: &Child, faults: &Faults<'_>) {
        let text = &file.text[child.content.clone()];
        let span = file.span(child.content.clone());
        match child.name {
            "files" => {
                let place = |range: Range<usize>| Span::new(span.start + range.start, span.start + range.end);
                self.add_files(text, &place, faults);
            }
            "verify" => {
                let checks = verify::read(file, child.content.clone(), faults);
                self.commands.gates.extend(checks.gates);
                paragraph(&mut self.verify, &checks.prose);
            }
            "acceptance-criteria" | "done" => {
                let items = list_items(text).into_iter().map(|item| At::new(item, span));
                self.acceptance_criteria.extend(items);
            }
            _ => {}
        }
    }

    /// Puts the lane's worktree in place of `root` in all gates; one that still names files of another machine is none.
    /// Whether any was changed.
    pub(super) fn relocate(&mut self, root: Option<&str>, faults: &Faults<'_>) -> bool {
        let any = self.commands.relocate(root);
        self.commands.warn(self.span, faults);
        if !self.commands.others.is_empty() {
            paragraph(&mut self.verify, "These name files of another machine; check the same in your worktree:");
        }
        for (command, _) in &self.commands.others {
            paragraph(&mut self.verify, &as_code(&[command]));
        }
        any
    }

    /// Adds the names that a list of files holds; `place` gives the span of a part of it.
    fn add_files(&mut self, text: &str, place: &dyn Fn(Range<usize>) -> Span, faults: &Faults<'_>) {
        let (mut bad, mut count, mut remarks) = (None, 0, false);
        for (range, item) in items(text) {
            match listed(item) {
                Ok(Some(path)) => {
                    remarks |= item.trim_start_matches("- ").trim_matches(['`', '"', '\'']) != path;
                    if !self.files.iter().any(|known| known.value == path) {
                        self.files.push(At::new(path, place(range)));
                    }
                }
                Ok(None) => remarks = true,
                Err(why) => {
                    remarks = true;
                    count += 1;
                    bad = bad.or(Some((place(range), item, why)));
                }
            }
        }
        self.says_no_files |= is_nothing(text) || text.trim().to_lowercase().starts_with("no files");
        if remarks {
            paragraph(&mut self.files_prose, &dedent(text));
        }
        if let Some((span, item, why)) = bad {
            let more = if count > 1 { format!(", and {} more here", count - 1) } else { String::new() };
            let message = format!("{} is taken for no file: {why}{more}", quoted(item));
            faults.warning(span, message, "name one file below the repository's root on each line");
        }
    }

    /// Reads labels in bold where the task has no elements for the same.
    fn take_labels(&mut self, file: &File<'_>, raw: &RawTask<'_>, faults: &Faults<'_>) {
        for range in &raw.loose {
            for (label, part) in labels(&file.text[range.clone()]) {
                let content = range.start + part.start..range.start + part.end;
                let text = &file.text[content.clone()];
                match label.as_str() {
                    "file" | "files" | "files to create" | "files to modify" | "files modified"
                        if !raw.has("files") =>
                    {
                        let named =
                            codes(text).into_iter().filter_map(|code| below_root(in_prose(&text[code.inner])?).ok());
                        let place = file.span(content.clone());
                        self.files.extend(named.map(|path| At::new(path, place)));
                    }
                    "verify" | "verification" | "verify with" if !raw.has("verify") => {
                        self.commands.gates.extend(verify::read(file, content, faults).gates);
                    }
                    _ => {}
                }
            }
        }
    }

    /// The task as the plan's draft takes it.
    pub(super) fn draft(self, prompt: String, id: Option<String>) -> TaskDraft {
        let span = self.span;
        TaskDraft {
            span,
            id: id.map(|id| At::new(id, span)),
            name: self.name,
            kind: Some(self.kind),
            prompt: PromptDraft::here(prompt, span),
            verify: self.commands.gates.into_iter().map(CommandLine::Shell).collect(),
            // A task that builds, deploys or verifies.
            allow_empty: self.says_no_files && self.files.is_empty(),
            files: self.files,
            acceptance_criteria: self.acceptance_criteria,
            ..TaskDraft::default()
        }
    }
}

/// The ids of the plan's tasks where all have one of their own.
pub(super) fn ids(tasks: &[ReadTask]) -> Option<Vec<String>> {
    let ids: Option<Vec<String>> = tasks.iter().map(|task| task.id.clone()).collect();
    ids.filter(|ids| {
        let mut seen = HashSet::new();
        ids.iter().all(|id| seen.insert(id.to_lowercase()))
    })
}

/// The part of `text` behind each label in bold (`**Verify:** …`), by the label's words in small letters.
fn labels(text: &str) -> Vec<(String, Range<usize>)> {
    let mut found: Vec<(String, Range<usize>)> = Vec::new();
    for line in unfenced_lines(text) {
        let end = line.range().end;
        if let Some((name, behind)) = label(line.text) {
            close(&mut found, line.start);
            found.push((name, line.start + behind..end));
        } else if line.text.starts_with('#') || line.text.trim() == "---" {
            close(&mut found, line.start);
            found.push((String::new(), end..end));
        }
    }
    close(&mut found, text.len());
    found.retain(|(name, _)| !name.is_empty());
    found
}

fn close(found: &mut [(String, Range<usize>)], at: usize) {
    if let Some((_, range)) = found.last_mut() {
        range.end = at.max(range.start);
    }
}

/// `**Files:** a.rs`, `- **Verify**: …`: the words, and where what follows begins.
fn label(line: &str) -> Option<(String, usize)> {
    let trimmed = line.trim_start().trim_start_matches("- ").trim_start();
    let inside = trimmed.strip_prefix("**")?;
    let length = inside.find("**")?;
    let words = &inside[..length];
    let rest = &inside[length + 2..];
    let colon = words.ends_with(':') || rest.trim_start().starts_with(':');
    let behind = rest.trim_start().strip_prefix(':').unwrap_or(rest);
    let name = words.trim_end_matches(':').trim().to_lowercase();
    (colon && words.len() <= 60).then(|| (name, line.len() - behind.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_text_ends_at_next_label() {
        let text = "intro\n**Files:** `a.rs`\n\n- **Verify**: `make`\n```\n**No:** x\n```\n**bold** text\n\n## More\ny";
        let found: Vec<(String, &str)> =
            labels(text).into_iter().map(|(name, range)| (name, text[range].trim())).collect();
        let verify = "`make`\n```\n**No:** x\n```\n**bold** text";
        assert_eq!(found, [("files".to_owned(), "`a.rs`"), ("verify".to_owned(), verify)]);
    }
}
