//! What agents are told.

use super::context::Context;
use crate::plan::draft::PromptDraft;
use crate::plan::faults::quoted;
use crate::plan::source_text::At;

/// What a prompt says, wherever it stands; `None` where there is none, or it is at fault.
pub(super) fn prompt(draft: &PromptDraft, context: &Context<'_>) -> Option<String> {
    match (&draft.text, &draft.file) {
        (Some(_), Some(file)) => {
            context.faults.error_with(file.span, "`prompt` and `prompt_file` exclude each other", "keep one of them");
            None
        }
        (Some(text), None) => Some(text.value.clone()),
        (None, Some(file)) => load(file, context),
        (None, None) => None,
    }
}

fn load(file: &At<String>, context: &Context<'_>) -> Option<String> {
    let fault = match (context.load)(&file.value) {
        Ok(text) if text.contains('\0') => "it holds a NUL character".to_owned(),
        Ok(text) => return Some(text),
        Err(error) => error,
    };
    let message = format!("the prompt file {} cannot be read: {fault}", quoted(&file.value));
    context.faults.error_with(file.span, message, "name a text file that is there");
    None
}
