//! `retry`: lanes that failed or are blocked again, with fresh retries.

use std::path::Path;

use lanewright_files::regular_file::{self, Links};
use lanewright_plan::settings::absolute;

use crate::cli::args::Retry;
use crate::cli::run::{Adoption, resume_with};
use crate::cli::select::{Selector, no_lane};
use crate::cli::{Context, ExitStatus, RepositoryContext, Result};

pub(crate) fn run(context: &Context, arguments: &Retry) -> Result<ExitStatus> {
    let layer = arguments.control.layer();
    let within = RepositoryContext::open_for_work(context, layer.clone())?;
    let (run, lanes) = Selector::new(context, &within.state).lanes_of(&arguments.names.iter().collect::<Vec<_>>())?;
    if lanes.is_empty() {
        return Err(no_lane(&run, "retry"));
    }
    let prompt = arguments.prompt_file.as_deref().map(|file| prompt_in(context, file)).transpose()?;
    resume_with(&within, &run, &Adoption::retry(lanes, arguments, prompt), layer)
}

/// The longest prompt that is read from a file, in bytes.
const LONGEST_PROMPT: u64 = 1 << 20;

fn prompt_in(context: &Context, file: &Path) -> Result<String> {
    let path = absolute(&context.directory, file);
    let text = regular_file::read_text_with(&path, Links::Follow, LONGEST_PROMPT);
    let text = text.map_err(|error| {
        ExitStatus::Usage.error(format!("the prompt file {} cannot be read: {error}", path.display()))
    })?;
    let fault = match &text {
        text if text.trim().is_empty() => "is empty",
        text if text.contains('\0') => "holds a NUL character",
        _ => return Ok(text),
    };
    Err(ExitStatus::Usage.error(format!("the prompt file {} {fault}", path.display())))
}
