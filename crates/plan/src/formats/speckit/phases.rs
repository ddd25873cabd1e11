//! The phases of a task list and their tasks.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::references::stories;
use crate::formats::shared::boxes::{CheckBox, boxes};
use crate::ids::as_id;
use crate::markdown::inline::one_line;
use crate::markdown::{Document, clean, trim};

/// The longest number of a phase that is read; a title may be anything.
static PHASE: LazyLock<Regex> = pattern!(concat!(
    r"(?i)^[^\p{L}\p{N}]*(?:(?:phase|fase|étape|etapa|этап|фаза|フェーズ|阶段|階段|단계)\s*[-#]?\s*",
    r"(\d{1,4}(?:\.\d{1,4})?|final\b|[a-z]\b)|第\s*([0-9一二三四五六七八九十]{1,4})\s*(?:阶段|階段|フェーズ))\s*[:：.、–—-]*\s*(.*)$"
));

static NUMBER: LazyLock<Regex> = pattern!(r"^[*`]*(T-?\d{2,5}(?:[a-zA-Z]\b|\.\d{1,3})?)[*`]*[:.)]?(?:\s+|$)");

static LABEL: LazyLock<Regex> = pattern!(r"^\[([^\[\]]{1,20})\]\s*");

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Setup,
    Foundation,
    Stories(BTreeSet<u32>),
    Polish,
    Named,
}

#[derive(Debug, Clone)]
pub(super) struct Task<'a> {
    pub(super) check_box: CheckBox,
    /// `T012`; `None` for a box without one.
    pub(super) number: Option<&'a str>,
    /// Whether it says that it can run beside others: `[P]`.
    pub(super) is_parallel: bool,
    /// The one that its label names: `[US1]`.
    pub(super) story: Option<u32>,
    /// Its text without number and labels, with the lines below it.
    pub(super) text: Range<usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Phase<'a> {
    /// The bytes of its title.
    pub(super) at: Range<usize>,
    /// `3`, `3.1`, `N`; `None` for a section with tasks that is not called a phase.
    pub(super) number: Option<String>,
    pub(super) kind: Kind,
    /// The id of its lane.
    pub(super) id: String,
    /// Its title without what is only for readers.
    pub(super) name: String,
    /// Its lines, without the heading.
    pub(super) lines: Range<usize>,
    pub(super) tasks: Vec<Task<'a>>,
    /// Whether it is only some tasks of what is below the heading.
    pub(super) is_part: bool,
}

impl<'a> Phase<'a> {
    /// Some of its tasks as a phase, which is called after the first one.
    pub(super) fn part(&self, document: &Document<'a>, tasks: Range<usize>) -> Self {
        let tasks = self.tasks[tasks].to_vec();
        let Some(first) = tasks.first() else { return self.clone() };
        let number = first.number.map_or_else(|| format!("L{}", first.check_box.line + 1), str::to_owned);
        let name = match tasks.as_slice() {
            [only] => one_line(&clean(&document.text[only.text.clone()])),
            _ => format!("{}, from {number}", self.name),
        };
        let (id, at) = (format!("{}.{number}", self.id), first.check_box.title.clone());
        Self { id, at, name, tasks, is_part: true, ..self.clone() }
    }
}

/// The phases of `document` in the order of the text, also those without tasks, and the boxes that are in none.
pub(super) fn phases<'a>(document: &Document<'a>) -> (Vec<Phase<'a>>, Vec<CheckBox>) {
    let level = document.headings.iter().filter(|heading| PHASE.is_match(heading.title)).map(|heading| heading.level);
    let level = level.min().unwrap_or(2);
    let mut found: Vec<Phase<'a>> = Vec::new();
    let mut sections: Vec<usize> = Vec::new();
    for (at, heading) in document.headings.iter().enumerate().filter(|(_, heading)| heading.level == level) {
        sections.push(at);
        let captures = PHASE.captures(heading.title);
        let number = captures.as_ref().and_then(|found| found.get(1).or(found.get(2)));
        let title = captures.as_ref().and_then(|found| found.get(3)).map_or(heading.title, |title| title.as_str());
        found.push(Phase {
            at: heading.at.clone(),
            number: number.map(|number| number.as_str().to_ascii_uppercase()),
            kind: Kind::Named,
            id: String::new(),
            name: name(title),
            lines: document.below(at),
            tasks: Vec::new(),
            is_part: false,
        });
    }
    let outside = sort_boxes(document, &sections, &mut found);
    // A heading such as `Phase 3 completion` reports about the phase that has the tasks.
    let with_tasks: HashSet<String> =
        found.iter().filter(|phase| !phase.tasks.is_empty()).filter_map(|phase| phase.number.clone()).collect();
    let is_report = |number: &String| with_tasks.contains(number);
    found.retain(|phase| !phase.tasks.is_empty() || phase.number.as_ref().is_some_and(|number| !is_report(number)));
    classify(&mut found);
    (found, outside)
}

