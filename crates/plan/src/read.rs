//! Reads a plan of any format.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

use lanewright_model::plan::SharedFiles;
use lanewright_model::{CommandLine, ExecutorKind, ListOptions, Plan, PlanFormat};
use sha2::{Digest, Sha256};

use super::diagnostic::Diagnostic;
use super::draft::PlanDraft;
use super::faults::Faults;
use super::formats;
use super::origins::{Origin, origins};
use super::packages::Package;
use super::sharing::Sharing;
use super::source_text::{MAX_TEXT, SourceText, Span, joined};
use super::ticks::unticked;
use super::validate::{Context, Runners, validate};

/// A plan whose files are read already.
#[derive(Debug, Clone, Copy, Default)]
pub struct Source<'a> {
    /// Its files: one, or all plans of a GSD phase in the order of their names.
    pub files: &'a [SourceFile<'a>],
    /// The names of all files in the directory of the first one; a GSD plan with a SUMMARY beside it is done.
    pub beside: &'a [String],
    /// Files that the format keeps beside its plan and that prompts quote or name, such as a specification or a design;
    /// their paths are relative to the repository's root.
    pub companions: &'a [SourceFile<'a>],
    /// The packages of the repository, in which the scripts are that its texts have one run.
    pub packages: &'a [Package],
    /// Its format; `None`: detected from the text.
    pub format: Option<PlanFormat>,
    /// What the settings say where the plan says nothing.
    pub fallbacks: Fallbacks<'a>,
    pub options: ReadOptions<'a>,
}

#[derive(Debug, Clone, Copy)]
pub struct SourceFile<'a> {
    /// What diagnostics call the file.
    pub path: &'a str,
    /// Its text; see `decode`.
    pub text: &'a str,
}

/// What a person asks for when a plan is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// Take lanes that are done already as well (`--redo`).
    pub redo: bool,
    /// Lanes that are not done although there is a SUMMARY, for their run stopped half-way.
    pub unfinished: &'a [String],
    /// What a plan should say and does not is an error (`--strict`).
    pub strict: bool,
    /// An open interface gate that no lane provides is an error (`--strict-gates`).
    pub strict_gates: bool,
    /// Take a plan that says it is retired (`--force`).
    pub force: bool,
    /// Keys of a native plan that are not known are ignored with a warning (`--allow-unknown`).
    pub allow_unknown: bool,
    /// The part of a list that is meant (`--tag`): a tag of Task Master; an epic or a label of Beads; a label, a milestone
    /// or a parent task of Backlog.md.
    pub tag: Option<&'a str>,
}

/// What holds for agents and lanes of which the plan says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fallbacks<'a> {
    /// The runner of agents that have neither a command nor a runner.
    pub runner: Option<&'a str>,
    /// Whether that runner also takes the place of those that the plan names.
    pub runner_outranks_plan: bool,
    /// The executor of lanes that name none.
    pub executor: Option<&'a str>,
    /// The executors that there are.
    pub executors: &'a [(&'a str, ExecutorKind)],
    /// How often lanes are tried again.
    pub retries: Option<u32>,
    /// The globs of files that are copied into the worktrees of lanes on this machine.
    pub copy: &'a [String],
    /// The shell lines that set up worktrees.
    pub setup: &'a [String],
    /// The shell lines that judge lanes before they are merged.
    pub tests: &'a [String],
    /// What becomes of lanes that share files.
    pub shared_files: Option<SharedFiles>,
    /// How a task list becomes lanes; its `shared_files` also takes the place of what the plan says.
    pub lists: ListOptions,
}

/// What became of a plan file.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The plan; `None` when a diagnostic is an error.
    pub plan: Option<Plan>,
    /// The lanes that share files without an order between them, and what becomes of that.
    pub sharing: Sharing,
    /// Where the text says each lane, order and gate of the plan.
    pub origins: Vec<Origin>,
    /// Its format; `None` if it was not detected.
    pub format: Option<PlanFormat>,
    /// Every fault, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// SHA-256 in hexadecimal over the text without the marks of what is done, the companions and every prompt file that
    /// was read, each with its length before it.
    pub sha256: String,
}

