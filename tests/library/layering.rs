//! The rooms of `src` import each other only as `docs/architecture.md` says, and the pure ones do nothing but think.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

const PURE: &[&str] = &["model", "event", "runner", "diagnose", "schedule", "plan_source", "settings", "shell", "view"];
const DOORS: &[&str] = &["store", "git", "process", "forge"];

/// What a pure room may not name: the world, the clock, chance.
const IMPURE: &[&[&str]] = &[
    &["std", "env"],
    &["std", "fs"],
    &["std", "net"],
    &["std", "process"],
    &["std", "thread"],
    &["git2"],
    &["rustix"],
    &["tempfile"],
    &["tokio"],
    &["Instant"],
    &["SystemTime"],
    &["Local", "now"],
    &["Utc", "now"],
    &["getrandom"],
    &["rand"],
    &["uuid"],
];

/// Ways to open a file that wait for a named pipe and read a device without end. `fs::regular_file` has one that does not.
const UNGUARDED: &[&[&str]] = &[
    &["fs", "read"],
    &["fs", "read_to_string"],
    &["fs", "copy"],
    &["File", "open"],
    &["File", "create"],
    &["File", "options"],
    &["OpenOptions", "new"],
];

/// Ways to write a file that may leave half of it, that a power cut undoes, or that no write fault reaches. `fs` has those
/// that do not.
const WRITES: &[&[&str]] = &[
    &["fs", "write"],
    &["fs", "rename"],
    &["fs", "hard_link"],
    &["renameat"],
    &["renameat_with"],
    &["linkat"],
    &["DirBuilder"],
    &["NamedTempFile"],
    &["TempPath"],
    &["tempfile_in"],
    &["sync_all"],
    &["sync_data"],
    &["set_len"],
];

/// The rooms that `room` may import; `None`: nobody has decided yet.
fn may_import(room: &str) -> Option<Vec<&'static str>> {
    match room {
        "model" => Some(vec![]),
        "event" | "diagnose" | "runner" | "shell" => Some(vec!["model"]),
        "schedule" => Some(vec!["model", "event", "diagnose"]),
        "settings" => Some(vec!["model", "event", "runner"]),
        "view" => Some(vec!["model", "event", "shell"]),
        "plan_source" => Some(vec!["model", "event", "shell"]),
        "store" => Some(vec!["model", "event", "fs"]),
        "process" => Some(vec!["model", "event", "shell", "fs"]),
        "git" | "forge" => Some(vec!["model", "event", "fs", "time_limit", "timing"]),
        "fs" | "time_limit" => Some(vec![]),
        "timing" => Some(vec!["model", "fs"]),
        "report" => Some(vec!["model", "event", "view"]),
        "travel" => Some([PURE, DOORS, &["fs"]].concat()),
        "recover" => Some([PURE, DOORS, &["engine", "fs"]].concat()),
        "engine" => Some([PURE, DOORS, &["fs", "timing"]].concat()),
        "cli" => Some([PURE, DOORS, &["travel", "recover", "engine", "report", "timing", "fs"]].concat()),
        _ => None,
    }
}

/// What breaks the rules in a file that lies `depth` modules below the crate's root.
fn violations(room: &str, depth: usize, source: &str, rooms: &[String]) -> Vec<String> {
    let Some(allowed) = may_import(room) else { return vec![format!("`{room}` has no rule; give it one")] };
    let mut paths = Vec::new();
    collect_paths(source.parse().expect("Rust"), &[], &mut paths);
    let imports_wrongly = |path: &&Vec<String>| {
        let supers = path.iter().take_while(|segment| *segment == "super").count();
        let from_root = path[0] == "crate" || supers >= depth;
        let target = path.get(supers.max(1)).map_or("", String::as_str);
        let foreign = target == "*" || rooms.iter().any(|room| room == target);
        from_root && foreign && target != room && !allowed.contains(&target)
    };
    let names = |path: &Vec<String>, list: &[&[&str]]| {
        list.iter().any(|name| path.windows(name.len()).any(|part| part == *name))
    };
    let is_impure = |path: &&Vec<String>| PURE.contains(&room) && names(path, IMPURE);
    let is_unguarded = |path: &&Vec<String>| room != "fs" && (names(path, UNGUARDED) || names(path, WRITES));
    let wrong = paths.iter().filter(|path| imports_wrongly(path) || is_impure(path) || is_unguarded(path));
    wrong.map(|path| format!("`{room}` names `{}`", path.join("::"))).collect()
}

