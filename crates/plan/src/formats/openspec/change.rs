//! One change as a lane.

use std::cell::Cell;
use std::sync::LazyLock;

use lanewright_model::plan::OwnershipRule;
use lanewright_model::text::headline;
use lanewright_model::{Approval, CommandLine, TaskKind};
use regex::Regex;

use super::proposal::{affected_code, title};
use super::sections::{List, Section, without_number};
use super::{id_of, is_plan};
use crate::draft::{LaneDraft, PromptDraft, TaskDraft};
use crate::faults::{Faults, quoted};
use crate::formats::shared::commands_in_text::{commands_in_text, only_checks, tests_of};
use crate::formats::shared::companions::{add_paths, companions, warn_of_placeholders};
use crate::formats::shared::documents::Documents;
use crate::formats::shared::paths_in_text::{NamedPath, complete, globs, paths_in_text};
use crate::markdown::inline::{bare, dedent};
use crate::markdown::{paragraph, section};
use crate::source_text::{At, File, Span};
use crate::{Source, SourceFile};

const MAX_NAME: usize = 80;

/// How many sections that are done a prompt names.
const MAX_DONE: usize = 50;

pub(super) struct Change<'a> {
    file: File<'a>,
    /// The name of its directory.
    pub(super) id: String,
    list: List<'a>,
    pub(super) proposal: Option<&'a str>,
    /// Companions of its own directory, and those of all changes.
    own: Vec<&'a SourceFile<'a>>,
    general: Vec<&'a SourceFile<'a>>,
    skip_manual: bool,
}

static AFTER_APPROVAL: LazyLock<Regex> =
    pattern!(r"(?i)follow-?up|after (?:the )?(?:proposal|approval)|once (?:the )?proposal|(?:批准|审批|通过)后|承認後");

impl<'a> Change<'a> {
    pub(super) fn new(file: File<'a>, source: &Source<'a>) -> Self {
        let own = |path: &str| directory_of(path).is_some_and(|directory| is_below(file.path, directory));
        let general = |path: &str| directory_of(path).is_none();
        let own: Vec<_> = companions(source, own).collect();
        let proposal = own.iter().find(|file| file.path.ends_with("/proposal.md")).map(|file| file.text);
        let general = companions(source, general).collect();
        let skip_manual = source.fallbacks.lists.skip_manual;
        Self { file, id: id_of(file.path), list: List::new(file.text), proposal, own, general, skip_manual }
    }

    pub(super) fn start(&self) -> Span {
        self.file.span(0..0)
    }

    pub(super) fn is_archived(&self) -> bool {
        is_plan(self.file.path, "") && self.file.path.rsplit(['/', '\\']).nth(2) == Some("archive")
    }

    pub(super) fn title(&self) -> Option<At<String>> {
        let title = self.proposal.and_then(title)?;
        Some(At::new(headline(&title, MAX_NAME), self.start()))
    }

    pub(super) fn is_without_boxes(&self) -> bool {
        self.list.sections.is_empty()
    }

    /// Why the change is not run; `None`: it is.
    pub(super) fn reason_to_skip(&self, source: &Source<'_>) -> Option<&'static str> {
        if self.is_without_boxes() {
            return Some("has no task: its list has no check box");
        }
        let is_asked = source.options.redo || source.options.unfinished.contains(&self.id);
        if is_asked && !self.list.sections.iter().all(|section| self.is_left_out(section)) {
            return None;
        }
        if self.is_archived() {
            return Some("is archived");
        }
        let mut open = self.list.sections.iter().filter(|section| !self.list.is_done(section)).peekable();
        let is_done = open.peek().is_none();
        match open.all(|section| self.is_left_out(section)) {
            true if is_done => Some("is done: all its boxes are ticked"),
            true => Some("has only open tasks that a person does, which are left out"),
            false => None,
        }
    }

    /// The ids of the open sections that are left out because a person does them.
    pub(super) fn left_out(&self) -> impl Iterator<Item = &str> {
        self.list.sections.iter().filter(|section| self.is_left_out(section)).map(|section| section.id.as_str())
    }

    fn is_left_out(&self, section: &Section) -> bool {
        self.skip_manual && section.is_manual && !self.list.is_done(section)
    }

    pub(super) fn count(&self) -> usize {
        self.list.sections.len()
    }

    /// The capabilities that its deltas are of.
    pub(super) fn capabilities(&self) -> impl Iterator<Item = String> + '_ {
        self.own.iter().filter_map(|file| Some(file.path.strip_suffix("/spec.md")?.rsplit('/').next()?.to_lowercase()))
    }

