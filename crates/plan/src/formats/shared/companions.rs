//! The files that a format keeps beside its plan, in prompts: quoted where they are short, else named.

use std::sync::LazyLock;

use regex::Regex;

use crate::faults::{Faults, quoted};
use crate::markdown::{clean, paragraph, unfenced_lines};
use crate::source_text::Span;
use crate::{Source, SourceFile};

/// The longest companion that prompts quote, in bytes.
pub(crate) const INLINE: usize = 16 * 1024;

/// What a template has one fill in.
static PLACEHOLDER: LazyLock<Regex> = pattern!(
    r"\[?NEEDS CLARIFICATION[^\]]*\]?|\[e\.g\.,[^\]]*\]|\[(?:FEATURE(?: NAME)?|PROJECT_NAME|DATE|###-feature-name|Brief Title|PRINCIPLE_[0-9]_NAME)\]|\bACTION REQUIRED:"
);

/// The companion whose path ends with `name`.
pub(crate) fn companion<'s>(source: &Source<'s>, name: &str) -> Option<&'s SourceFile<'s>> {
    source.companions.iter().find(|file| ends_with(file.path, name))
}

/// The companions whose path `is_wanted`.
pub(crate) fn companions<'s>(
    source: &Source<'s>,
    is_wanted: impl Fn(&str) -> bool,
) -> impl Iterator<Item = &'s SourceFile<'s>> {
    source.companions.iter().filter(move |file| is_wanted(file.path))
}

fn ends_with(path: &str, name: &str) -> bool {
    path.strip_suffix(name).is_some_and(|directory| directory.is_empty() || directory.ends_with(['/', '\\']))
}

/// Adds `file` below a heading: its text, or, where that is too long, its path.
pub(crate) fn add(text: &mut String, title: &str, file: &SourceFile<'_>) {
    let body = clean(file.text);
    match body.trim() {
        "" => {}
        body if body.len() > INLINE => paragraph(text, &format!("## {title}\n\nRead `{}`.", file.path)),
        body => paragraph(text, &format!("## {title}\n\nFrom `{}`:\n\n{}", file.path, quote(body))),
    }
}

/// Adds the paths of files that an agent may read.
pub(crate) fn add_paths<'s>(text: &mut String, title: &str, files: impl Iterator<Item = &'s SourceFile<'s>>) {
    let lines: Vec<String> = files.map(|file| format!("- `{}`", file.path)).collect();
    if !lines.is_empty() {
        paragraph(text, &format!("## {title}\n\n{}", lines.join("\n")));
    }
}

/// `body` between marks that it does not hold, so that its headings are not those of the prompt.
pub(crate) fn quote(body: &str) -> String {
    let longest = body.lines().map(|line| line.trim_start().bytes().take_while(|byte| *byte == b'`').count()).max();
    let fence = "`".repeat(longest.unwrap_or(0).max(3) + 1);
    format!("{fence}markdown\n{body}\n{fence}")
}

/// Warns at `place` of what a template left in a companion; with `strict` that is an error.
pub(crate) fn warn_of_placeholders(file: &SourceFile<'_>, place: Span, strict: bool, faults: &Faults<'_>) {
    let mut found = unfenced_lines(file.text).filter_map(|line| Some((line.start, PLACEHOLDER.find(line.text)?)));
    let Some((start, first)) = found.next() else { return };
    let line = file.text[..start].matches('\n').count() + 1;
    let more = match found.count() {
        0 => String::new(),
        count => format!(", and {count} more lines"),
    };
    let message = format!("{}:{line} still has {} to be filled in{more}", file.path, quoted(first.as_str()));
    let help = "fill it in: agents read this file";
    if strict { faults.error_with(place, message, help) } else { faults.warning(place, message, help) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_text::SourceText;

    #[test]
    fn short_companions_are_quoted_and_long_named() {
        let mut text = String::new();
        add(&mut text, "Specification", &SourceFile { path: "s/spec.md", text: "# A\r\n```\nx\n```\n" });
        assert_eq!(text, "## Specification\n\nFrom `s/spec.md`:\n\n````markdown\n# A\n```\nx\n```\n````");
        let long = "x".repeat(INLINE + 1);
        let mut text = String::new();
        add(&mut text, "Design", &SourceFile { path: "d.md", text: &long });
        assert_eq!(text, "## Design\n\nRead `d.md`.");
    }

    #[test]
    fn placeholders_are_reported_with_their_line() {
        let warn = |text: &str, strict| {
            let faults = Faults::new(SourceText::new("tasks.md", "x"));
            warn_of_placeholders(&SourceFile { path: "plan.md", text }, Span::default(), strict, &faults);
            (faults.any_error(), faults.into_diagnostics())
        };
        let (error, found) = warn("a\n**Language**: [e.g., Rust]\nNEEDS CLARIFICATION", false);
        assert!(!error && found[0].message.starts_with("plan.md:2 still has `[e.g., Rust]`"), "{found:?}");
        assert!(found[0].message.ends_with("and 1 more lines"));
        assert!(warn("[FEATURE]", true).0);
        assert_eq!(warn("fine\n```\n[e.g., x]\n```", false).1, []);
    }
}