/// Gives each task to its section. A box without a number is a task in a phase only.
fn sort_boxes<'a>(document: &Document<'a>, sections: &[usize], found: &mut [Phase<'a>]) -> Vec<CheckBox> {
    let all = boxes(document);
    let mut tasks: Vec<Option<(usize, Task<'a>)>> = Vec::with_capacity(all.len());
    let mut outside = Vec::new();
    for check_box in &all {
        let section = check_box.headings.iter().find_map(|heading| sections.binary_search(heading).ok());
        let task = task(document, check_box.clone());
        let is_task = task.number.is_some() || check_box.parent.is_none();
        match section.filter(|&at| task.number.is_some() || found[at].number.is_some()) {
            Some(section) if is_task => tasks.push(Some((section, task))),
            other => {
                if other.is_none() && check_box.parent.is_none() {
                    outside.push(check_box.clone());
                }
                tasks.push(None);
            }
        }
    }
    // A task below another one is its own, and no part of the text of that.
    for at in 0..tasks.len() {
        let nested = tasks[at].is_some().then(|| all[at].parent).flatten();
        let Some(above) = nested else { continue };
        let start = document.range(all[at].line).start;
        if let Some((_, task)) = &mut tasks[above] {
            task.text.end = task.text.end.min(trim(document.text, task.text.start..start.max(task.text.start)).end);
        }
    }
    for (section, task) in tasks.into_iter().flatten() {
        found[section].tasks.push(task);
    }
    outside
}

fn task<'a>(document: &Document<'a>, check_box: CheckBox) -> Task<'a> {
    let text: &'a str = document.text;
    let title = check_box.title.clone();
    let number = NUMBER.captures(&text[title.clone()]);
    let mut start = title.start + number.as_ref().map_or(0, |number| number[0].len());
    let number = number
        .and_then(|found| found.get(1))
        .map(|found| &text[title.start + found.start()..title.start + found.end()]);
    let (mut is_parallel, mut story) = (false, None);
    while let Some(label) = LABEL.captures(&text[start..title.end]) {
        match &label[1] {
            "P" | "p" => is_parallel = true,
            own => match stories(own).first() {
                Some(number) => story = Some(*number),
                None => break,
            },
        }
        start += label[0].len();
    }
    let end = check_box.body.end;
    Task { check_box, number, is_parallel, story, text: start..end }
}

static PRIORITY: LazyLock<Regex> = pattern!(
    r"(?i)\s*[(（]\s*(?:priority|優先度|优先级|prioridade|prioridad)?\s*[:：]?\s*P\d+\s*[)）]|\s*🎯\s*|\s*\bMVP\b\s*$"
);

/// A title without its priority and marks.
fn name(title: &str) -> String {
    let title = PRIORITY.replace_all(title, " ");
    let title = title.trim_matches(|c: char| c.is_whitespace() || "*🎯⚠\u{fe0f}:-–—".contains(c));
    one_line(&clean(title))
}

static SETUP: LazyLock<Regex> = pattern!(
    r"(?i)\bset-?up\b|セットアップ|準備|准备|初期|初始|설정|\b(?:configuração|configuración|preparação|preparación)\b"
);
static FOUNDATION: LazyLock<Regex> =
    pattern!(r"(?i)\bfoundation|\bblocking prerequisites\b|基盤|基础|基礎|기반|\bfunda(?:cional|mentos?|ção)\b");
static POLISH: LazyLock<Regex> = pattern!(
    r"(?i)\bpolish|\bcross-cutting\b|\bfinal\b|仕上げ|ポリッシュ|横断|打磨|完善|收尾|마무리|\bpolimento\b|\bpulido\b"
);
static LAST: LazyLock<Regex> = pattern!(r"(?i)\bvalidation\b|検証|验证|\bvalida(?:ção|ción)\b|\bdocumentation\b");