/// Every path in `tokens`, those in braces with what stands before the braces.
fn collect_paths(tokens: TokenStream, prefix: &[String], paths: &mut Vec<Vec<String>>) {
    let (mut path, mut colons) = (prefix.to_vec(), 0);
    for token in tokens {
        let continues = colons == 2;
        colons = if matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ':') { colons + 1 } else { 0 };
        let segment = match &token {
            TokenTree::Ident(name) => Some(name.to_string()),
            TokenTree::Punct(punct) if punct.as_char() == '*' && continues => Some("*".to_owned()),
            _ => None,
        };
        if !continues && colons == 0 {
            paths.extend((path.len() > prefix.len()).then(|| path.clone()));
            path.truncate(prefix.len());
        }
        path.extend(segment);
        if let TokenTree::Group(group) = token {
            let listed = continues && group.delimiter() == Delimiter::Brace;
            collect_paths(group.stream(), if listed { &path } else { &[] }, paths);
            path.truncate(prefix.len());
        }
    }
    paths.extend((path.len() > prefix.len()).then_some(path));
}

/// The files below `directory`, with the modules that lead to each.
fn files(directory: &Path, modules: &[String]) -> Vec<(PathBuf, Vec<String>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let modules: Vec<String> = modules.iter().cloned().chain((name != "mod").then_some(name)).collect();
        if path.is_dir() {
            found.extend(files(&path, &modules));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path, modules));
        }
    }
    found
}

/// Whether a file holds nothing but tests, or samples for them.
fn is_of_tests(modules: &[String]) -> bool {
    let of_tests =
        |module: &String| ["tests", "testing", "samples"].contains(&module.as_str()) || module.ends_with("_tests");
    modules.iter().any(of_tests)
}

/// Unit tests stand last in their file; what they do to files is no concern of the rules.
fn without_tests(source: &str) -> &str {
    source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

#[test]
fn rooms_import_and_name_only_what_they_may() {
    let mut files = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &[]);
    files.retain(|(_, modules)| !["lib", "main"].contains(&modules[0].as_str()) && !is_of_tests(modules));
    let rooms: Vec<String> = files.iter().map(|(_, modules)| modules[0].clone()).collect();
    assert!(PURE.iter().chain(DOORS).all(|room| rooms.iter().any(|known| known == room)), "rooms are missing");
    let broken: Vec<String> = files
        .iter()
        .flat_map(|(path, modules)| {
            let source = fs::read_to_string(path).expect("UTF-8");
            let violations = violations(&modules[0], modules.len(), without_tests(&source), &rooms);
            violations.into_iter().map(move |violation| format!("{}: {violation}", path.display()))
        })
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn planted_violations_are_found() {
    let rooms = ["model", "event", "schedule", "view", "store", "git", "report", "engine"].map(str::to_owned);
    let planted = [
        ("model", "use crate::event::Event;"),
        ("view", "use crate::{model::Plan, schedule::RunState};"),
        ("git", "fn f() { let _ = crate::store::Journal::open; }"),
        ("schedule", "use super::super::view::RunView;"),
        ("report", "use crate::*;"),
        ("engine", "macro_rules! m { () => { $crate::report::Plain } }"),
        ("settings", "use std::{fmt, fs};"),
        ("schedule", "fn f() -> u64 { let at = std::time::Instant::now(); 0 }"),
        ("view", "fn f() { let _ = chrono::Utc::now(); }"),
        ("event", "use uuid::Uuid;"),
        ("store", "fn f() { let _ = std::fs::read(\"x\"); }"),
        ("process", "use std::fs; fn f() { let _ = fs::read_to_string(\"x\"); }"),
        ("git", "fn f() { let _ = File::options().append(true); }"),
        ("cli", "use std::fs::{OpenOptions}; fn f() { let _ = OpenOptions::new(); }"),
        ("store", "fn f() { let _ = std::fs::rename(\"x\", \"y\"); }"),
        ("process", "use std::fs; fn f() { let _ = fs::write(\"x\", \"y\"); }"),
        ("git", "use tempfile::{NamedTempFile};"),
        ("cli", "use std::fs::{File, hard_link};"),
        ("engine", "fn f(file: &std::fs::File) { let _ = file.sync_all(); }"),
        ("recover", "use rustix::fs::renameat_with as r;"),
        ("cellar", ""),
    ];
    for (room, source) in planted {
        assert_eq!(violations(room, 2, source, &rooms).len(), 1, "{room}: {source}");
    }
    let harmless = [
        ("view", "use crate::view::line; use super::schedule; // crate::schedule\nconst S: &str = \"crate::git\";"),
        ("store", "use std::{fs, io::Write}; use crate::{event::{Event, Record}, model::Plan};"),
        ("engine", "use crate::git::{self, Pool}; struct S { report: u8 }"),
        ("fs", "fn f(file: &std::fs::File) { let _ = file.sync_all(); std::fs::rename(\"x\", \"y\").unwrap(); }"),
    ];
    for (room, source) in harmless {
        assert_eq!(violations(room, 2, source, &rooms), Vec::<String>::new(), "{room}: {source}");
    }
}
