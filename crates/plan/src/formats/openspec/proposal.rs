//! What a proposal says that the list of tasks does not: the code and the capabilities that a change affects.

use std::ops::Range;

use crate::formats::shared::paths_in_text::{NamedPath, paths_in_text};
use crate::markdown::inline::{bare, codes};
use crate::markdown::{Document, Fence, indent, list_item};

/// The title of a proposal without `Change:`.
pub(super) fn title(text: &str) -> Option<String> {
    let document = Document::new(text);
    let title = document.title()?.title;
    let words = ["Change:", "Proposal:", "Change Proposal:", "变更：", "提案："];
    let own = words.iter().find_map(|word| title.strip_prefix(word)).unwrap_or(title);
    Some(bare(own).to_owned()).filter(|own| !own.is_empty())
}

/// The code that the proposal says is affected.
pub(super) fn affected_code(text: &str) -> Vec<NamedPath> {
    labelled(text, &["affected code", "affected files", "受影响的代码", "影响代码", "影响的代码"])
        .into_iter()
        .flat_map(|range| paths_in_text(&text[range]))
        .filter(|named| !named.path.starts_with("openspec/"))
        .collect()
}

/// The capabilities that the proposal says are affected: `runtime`, `openspec/specs/runtime/spec.md`.
pub(super) fn affected_capabilities(text: &str) -> Vec<String> {
    let stretches = labelled(text, &["affected specs", "affected capabilities", "受影响的规范", "影响规范"]);
    let named = stretches.into_iter().flat_map(|range| {
        let part = &text[range];
        codes(part).into_iter().map(move |code| part[code.inner].trim())
    });
    let capability = |name: &str| {
        let inner = name.trim_end_matches("/spec.md").trim_end_matches('/');
        inner.rsplit('/').next().map(str::to_lowercase).filter(|name| !name.is_empty() && !name.contains(' '))
    };
    named.filter_map(capability).collect()
}

/// Items of lists and headings whose text begins with one of `labels`, each with the deeper lines below it.
fn labelled(text: &str, labels: &[&str]) -> Vec<Range<usize>> {
    let document = Document::new(text);
    let is_label = |said: &str| {
        let said = bare(said).to_lowercase();
        labels.iter().any(|label| said.starts_with(label))
    };
    let mut found = Vec::new();
    for (at, _) in document.headings.iter().enumerate().filter(|(_, heading)| is_label(heading.title)) {
        found.push(document.bytes(document.below(at)));
    }
    let mut open: Option<(usize, Range<usize>)> = None;
    for line in (document.front_matter..document.len()).filter(|line| document.fence(*line) == Fence::Outside) {
        if document.is_blank(line) {
            continue;
        }
        let (range, columns) = (document.trimmed(line), indent(document.line(line)));
        let item = list_item(text, document.range(line)).map(|(item, _)| item);
        let said = item.clone().unwrap_or_else(|| range.clone());
        let continues = document.heading_at(line).is_none();
        match &mut open {
            // `**Affected code:**` may stand above its list.
            Some((own, whole))
                if continues && (columns > *own || item.is_some() && text[whole.start..].starts_with("**")) =>
            {
                whole.end = range.end;
            }
            _ => {
                found.extend(open.take().map(|(_, whole)| whole));
                open = (continues && is_label(&text[said])).then_some((columns, range));
            }
        }
    }
    found.extend(open.map(|(_, whole)| whole));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affected_code_and_specs_are_read() {
        let text = "# Change: Add it\n## Impact\n- Affected specs:\n  - `openspec/specs/Runtime/spec.md`\n  - **ADDED** `host-sdk`\n\
                    - **Affected code** (later):\n  - `src/a.rs` - new\n  - `src/lib/` and docs/b.md\n- Other: `src/no.rs`\n";
        assert_eq!(title(text).as_deref(), Some("Add it"));
        let paths: Vec<String> = affected_code(text).into_iter().map(|named| named.path).collect();
        assert_eq!(paths, ["src/a.rs", "src/lib/", "docs/b.md"]);
        assert_eq!(affected_capabilities(text), ["runtime", "host-sdk"]);
    }

    #[test]
    fn labels_may_be_headings_or_stand_above_a_list() {
        let paths = |text: &str| affected_code(text).into_iter().map(|named| named.path).collect::<Vec<_>>();
        assert_eq!(
            paths("### Affected Code\n`src/a.rs`\n\n- `src/b.rs`\n### Next\n`src/c.rs`\n"),
            ["src/a.rs", "src/b.rs"]
        );
        assert_eq!(
            paths("**Affected code:**\n- `src/a.rs`\n- `src/b.rs`\n\n## Next\n- `src/c.rs`\n"),
            ["src/a.rs", "src/b.rs"]
        );
        assert_eq!(paths("- Affected code: `src/a.rs`\n- Migration: `src/b.rs`\n"), ["src/a.rs"]);
        assert_eq!(paths("no label: `src/a.rs`"), Vec::<String>::new());
    }
}
