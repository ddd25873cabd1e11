//! Reads a plan of any format.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

use lanewright_model::{CommandLine, Plan, PlanFormat};
use sha2::{Digest, Sha256};

use super::diagnostic::Diagnostic;
use super::draft::PlanDraft;
use super::faults::Faults;
use super::formats;
use super::source::Source;
use super::source_text::{MAX_TEXT, SourceText, Span, joined};
use super::validate::{Context, Runners, validate};

/// What became of a plan file.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The plan; `None` when a diagnostic is an error.
    pub plan: Option<Plan>,
    /// Its format; `None` if it was not detected.
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
        files => joined(files.iter().map(|file| file.text)).into(),
    };
    let faults = Faults::new(SourceText::of_files(&files, &text)).allowing_unknown(source.options.allow_unknown);
    let format = source.format.or_else(|| formats::detect(source.files));
    let draft = draft(source, format, &faults, runners);
    let runner_may_be_unset = matches!(format, Some(PlanFormat::Gsd | PlanFormat::Lanes));
    let fallbacks = source.fallbacks;
    let context = Context { faults: &faults, load: &load_once, runners, fallbacks, runner_may_be_unset };
    let plan = draft.and_then(|draft| validate(draft, &context));
    let plan = plan.filter(|_| !faults.any_error());
    let sha256 = format!("{:x}", digest.take().finalize());
    Reading { plan, format, diagnostics: faults.into_diagnostics(), sha256 }
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
    } else if let Some(why) = formats::lanes::why_not(text) {
        faults.error_with(Span::default(), why.message, why.help);
    } else {
        let names: Vec<&str> = PlanFormat::ALL.iter().map(|format| format.word()).collect();
        let help = format!("name it with --plan-format: {}", names.join(", "));
        faults.error_with(
            Span::default(),
            "the plan format of this file cannot be detected from its first lines",
            help,
        );
    }
}
