//! The issues of a forge in JSON, as `gh` and `glab` print them: a lane for each that is open, in the order of their
//! dependencies.

use std::sync::LazyLock;

use regex::Regex;

use super::native::json;
use super::shared::acceptance::{Judged, judged_by};
use super::shared::commands_in_text::only_checks;
use super::shared::items::{Item, MIDDLE, Reference, Standing, Unknown, add_lanes, rank_of, standing_of, text_of};
use super::shared::paths_in_text::{NamedPath, complete, globs, paths_in_text, retain_sure};
use lanewright_model::text::headline;

use crate::Source;
use crate::draft::{LaneDraft, Overlaps, PlanDraft, PromptDraft, TaskDraft};
use crate::faults::{Faults, nearest, quoted};
use crate::front_matter::scalar;
use crate::ids::as_id;
use crate::markdown::{clean, paragraph};
use crate::source_text::{At, Span};
use crate::tree::{Node, Value, refuse_nul};

const REMEDY: &str = "write the file again: lanewright plan new --from issues";

static ISSUE: LazyLock<Regex> = pattern!(r#""(?:number|iid)"\s*:\s*\d+"#);

static TITLE: LazyLock<Regex> = pattern!(r#""title"\s*:\s*""#);

/// A line that says what an issue waits for: `Blocked by #12 and #13`, `- **Depends on:** #7`.
static WAITS: LazyLock<Regex> =
    pattern!(r"(?im)^[\s>*+-]*\**(?:blocked by|depends on)\**:?\**:?\s*((?:#\d+(?:\s*(?:,|and|&)?\s*))+)");

static NUMBER: LazyLock<Regex> = pattern!(r"#(\d+)");

/// What templates of issues explain to their authors.
static COMMENT: LazyLock<Regex> = pattern!(r"(?s)<!--.*?(?:-->|\z)");

static FENCE: LazyLock<Regex> = pattern!(r"(?ms)^\s*```.*?^\s*```");

/// What a forge takes for the order to close an issue.
static CLOSES: LazyLock<Regex> = pattern!(
    r"(?i)\b(?P<word>clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?):?\s+(?:issues?\s+)?[\w./-]*(?:#|https?://\S*/)(?P<ref>\d+)"
);

/// Whether the file is one of this format's, by its path and its text.
pub(super) fn is_plan(path: &str, text: &str) -> bool {
    let is_list = text.trim_start_matches('\u{feff}').trim_start().starts_with('[');
    is_list && path.ends_with(".json") && ISSUE.is_match(text) && TITLE.is_match(text)
}

struct Issue {
    /// `#12`
    name: String,
    id: At<String>,
    title: String,
    body: String,
    labels: Vec<String>,
    milestone: String,
    standing: Standing,
    waits_for: Vec<Reference>,
}

pub(super) fn plan(source: &Source<'_>, faults: &Faults<'_>) -> Option<PlanDraft> {
    let files = faults.source.files();
    if let [_, second, ..] = files {
        faults.error_with(second.span(0..0), "the issues of a forge are one file", "name one file");
        return None;
    }
    let root = json::parse(files[0].text, faults)?;
    let Value::List(nodes) = &root.value else {
        faults.error_with(root.span, format!("issues are a list, not {}", root.value.kind()), REMEDY);
        return None;
    };
    let mut issues: Vec<Issue> = nodes.iter().filter_map(|node| read(node, source, faults)).collect();
    choose(&mut issues, source.options.tag, faults)?;
    let phase = source.options.tag.and_then(as_id).unwrap_or_else(|| "issues".to_owned());
    let mut draft = PlanDraft {
        phase: Some(At::new(phase, root.span)),
        title: Some(At::new(source.options.tag.unwrap_or("Issues").to_owned(), root.span)),
        overlaps: Overlaps::AUTO,
        ..PlanDraft::default()
    };
    let mut paths: Vec<Vec<NamedPath>> = issues.iter().map(|issue| paths_in_text(&issue.body)).collect();
    complete(paths.iter_mut().flatten());
    paths.iter_mut().for_each(|paths| retain_sure(paths, ".git/"));
    let items: Vec<Item> = issues.iter().map(item).collect();
    add_lanes(&items, Unknown::Met, &mut draft, faults, |at| lane(&issues[at], &paths[at], faults));
    Some(draft)
}

fn read(node: &Node, source: &Source<'_>, faults: &Faults<'_>) -> Option<Issue> {
    if !matches!(node.value, Value::Table(_)) {
        faults.error_with(node.span, format!("an issue is a table, not {}", node.value.kind()), REMEDY);
        return None;
    }
    let is_wanted = node.get("wanted").is_none_or(|wanted| wanted.value != Value::Boolean(false));
    if is_wanted {
        refuse_nul(node, faults);
    }
    let number = node.get("number").or_else(|| node.get("iid")).and_then(|number| scalar(number, faults));
    let Some(number) = number.filter(|number| number.value.bytes().all(|byte| byte.is_ascii_digit())) else {
        if is_wanted {
            faults.error_with(node.span, "this issue has no `number`", REMEDY);
        }
        return None;
    };
    let text = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| node.get(name)).filter(|found| found.value != Value::Null);
        text_of(found, faults)
    };
    let body = COMMENT.replace_all(&text(["body", "description"]), "").trim().to_owned();
    let labels = node.get("labels").map_or(&[][..], Node::list);
    let labels = labels.iter().map(|label| text_of(label.get("name").or(Some(label)), faults)).collect();
    let milestone = node.get("milestone").and_then(|milestone| milestone.get("title"));
    let id = At::new(format!("issue-{}", number.value), number.span);
    let elsewhere = node.get("blocked_elsewhere").and_then(|others| others.list().first());
    let standing = match standing_of(&text(["state", "status"])) {
        // Pull requests are in the same list.
        _ if node.get("pull_request").is_some() => Standing::Gone,
        _ if !is_wanted => Standing::NotAsked,
        _ if elsewhere.is_some() => {
            Standing::Aside(format!("it waits for {}, which is open", headline(&text_of(elsewhere, faults), 100)))
        }
        Some(standing) => standing.unless_redone(&id.value, &source.options),
        None => Standing::Open,
    };
    Some(Issue {
        name: format!("#{}", number.value),
        title: harmless(&text(["title", "title"])),
        labels,
        milestone: text_of(milestone, faults),
        waits_for: waits(node, &body, number.span, faults),
        standing,
        body,
        id,
    })
}