    /// What the list has in code and what the proposal names, for comparison with other changes.
    pub(super) fn texts(&self) -> [&'a str; 2] {
        [self.file.text, self.proposal.unwrap_or_default()]
    }

    pub(super) fn lane(&self, source: &Source<'_>, budget: &Cell<usize>, faults: &Faults<'_>) -> LaneDraft {
        let list = &self.list;
        // All of it, where it is run although all of it is done.
        let all = list.sections.iter().all(|section| list.is_done(section) || self.is_left_out(section));
        let (open, done): (Vec<&Section>, Vec<&Section>) = list
            .sections
            .iter()
            .filter(|section| !self.is_left_out(section))
            .partition(|section| all || source.options.redo || !list.is_done(section));
        self.warn(source, faults);
        let documents = Documents { listed: self.documents(), budget };
        let tasks: Vec<TaskDraft> = open.iter().map(|section| self.task(section, &done, &documents, faults)).collect();
        LaneDraft {
            span: self.start(),
            id: Some(At::new(self.id.clone(), self.start())),
            name: self.title(),
            ownership: Some(At::new(OwnershipRule::Advisory, self.start())),
            owns: Some(self.owns(&open)),
            approval: self.approval(&open, faults),
            tests: tests_of(&tasks),
            tasks: Some(tasks),
            ..LaneDraft::default()
        }
    }

    fn warn(&self, source: &Source<'_>, faults: &Faults<'_>) {
        if self.proposal.is_none() {
            let message = format!("the change {} has no proposal.md", quoted(&self.id));
            faults.warning(
                self.start(),
                message,
                "write one: agents read there why the change is made and what it affects",
            );
        }
        self.own.iter().for_each(|file| warn_of_placeholders(file, self.start(), source.options.strict, faults));
    }

    fn documents(&self) -> Vec<(String, &'a SourceFile<'a>)> {
        let titled = |file: &&'a SourceFile<'a>| {
            let title = match file.path.rsplit('/').next() {
                Some("proposal.md") => "Proposal".to_owned(),
                Some("design.md") => "Design".to_owned(),
                _ => format!("Changed specification of {}", file.path.rsplit('/').nth(1).unwrap_or_default()),
            };
            (title, *file)
        };
        self.own.iter().map(titled).collect()
    }

    fn owns(&self, open: &[&Section]) -> Vec<At<String>> {
        let affected = self.proposal.map(affected_code).unwrap_or_default();
        let of_task = |section: &&Section| {
            let boxes = section.boxes.iter().map(|at| &self.list.boxes[*at]);
            // Nested boxes are part of the text of the outer one.
            let outer = boxes.filter(|found| found.parent.is_none_or(|parent| !section.boxes.contains(&parent)));
            let shifted = |found: &crate::formats::shared::boxes::CheckBox| {
                let start = found.body.start;
                let paths = paths_in_text(&self.file.text[found.body.clone()]).into_iter();
                let move_it = move |named: NamedPath| NamedPath {
                    range: named.range.start + start..named.range.end + start,
                    ..named
                };
                paths.map(move_it).collect::<Vec<_>>()
            };
            outer.flat_map(shifted).collect::<Vec<_>>()
        };
        let mut named: Vec<NamedPath> = open.iter().flat_map(of_task).collect();
        // Places in the proposal are not places in the list.
        let affected = affected.into_iter().map(|named| NamedPath { range: 0..0, ..named });
        named.extend(affected);
        named.retain(|named| !named.path.starts_with("openspec/"));
        complete(named.iter_mut());
        globs(named.iter(), |range| self.file.span(range))
    }

