//! Ids from what people write.

use std::collections::HashSet;

use lanewright_model::LaneId;
use lanewright_model::id::MAX_ID_LENGTH;

/// `text` as an id: what no id can hold becomes `-`. `None` where nothing is left.
pub(super) fn as_id(text: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let mut id = String::new();
    for c in text.chars() {
        let c = if allowed(c) { c } else { '-' };
        let repeats = id.ends_with(['-', '.']) && matches!(c, '-' | '.');
        if !(repeats || id.is_empty() && !c.is_ascii_alphanumeric()) {
            id.push(c);
        }
    }
    if id.len() > MAX_ID_LENGTH {
        id.truncate(MAX_ID_LENGTH);
        id.truncate(id.rfind('-').filter(|&end| end > MAX_ID_LENGTH / 2).unwrap_or(MAX_ID_LENGTH));
    }
    let ends = ['-', '.', '_'];
    let mut kept = id.trim_end_matches(ends);
    while let Some(shorter) = kept.strip_suffix(".lock") {
        kept = shorter.trim_end_matches(ends);
    }
    LaneId::new(kept).is_ok().then(|| kept.to_owned())
}

/// `id`, or with the first number behind it that makes it different from those that are `known`, where it is added.
pub(super) fn unique(id: String, known: &mut HashSet<String>) -> String {
    let numbered = (2_usize..).map(|count| format!("{id}-{count}"));
    let free = std::iter::once(id.clone()).chain(numbered).find(|name| !known.contains(name)).unwrap_or(id);
    known.insert(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_made_from_any_text() {
        assert_eq!(as_id("P1/SL 1..x").as_deref(), Some("P1-SL-1.x"));
        assert_eq!(as_id("ä-b.lock").as_deref(), Some("b"));
        assert_eq!(as_id("—"), None);
        assert_eq!(as_id(&"x".repeat(99)).map(|id| id.len()), Some(64));
        assert_eq!(as_id(&"long-name-".repeat(9)).map(|id| id.len()), Some(59));
    }
}
