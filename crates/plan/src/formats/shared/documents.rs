//! The documents of a format in the prompts of many tasks, each prompt and all of them together of a bounded length.

use std::cell::Cell;

use super::companions::{INLINE, add};
use crate::SourceFile;
use crate::markdown::paragraph;

/// How much of documents one prompt quotes, in bytes.
const IN_PROMPT: usize = 48 * 1024;

/// How much of documents all prompts of a plan quote.
const IN_PLAN: usize = 8 * 1024 * 1024;

/// The documents of a lane, and what prompts of the plan may still quote.
pub(crate) struct Documents<'b, 's> {
    pub(crate) listed: Vec<(String, &'s SourceFile<'s>)>,
    pub(crate) budget: &'b Cell<usize>,
}

pub(crate) fn budget() -> Cell<usize> {
    Cell::new(IN_PLAN)
}

impl Documents<'_, '_> {
    /// Adds each document below its title: its text, or its path where it or the prompt is too long.
    pub(crate) fn add(&self, text: &mut String) {
        let mut left = IN_PROMPT.min(self.budget.get());
        for (title, file) in self.listed.iter().filter(|(_, file)| !file.text.trim().is_empty()) {
            let length = file.text.len();
            if length > INLINE || length > left {
                paragraph(text, &format!("## {title}\n\nRead `{}`.", file.path));
                continue;
            }
            left -= length;
            self.budget.set(self.budget.get() - length);
            add(text, title, file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_beyond_the_limit_are_named() {
        let long = "x".repeat(INLINE);
        let files: Vec<SourceFile<'_>> = ["a", "b", "c", "d"].map(|path| SourceFile { path, text: &long }).into();
        let budget = Cell::new(INLINE * 4);
        let documents =
            Documents { listed: files.iter().map(|file| (file.path.to_owned(), file)).collect(), budget: &budget };
        let (mut first, mut second) = (String::new(), String::new());
        documents.add(&mut first);
        documents.add(&mut second);
        assert!(first.matches("From `").count() == 3 && first.contains("Read `d`."), "{}", first.len());
        assert_eq!((second.matches("From `").count(), second.matches("Read `").count()), (1, 3));
    }
}