    /// A person is asked where the list says that a part of it waits for approval, which no file records.
    fn approval(&self, open: &[&Section], faults: &Faults<'_>) -> Option<Vec<At<Approval>>> {
        let section = open.iter().find(|section| AFTER_APPROVAL.is_match(self.list.title(section)))?;
        let span = self.file.span(self.list.place(section));
        let message = format!(
            "{} waits for approval, so a person is asked before the lane starts",
            quoted(self.list.title(section))
        );
        faults.warning(span, message, "change the heading once the proposal is approved");
        Some(vec![At::new(Approval::Plan, span)])
    }

    fn task(
        &self,
        section: &Section,
        done: &[&Section],
        documents: &Documents<'_, '_>,
        faults: &Faults<'_>,
    ) -> TaskDraft {
        let list = &self.list;
        let span = self.file.span(list.place(section));
        let text = list.text(section);
        let all = list.is_done(section);
        let titles: Vec<&str> = section
            .boxes
            .iter()
            .map(|at| &list.boxes[*at])
            .filter(|found| all || !found.state.is_done())
            .map(|found| without_number(&self.file.text[found.title.clone()]))
            .collect();
        let kind = if section.is_manual { TaskKind::HumanVerify } else { TaskKind::Auto };
        let open: String = titles.iter().map(|title| format!("- {title}\n")).collect();
        let run = commands_in_text(&open);
        if !section.is_manual {
            run.commands.warn(span, faults);
        }
        TaskDraft {
            span,
            id: Some(At::new(section.id.clone(), span)),
            name: Some(At::new(headline(bare(list.title(section)), MAX_NAME), span)),
            kind: Some(At::new(kind, span)),
            allow_empty: !titles.is_empty() && titles.iter().all(|title| only_checks(title)),
            verify: run
                .commands
                .gates
                .into_iter()
                .filter(|gate| !section.is_manual && judges(gate))
                .map(CommandLine::Shell)
                .collect(),
            prompt: PromptDraft::here(self.prompt(section, &text, done, documents), span),
            ..TaskDraft::default()
        }
    }

    fn prompt(&self, own: &Section, text: &str, done: &[&Section], documents: &Documents<'_, '_>) -> String {
        let mut prompt = String::new();
        let title = self.title().map(|title| format!(": {}", title.value)).unwrap_or_default();
        paragraph(&mut prompt, &format!("Change `{}` of OpenSpec{title}", self.id));
        section(&mut prompt, &format!("Your task: {}", bare(self.list.title(own))), &dedent(text));
        if own.is_manual {
            return prompt;
        }
        let title = |section: &&Section| format!("- {}", headline(self.list.title(section), MAX_NAME));
        let titles: Vec<String> = done.iter().take(MAX_DONE).map(title).collect();
        section(&mut prompt, "Done already", &titles.join("\n"));
        documents.add(&mut prompt);
        add_paths(&mut prompt, "More about this project", self.general.iter().copied());
        paragraph(
            &mut prompt,
            "Boxes that are ticked are done. Do not edit `tasks.md`: Lanewright ticks it when your work is merged. Do not archive the change.",
        );
        prompt
    }
}

/// `openspec archive` is for the time after the merge.
fn judges(gate: &str) -> bool {
    !gate.contains("openspec ") || gate.contains("openspec validate")
}

/// The directory of the change that a companion belongs to: `add-login` of `openspec/changes/add-login/design.md`.
fn directory_of(path: &str) -> Option<&str> {
    let at = path.find("openspec/changes/")? + "openspec/changes/".len();
    let inner = path[at..].strip_prefix("archive/").unwrap_or(&path[at..]);
    let end = inner.find('/')?;
    Some(&path[..path.len() - inner.len() + end])
}

/// Whether the list at `path`, which may be absolute, is in `directory`.
fn is_below(path: &str, directory: &str) -> bool {
    path.strip_suffix("/tasks.md")
        .and_then(|own| own.strip_suffix(directory))
        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
}