/// A title on one line, which becomes part of the messages of commits: an issue that it names there is not to be closed.
fn harmless(title: &str) -> String {
    CLOSES.replace_all(&headline(&clean(title), 200), "$word $ref").into_owned()
}

/// What the forge says that it waits for, and what its text says.
fn waits(node: &Node, body: &str, span: Span, faults: &Faults<'_>) -> Vec<Reference> {
    let reference = |number: &str, span| {
        let written = At::new(format!("#{number}"), span);
        Reference { key: number.to_owned(), written }
    };
    let listed = node.get("blocked_by").map_or(&[][..], Node::list).iter();
    let listed = listed.filter_map(|on| scalar(on.get("number").or_else(|| on.get("iid")).unwrap_or(on), faults));
    let prose = FENCE.replace_all(body, "");
    let said = WAITS.captures_iter(&prose).filter_map(|line| line.get(1));
    let said = said.flat_map(|list| NUMBER.captures_iter(list.as_str())).map(|number| number[1].to_owned());
    listed.map(|on| reference(&on.value, on.span)).chain(said.map(|number| reference(&number, span))).collect()
}

/// Sets aside what has neither the label nor the milestone that is asked for.
fn choose(issues: &mut [Issue], tag: Option<&str>, faults: &Faults<'_>) -> Option<()> {
    let Some(tag) = tag else { return Some(()) };
    let has = |issue: &Issue| issue.names().any(|name| name.eq_ignore_ascii_case(tag));
    if !issues.iter().any(has) {
        let help = match nearest(tag, issues.iter().flat_map(Issue::names)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "--tag takes a label or a milestone".to_owned(),
        };
        faults.error_with(Span::default(), format!("no issue has the label or the milestone {}", quoted(tag)), help);
        return None;
    }
    issues.iter_mut().filter(|issue| !has(issue)).for_each(|issue| issue.standing = Standing::NotAsked);
    Some(())
}

impl Issue {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().map(String::as_str).chain(Some(self.milestone.as_str())).filter(|name| !name.is_empty())
    }

    /// As its labels say: `P1`, `priority: high`.
    fn rank(&self) -> Option<u32> {
        self.labels.iter().find_map(|label| {
            let label = label.to_lowercase();
            let word = label.strip_prefix("priority").map(|rest| rest.trim_start_matches([':', '/', '-', ' ']));
            rank_of(word.or(Some(label.as_str()).filter(|label| label.len() == 2))?)
        })
    }
}

fn item(issue: &Issue) -> Item {
    Item {
        id: issue.id.clone(),
        name: issue.title.clone(),
        key: issue.name[1..].to_owned(),
        standing: issue.standing.clone(),
        waits_for: issue.waits_for.clone(),
        is_again: false,
        rank: issue.rank().unwrap_or(MIDDLE),
    }
}

fn lane(issue: &Issue, paths: &[NamedPath], faults: &Faults<'_>) -> LaneDraft {
    let span = issue.id.span;
    let mut body = issue.body.clone();
    let Judged { gates, criteria } = judged_by(String::new(), &mut body, span, faults);
    let mut prompt = format!("# Issue {}: {}", issue.name, issue.title);
    paragraph(&mut prompt, &clean(&body));
    paragraph(&mut prompt, "Do not close the issue: the merge of the work does.");
    let task = TaskDraft {
        span,
        id: Some(issue.id.clone()),
        name: Some(At::new(issue.title.clone(), span)).filter(|name| !name.value.is_empty()),
        prompt: PromptDraft::here(prompt, span),
        acceptance_criteria: criteria.iter().map(|text| At::new(text.clone(), span)).collect(),
        allow_empty: only_checks(&issue.title),
        ..TaskDraft::default()
    };
    LaneDraft {
        owns: Some(globs(paths.iter(), |_| span)),
        tests: Some(gates).filter(|gates| !gates.is_empty()),
        criteria: Some(criteria.join("\n")).filter(|text| !text.is_empty()),
        closes: vec![At::new(issue.name.clone(), span)],
        tasks: Some(vec![task]),
        ..LaneDraft::default()
    }
}

#[cfg(test)]
mod tests;