/// Reads a plan (SPEC §3).
///
/// `load` gives the text of a `prompt_file`, named as the plan names it, or why there is none; it is asked once for
/// each name. `runners` gives the command of a runner, or `None` for one that is not described.
pub fn read(
    source: &Source<'_>,
    load: &dyn Fn(&str) -> Result<String, String>,
    runners: &dyn Fn(&str) -> Option<CommandLine>,
) -> Reading {
    let digest = RefCell::new(Sha256::new());
    let format = source.format.or_else(|| formats::detect(source.files));
    // Beside these are settings, and tasks that are done, which change while a run works: what counts is in the plan.
    let is_tracker = matches!(format, Some(PlanFormat::TaskMaster | PlanFormat::Backlog | PlanFormat::Beads));
    for file in source.files.iter().chain(source.companions.iter().filter(|_| !is_tracker)) {
        // A run ticks what it merged, and its plan is still the same.
        add_to_digest(&digest, &format.map_or(file.text.into(), |format| unticked(format, file.text)));
    }
    let loaded: RefCell<HashMap<String, Result<String, String>>> = RefCell::default();
    let load_once = |path: &str| {
        let load_first = || load(path).inspect(|text| add_to_digest(&digest, text));
        loaded.borrow_mut().entry(path.to_owned()).or_insert_with(load_first).clone()
    };
    let files: Vec<(&str, usize)> = source.files.iter().map(|file| (file.path, file.text.len())).collect();
    let text: Cow<'_, str> = match source.files {
        [file] => file.text.into(),
        files => joined(files.iter().map(|file| file.text)).into(),
    };
    let faults = Faults::new(SourceText::of_files(&files, &text)).allowing_unknown(source.options.allow_unknown);
    let draft = draft(source, format, &faults, runners);
    let runner_may_be_unset = format.is_some_and(|format| !format.is_native());
    let fallbacks = source.fallbacks;
    let is_list = format.is_some_and(PlanFormat::has_lists);
    let context = Context { faults: &faults, load: &load_once, runners, fallbacks, runner_may_be_unset, is_list };
    let origins = draft.as_ref().map(|draft| origins(draft, &faults)).unwrap_or_default();
    let valid = draft.and_then(|draft| validate(draft, &context)).filter(|_| !faults.any_error());
    let (plan, sharing) = valid.map_or_else(Default::default, |(plan, sharing)| (Some(plan), sharing));
    let sha256 = format!("{:x}", digest.take().finalize());
    Reading { plan, sharing, origins, format, diagnostics: faults.into_diagnostics(), sha256 }
}

fn add_to_digest(digest: &RefCell<Sha256>, text: &str) {
    let mut digest = digest.borrow_mut();
    digest.update((text.len() as u64).to_le_bytes());
    digest.update(text);
}

fn draft<'a>(
    source: &Source<'_>,
    format: Option<PlanFormat>,
    faults: &'a Faults<'a>,
    runners: &Runners<'_>,
) -> Option<PlanDraft> {
    let text = faults.source.text;
    if text.len() > MAX_TEXT {
        faults.error(Span::default(), format!("a plan has at most {MAX_TEXT} bytes, this one has {}", text.len()));
        return None;
    }
    if format.is_none() {
        no_format(text, faults);
    }
    formats::read(format?, source, faults, runners)
}

fn no_format(text: &str, faults: &Faults<'_>) {
    if text.trim().is_empty() {
        faults.error_with(Span::default(), "this plan is empty", "a plan has a `phase` and at least one lane");
    } else if let Some(why) = formats::lanes::not_a_plan(text) {
        faults.error_with(Span::default(), why.message, why.help);
    } else {
        let names: Vec<&str> = PlanFormat::ALL.iter().map(|format| format.word()).collect();
        let help = format!("name it with --plan-format: {}", names.join(", "));
        let message = "the plan format of this file cannot be detected from its first lines";
        faults.error_with(Span::default(), message, help);
    }
}
