//! The report in each of its formats.

use std::io;

use lanewright_model::{ReportFormat, safe_text};
use serde::Serialize;

use super::{ExecutionReport, code_quality, html, json, junit, markdown, text};
use crate::status::styles::Styles;

/// The longest Markdown, in bytes: a CI job summary holds 1 MiB, and others may write into it as well.
pub const MARKDOWN_LIMIT: usize = 1_000_000;

impl ExecutionReport<'_> {
    /// The report in `format`. Text is at most `width` cells wide where it can be broken.
    ///
    /// # Errors
    /// Those of the writers of JSON, HTML and XML.
    pub fn render(&self, format: ReportFormat, width: usize, styles: Styles) -> io::Result<String> {
        Ok(match format {
            ReportFormat::Text => text::text(self, width, styles),
            ReportFormat::Json => pretty(&json::report(self))?,
            ReportFormat::Markdown => markdown(self, MARKDOWN_LIMIT),
            ReportFormat::Html => html::html(self)?,
            ReportFormat::Junit => junit::junit(self)?,
            ReportFormat::CodeQuality => pretty(&code_quality::issues(self))?,
        })
    }
}

fn pretty(value: &impl Serialize) -> io::Result<String> {
    Ok(safe_text::json(&serde_json::to_string_pretty(value)?).into_owned() + "\n")
}
