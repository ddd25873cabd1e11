//! Labels in bold that stand for elements where a task is written in plain Markdown: `**Verify:** …`.

use std::ops::Range;

use crate::plan::markdown::unfenced_lines;

/// The part of `text` behind each label, by the label's words in small letters.
pub(super) fn labels(text: &str) -> Vec<(String, Range<usize>)> {
    let mut found: Vec<(String, Range<usize>)> = Vec::new();
    for line in unfenced_lines(text) {
        let end = line.range().end;
        if let Some((name, behind)) = label(line.text) {
            close(&mut found, line.start);
            found.push((name, line.start + behind..end));
        } else if line.text.starts_with('#') || line.text.trim() == "---" {
            close(&mut found, line.start);
            found.push((String::new(), end..end));
        }
    }
    close(&mut found, text.len());
    found.retain(|(name, _)| !name.is_empty());
    found
}

fn close(found: &mut [(String, Range<usize>)], at: usize) {
    if let Some((_, range)) = found.last_mut() {
        range.end = at.max(range.start);
    }
}

/// `**Files:** a.rs`, `- **Verify**: …`: the words, and where what follows begins.
fn label(line: &str) -> Option<(String, usize)> {
    let trimmed = line.trim_start().trim_start_matches("- ").trim_start();
    let inside = trimmed.strip_prefix("**")?;
    let length = inside.find("**")?;
    let words = &inside[..length];
    let rest = &inside[length + 2..];
    let colon = words.ends_with(':') || rest.trim_start().starts_with(':');
    let behind = rest.trim_start().strip_prefix(':').unwrap_or(rest);
    let name = words.trim_end_matches(':').trim().to_lowercase();
    (colon && words.len() <= 60).then(|| (name, line.len() - behind.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_reaches_to_the_next_one() {
        let text = "intro\n**Files:** `a.rs`\n\n- **Verify**: `make`\n```\n**No:** x\n```\n**bold** text\n\n## More\ny";
        let found: Vec<(String, &str)> =
            labels(text).into_iter().map(|(name, range)| (name, text[range].trim())).collect();
        let verify = "`make`\n```\n**No:** x\n```\n**bold** text";
        assert_eq!(found, [("files".to_owned(), "`a.rs`"), ("verify".to_owned(), verify)]);
    }
}
