//! `must_haves` of the front matter (SPEC §3.2), in its full form and as a plain list.

use lanewright_model::MustHaves;
use lanewright_model::{Artifact, KeyLink};

use super::header::{field, sentence, texts};
use super::names::is_kept_by_lanewright;
use crate::faults::{Faults, quoted};
use crate::front_matter::{normal, scalar};
use crate::markdown::clean;
use crate::path::{is_file_name, listed};
use crate::source_text::{At, Span};
use crate::tree::{Node, TableEntry, Value};

/// How many paths are compared with how many files.
const MAX_COMPARED: usize = 1_000;

/// Reads the value of `must_haves`. A plain list says what must be true.
pub(super) fn read(node: Node, faults: &Faults<'_>) -> MustHaves {
    let mut found = MustHaves::default();
    let Value::Table(entries) = node.value else {
        found.truths = values(texts(node, "must_haves", faults));
        return found;
    };
    for TableEntry { key, value } in entries {
        match normal(&key.value).as_str() {
            "truths" => found.truths.extend(values(texts(value, "truths", faults))),
            "prohibitions" => {
                let never = values(texts(value, "prohibitions", faults));
                found.truths.extend(never.into_iter().map(|text| format!("Never: {text}")));
            }
            "artifacts" => value.items().into_iter().for_each(|item| artifact(item, &mut found, faults)),
            "key_links" => value.items().into_iter().for_each(|item| key_link(item, &mut found, faults)),
            _ => {}
        }
    }
    found
}

fn values(texts: Vec<At<String>>) -> Vec<String> {
    texts.into_iter().map(|text| clean(&text.value)).collect()
}

fn string(entries: &[TableEntry], names: &[&str], faults: &Faults<'_>) -> Option<String> {
    let node = field(entries, names)?;
    let text = match &node.value {
        Value::List(_) => Some(scalars(node, faults).join(", ")).filter(|text| !text.is_empty()),
        _ => sentence(node, faults).map(|text| text.value),
    };
    text.map(|text| clean(&text))
}

fn scalars(list: &Node, faults: &Faults<'_>) -> Vec<String> {
    let items = if let Value::List(items) = &list.value { items.as_slice() } else { std::slice::from_ref(list) };
    items.iter().filter_map(|item| Some(sentence(item, faults)?.value)).collect()
}

/// Adds an artifact; one for each text that its file has to hold.
fn artifact(item: Node, found: &mut MustHaves, faults: &Faults<'_>) {
    let (written, entries) = match (&item.value, sentence(&item, faults)) {
        (Value::Table(entries), _) if field(entries, &["path", "file"]).is_some() => {
            (field(entries, &["path", "file"]).and_then(|node| scalar(node, faults)), entries.as_slice())
        }
        (_, written) => (written, &[][..]),
    };
    let Some(written) = written else { return skipped(item.span, "an artifact", faults) };
    let Some(path) = path(&written, found, faults) else { return };
    let mut contains = match field(entries, &["contains"]) {
        Some(list @ At { value: Value::List(_), .. }) => scalars(list, faults),
        _ => string(entries, &["contains"], faults).into_iter().collect(),
    }
    .into_iter();
    let min_lines = string(entries, &["min_lines"], faults);
    let artifact = Artifact {
        path,
        provides: string(entries, &["provides"], faults),
        min_lines: min_lines.and_then(|number| number.trim_end_matches('+').parse().ok()),
        contains: contains.next(),
        exports: field(entries, &["exports"]).map(|node| exports(node, faults)).unwrap_or_default(),
    };
    let path = artifact.path.clone();
    found.artifacts.push(artifact);
    let more = |text| Artifact { path: path.clone(), contains: Some(text), ..Artifact::default() };
    found.artifacts.extend(contains.map(more));
}

