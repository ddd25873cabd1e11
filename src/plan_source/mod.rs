//! Plan files of every format into one [`crate::model::Plan`], with every fault at once.
//!
//! The way of a plan: its text becomes a draft, the draft a plan (`lower`, the same for all). A native plan becomes a
//! tree with places on the way (`toml_tree`, `yaml`, `json`, then `native`); `gsd` reads the plans of a GSD phase and
//! `lanes` phase plans in Markdown. Nothing here opens a file or runs a program.

mod automaton;
mod command;
mod diagnostic;
mod draft;
pub mod explain;
mod faults;
mod fields;
mod format;
pub mod graph;
mod gsd;
mod inline;
mod json;
mod keys;
mod lanes;
mod lower;
mod native;
pub mod native_toml;
mod overlap;
pub mod roadmap;
mod scalar;
pub mod schema;
mod source_text;
mod toml_tree;
pub mod tracking;
mod tree;
mod yaml;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

use sha2::{Digest, Sha256};

pub use diagnostic::{Diagnostic, Excerpt, Severity};
pub use gsd::is_plan_name as is_gsd_plan_name;
pub use gsd::plan_is_done as gsd_plan_is_done;
pub use gsd::{PlanBeside as GsdPlanBeside, plans_beside as gsd_plans_beside};
pub use source_text::{MAX_TEXT, decode};

pub use crate::model::PlanFormat;
use crate::model::{CommandLine, Plan};
use draft::PlanDraft;
use faults::Faults;
use lower::Context;
use source_text::{SourceText, Span};

/// A plan whose files are read already.
#[derive(Debug, Clone, Copy, Default)]
pub struct Source<'a> {
    /// Its files: one, or all plans of a GSD phase in the order of their names.
    pub files: &'a [SourceFile<'a>],
    /// The names of all files in the directory of the first one; a GSD plan with a SUMMARY beside it is done.
    pub beside: &'a [String],
    /// How it is written; `None`: told from the text.
    pub format: Option<PlanFormat>,
    /// What the settings say where the plan says nothing.
    pub fallbacks: Fallbacks<'a>,
    /// How strictly it is read.
    pub options: ReadOptions<'a>,
}

/// A file of a plan.
#[derive(Debug, Clone, Copy)]
pub struct SourceFile<'a> {
    /// What diagnostics call the file.
    pub path: &'a str,
    /// Its text; see [`decode`].
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
}

/// What holds for agents and lanes of which the plan says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fallbacks<'a> {
    /// The runner of agents that have neither a command nor a runner.
    pub runner: Option<&'a str>,
    /// Whether that runner also takes the place of those that the plan names.
    pub runner_outranks_plan: bool,
    /// How often lanes are tried again.
    pub retries: Option<u32>,
}

/// What became of a plan file.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The plan; `None` when a diagnostic is an error.
    pub plan: Option<Plan>,
    /// How it is written; `None` where that could not be told.
    pub format: Option<PlanFormat>,
    /// Every fault, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// SHA-256 in hexadecimal over the text and every prompt file that was read, each with its length before it.
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
    source.files.iter().for_each(|file| add_to_digest(&digest, file.text));
    let loaded: RefCell<HashMap<String, Result<String, String>>> = RefCell::default();
    let load_once = |path: &str| {
        let load_first = || load(path).inspect(|text| add_to_digest(&digest, text));
        loaded.borrow_mut().entry(path.to_owned()).or_insert_with(load_first).clone()
    };
    let files: Vec<(&str, usize)> = source.files.iter().map(|file| (file.path, file.text.len())).collect();
    let text: Cow<'_, str> = match source.files {
        [file] => file.text.into(),
        files => source_text::joined(files.iter().map(|file| file.text)).into(),
    };
    let faults = Faults::new(SourceText::of_files(&files, &text)).allowing_unknown(source.options.allow_unknown);
    let format = source.format.or_else(|| format::detect(source.files));
    let draft = draft(source, format, &faults, runners);
    let runner_may_be_unset = matches!(format, Some(PlanFormat::Gsd | PlanFormat::Lanes));
    let fallbacks = source.fallbacks;
    let context = Context { faults: &faults, load: &load_once, runners, fallbacks, runner_may_be_unset };
    let plan = draft.and_then(|draft| lower::lower(&draft, &context));
    let plan = plan.filter(|_| !faults.any_error());
    let sha256 = format!("{:x}", digest.take().finalize());
    Reading { plan, format, diagnostics: faults.into_diagnostics(), sha256 }
}

fn add_to_digest(digest: &RefCell<Sha256>, text: &str) {
    let mut digest = digest.borrow_mut();
    digest.update((text.len() as u64).to_le_bytes());
    digest.update(text);
}

/// The draft that the format's reader makes of the text.
fn draft<'a>(
    source: &Source<'_>,
    format: Option<PlanFormat>,
    faults: &'a Faults<'a>,
    runners: &lower::Runners<'_>,
) -> Option<PlanDraft> {
    let text = faults.source.text;
    if text.len() > MAX_TEXT {
        faults.error(Span::default(), format!("a plan has at most {MAX_TEXT} bytes, this one has {}", text.len()));
        return None;
    }
    let Some(format) = format else {
        no_format(text, faults);
        return None;
    };
    let tree = match format {
        PlanFormat::Toml => toml_tree::parse(text, faults),
        PlanFormat::Yaml => yaml::parse(text, faults),
        PlanFormat::Json => json::parse(text, faults),
        PlanFormat::Gsd => return gsd::plan(source, faults),
        PlanFormat::Lanes => return lanes::plan(source, faults, runners),
    }?;
    tree::refuse_nul(&tree, faults);
    native::plan(tree, faults)
}

fn no_format(text: &str, faults: &Faults<'_>) {
    if text.trim().is_empty() {
        faults.error_with(Span::default(), "this plan is empty", "a plan has a `phase` and at least one lane");
    } else if let Some(why) = lanes::why_not(text) {
        faults.error_with(Span::default(), why.message, why.help);
    } else {
        let names: Vec<&str> = PlanFormat::ALL.iter().map(|format| format.word()).collect();
        let help = format!("name it with --plan-format: {}", names.join(", "));
        faults.error_with(
            Span::default(),
            "this file is in no plan format that can be told from its first lines",
            help,
        );
    }
}