/// Says of each phase what it is, and gives it an id.
fn classify(phases: &mut [Phase<'_>]) {
    let count = phases.len();
    for (at, phase) in phases.iter_mut().enumerate() {
        let titled = stories(&phase.name);
        let own: BTreeSet<u32> = phase.tasks.iter().filter_map(|task| task.story).collect();
        let labelled = phase.tasks.iter().filter(|task| task.story.is_some()).count();
        phase.kind = if !titled.is_empty() {
            Kind::Stories(titled)
        } else if SETUP.is_match(&phase.name) {
            Kind::Setup
        } else if FOUNDATION.is_match(&phase.name) {
            Kind::Foundation
        } else if POLISH.is_match(&phase.name) || at + 1 == count && LAST.is_match(&phase.name) {
            Kind::Polish
        } else if own.len() == 1 && 2 * labelled > phase.tasks.len() {
            // A title in the words of the feature, or in another language.
            Kind::Stories(own)
        } else {
            Kind::Named
        };
    }
    let mut taken = HashSet::new();
    for (at, phase) in phases.iter_mut().enumerate() {
        let wished = match &phase.kind {
            Kind::Setup => "SETUP".to_owned(),
            Kind::Foundation => "FOUND".to_owned(),
            Kind::Polish => "POLISH".to_owned(),
            Kind::Stories(stories) if stories.len() == 1 => format!("US{}", stories.first().copied().unwrap_or(0)),
            _ => named_id(phase, at),
        };
        let numbered = (2..).map(|number| format!("{wished}-{number}"));
        let id = std::iter::once(wished.clone()).chain(numbered).find(|id| !taken.contains(&id.to_lowercase()));
        phase.id = id.unwrap_or_default();
        taken.insert(phase.id.to_lowercase());
    }
}

fn named_id(phase: &Phase<'_>, at: usize) -> String {
    let number = phase.number.as_ref().and_then(|number| as_id(&format!("P{number}")));
    number.or_else(|| as_id(&phase.name)).unwrap_or_else(|| format!("S{}", at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, Kind, String, usize)> {
        let (phases, _) = phases(&Document::new(text));
        phases.into_iter().map(|phase| (phase.id, phase.kind, phase.name, phase.tasks.len())).collect()
    }

    #[test]
    fn phases_get_ids_by_their_titles() {
        let titles = [
            ("Phase 1: Setup (Shared)", "SETUP", "Setup (Shared)"),
            ("Phase 2: Foundational", "FOUND", "Foundational"),
            ("Phase 3: User Story 1 - Sign in (Priority: P1) 🎯 MVP", "US1", "User Story 1 - Sign in"),
            ("Phase 4: User Story 1 — More", "US1-2", "User Story 1 — More"),
            ("Phase 5: User Story 1 & 2 - Both", "P5", "User Story 1 & 2 - Both"),
            ("Phase 6: Fallback", "P6", "Fallback"),
            ("フェーズ 7: ユーザーストーリー3 - 表示 (優先度: P2)", "US3", "ユーザーストーリー3 - 表示"),
            ("Fase 8: História 4", "US4", "História 4"),
            ("第九阶段：导出", "P-S9", "导出"),
            ("Phase N: Polish & Cross-Cutting Concerns", "POLISH", "Polish & Cross-Cutting Concerns"),
        ];
        let text: String = titles.iter().map(|(title, ..)| format!("## {title}\n\n- [ ] T001 a\n")).collect();
        let found = read(&text);
        for ((title, id, name), (own, _, own_name, _)) in titles.iter().zip(&found) {
            assert_eq!((own.as_str(), own_name.as_str()), (if *id == "P-S9" { own } else { *id }, *name), "{title}");
        }
    }

    #[test]
    fn labels_of_tasks_name_the_story() {
        let text = "## Phase 3: 音声\n- [ ] T011 [P] [US2] a\n- [x] T012 [US2] [P] b\n- [ ] T012b c\n";
        assert_eq!(read(text)[0].0, "US2");
        let (phases, _) = phases(&Document::new(text));
        let tasks: Vec<_> =
            phases[0].tasks.iter().map(|task| (task.number, task.is_parallel, &text[task.text.clone()])).collect();
        assert_eq!(tasks, [(Some("T011"), true, "a"), (Some("T012"), true, "b"), (Some("T012b"), false, "c")]);
    }

    #[test]
    fn nested_tasks_are_tasks_of_their_own() {
        let text = "## Phase 1: Setup\n- [ ] T001 a\n  more\n  - [ ] T002 b\n  - [ ] c\n- [ ] d\n## Notes\n- [ ] e\n## More\n- [ ] **T003** f\n";
        let (phases, outside) = phases(&Document::new(text));
        let texts: Vec<&str> = phases[0].tasks.iter().map(|task| &text[task.text.clone()]).collect();
        assert_eq!(texts, ["a\n  more", "b", "d"]);
        assert_eq!((phases[1].id.as_str(), phases[1].tasks.len(), outside.len()), ("More", 1, 1));
    }
}