/// Names without the remarks behind them: `default (Router)`.
fn exports(node: &Node, faults: &Faults<'_>) -> Vec<String> {
    let written = scalars(node, faults);
    let names = written.iter().flat_map(|text| text.split(','));
    let names = names.map(|name| name.split('(').next().unwrap_or("").trim().trim_matches('`').to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

/// The path of an artifact. One that cannot be checked is something that must be true.
fn path(written: &At<String>, found: &mut MustHaves, faults: &Faults<'_>) -> Option<String> {
    let why = match listed(&written.value) {
        Ok(Some(path)) if is_kept_by_lanewright(&path) => "Lanewright keeps this file itself",
        Ok(Some(path)) => return Some(path),
        Ok(None) => "it names no file",
        Err(why) => {
            if written.value.contains(' ') {
                found.truths.push(clean(&written.value));
            }
            why
        }
    };
    let message = format!("must_haves: {} cannot be checked as an artifact: {why}", quoted(&written.value));
    faults.warning(written.span, message, "name one file below the repository's root");
    None
}

/// Adds a key link. One in words is something that must be true.
fn key_link(item: Node, found: &mut MustHaves, faults: &Faults<'_>) {
    let link = match &item.value {
        Value::Table(entries) if field(entries, &["from"]).is_some() => {
            let Some(from) = string(entries, &["from"], faults) else { return };
            KeyLink {
                from,
                to: string(entries, &["to"], faults).unwrap_or_default(),
                via: string(entries, &["via"], faults),
                pattern: string(entries, &["pattern"], faults),
            }
        }
        _ => {
            let Some(text) = sentence(&item, faults) else { return skipped(item.span, "a key link", faults) };
            let text = clean(&text.value);
            let Some((from, to)) = text.split_once("->").or_else(|| text.split_once('→')) else {
                let message = format!("must_haves: {} cannot be checked as a key link", quoted(&text));
                let help = "write `from`, `to` and `pattern`; otherwise it is only shown to the agent";
                faults.warning(item.span, message, help);
                return found.truths.push(text);
            };
            KeyLink { from: from.trim().to_owned(), to: to.trim().to_owned(), via: None, pattern: None }
        }
    };
    found.key_links.push(checkable(link, item.span, faults));
}

/// A link whose pattern can be looked for: what it comes from is one file, and not one that Lanewright keeps.
fn checkable(link: KeyLink, span: Span, faults: &Faults<'_>) -> KeyLink {
    let from = clean(&link.from);
    match listed(&from) {
        Ok(Some(path)) if !is_kept_by_lanewright(&path) && (path.contains('/') || is_file_name(&path)) => {
            KeyLink { from: path, ..link }
        }
        _ if link.pattern.is_none() => KeyLink { from, ..link },
        _ => {
            let message =
                format!("must_haves: a key link is not checked: its `from`, {}, is not one file", quoted(&from));
            faults.warning(span, message, "name the file in which `pattern` must occur");
            KeyLink { from, pattern: None, ..link }
        }
    }
}

/// Writes paths in full that name one of the plan's own `files` by its end only.
pub(super) fn complete(found: &mut MustHaves, files: &[String]) {
    let artifacts = found.artifacts.iter_mut().map(|artifact| &mut artifact.path);
    let links = found.key_links.iter_mut().filter(|link| link.pattern.is_some()).map(|link| &mut link.from);
    let files = &files[..files.len().min(MAX_COMPARED)];
    for path in artifacts.chain(links).take(MAX_COMPARED) {
        let end = format!("/{path}");
        let mut longer = files.iter().filter(|file| file.ends_with(&end));
        if let (Some(only), None, false) = (longer.next(), longer.next(), files.contains(path)) {
            path.clone_from(only);
        }
    }
}

fn skipped(span: Span, what: &str, faults: &Faults<'_>) {
    faults.warning(span, format!("this is not {what}"), "write its keys, as in the other items; it is left out");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unambiguous_file_name_gets_its_full_path() {
        let files = ["web/src/Page.tsx", "web/a/index.ts", "web/b/index.ts", "app.ts", "web/app.ts"].map(str::to_owned);
        let cases = [
            ("Page.tsx", "web/src/Page.tsx"),
            ("src/Page.tsx", "web/src/Page.tsx"),
            ("age.tsx", "age.tsx"),
            ("index.ts", "index.ts"),
            ("app.ts", "app.ts"),
        ];
        for (written, full) in cases {
            let artifact = Artifact { path: written.to_owned(), ..Artifact::default() };
            let mut found = MustHaves { artifacts: vec![artifact], ..MustHaves::default() };
            complete(&mut found, &files);
            assert_eq!(found.artifacts[0].path, full, "{written}");
        }
    }
}
