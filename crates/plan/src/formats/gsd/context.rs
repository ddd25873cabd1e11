//! The files that a plan refers to in its `<context>`.

use super::tokens::tokens;
use crate::front_matter;

/// A file of the repository that the context of a plan names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    /// The number of its line in the plan, from 1.
    pub line: usize,
    /// As it is written, relative to the repository's root.
    pub path: String,
}

/// The files that lines `@path` of the context name. A path outside of the repository, a glob, and a file of which the
/// plan says that it may be missing ("if available") are left out.
pub fn context_files(text: &str) -> Vec<ContextFile> {
    let body = front_matter::locate(text).filter(|front| front.outer.start == 0).map_or(0, |front| front.outer.end);
    let tokens = tokens(text, body..text.len());
    let first_task = tokens.iter().find(|token| token.opens("task")).map_or(text.len(), |task| task.start);
    let Some(open) = tokens.iter().find(|token| token.opens("context") && token.start < first_task) else {
        return Vec::new();
    };
    let close = tokens.iter().find(|token| token.closes("context") && token.start > open.start);
    let end = close.map_or(first_task, |close| close.start).max(open.end);
    let before = text[..open.end].matches('\n').count();
    let mut in_code = false;
    let mut named = |(at, line): (usize, &str)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        // `@pytest.fixture` in code names no file.
        let path = reference(line).filter(|_| !in_code)?;
        Some(ContextFile { line: before + at + 1, path })
    };
    text[open.end..end].lines().enumerate().filter_map(&mut named).collect()
}

/// The path of a line `@path`, without the remark behind it.
fn reference(line: &str) -> Option<String> {
    let written = line.trim().strip_prefix('@')?;
    let (path, remark) = [" — ", " - ", " (", " #"]
        .iter()
        .filter_map(|mark| written.split_once(mark))
        .min_by_key(|(path, _)| path.len())
        .unwrap_or((written, ""));
    let is_optional = remark.split(|c: char| !c.is_alphanumeric()).any(|word| ["if", "when", "will"].contains(&word));
    let path = path.trim().trim_matches('`').trim_end_matches(':');
    let path = path.strip_prefix("./").unwrap_or(path);
    let is_outside = path.starts_with(['~', '/', '$', '@']) || path.contains(['\\', ':', '*', '{', '<', '"']);
    let is_path = path.contains(['/', '.']) && !path.split('/').any(|part| part == "..");
    (!is_optional && !is_outside && is_path).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_lines_name_files_of_the_repository() {
        let text = "---\nplan: 01\n---\n<context>\n@.planning/STATE.md\n@src/a.ts — types\n@Some Data/x.xml\n\
                    - `@Bean` of x\n@~/.claude/y.md\n@/etc/z\n@src/**/*.ts\n@docs/b.md (if available)\n@Component\n\
                    ```py\n@pytest.fixture\n```\n</context>\n<tasks>\n<task><context>\n@src/of-task.ts\n</context></task>\n</tasks>\n";
        let found: Vec<(usize, String)> = context_files(text).into_iter().map(|it| (it.line, it.path)).collect();
        let expected = [(5, ".planning/STATE.md"), (6, "src/a.ts"), (7, "Some Data/x.xml")];
        assert_eq!(found, expected.map(|(line, path)| (line, path.to_owned())));
        assert_eq!(context_files("no context"), []);
    }
}
