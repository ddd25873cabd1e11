//! What cargo cannot say of the packages: which of their folders import which, that no files import each other in a circle,
//! and that files are opened and written by the functions that are made for it. Cargo says which crates a crate may use,
//! and a `clippy.toml` what the pure ones may not name.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Folders and files, each with those that it may import.
type Rooms = &'static [(&'static str, &'static [&'static str])];

/// The folders of a module that may not import every other one of it, each with those that it may import. The module is
/// named by its package and its path there.
const ROOMS: &[(&str, Rooms)] = &[
    (".", &[("progress", &[]), ("cli", &["progress"])]),
    (
        "./cli",
        &[
            ("look", &[]),
            ("integrations", &[]),
            ("run", &["look", "integrations"]),
            ("plan", &["run"]),
            ("control", &["run"]),
            ("repair", &["run", "control", "look"]),
            ("state", &["run", "look", "control"]),
        ],
    ),
    (
        "./cli/run",
        &[
            ("intent", &[]),
            ("lock", &["intent"]),
            ("execute", &["intent", "lock"]),
            ("rollback", &["intent", "lock"]),
            ("phase", &["intent", "lock", "execute", "rollback"]),
        ],
    ),
    (
        "engine",
        &[
            ("executor", &[]),
            ("state_sync", &[]),
            ("at_resume", &["executor"]),
            ("rollback", &["executor", "at_resume"]),
            ("doctor", &["executor", "at_resume"]),
            ("clean", &["doctor"]),
            ("prune", &[]),
            ("publish", &[]),
            ("drive", &["executor"]),
            ("placement", &["executor", "state_sync"]),
        ],
    ),
    ("programs", &[("process", &[]), ("forge", &[]), ("cluster", &[])]),
    (
        "view",
        &[
            ("history", &[]),
            ("graph", &["history"]),
            ("answers", &["history"]),
            ("contract", &["history", "answers"]),
            ("status", &["history", "answers", "graph"]),
            ("messages", &["history", "answers", "status"]),
            ("report", &["history", "answers", "status", "graph"]),
        ],
    ),
];

/// Ways to open a file that wait for a named pipe and read a device without end. `regular_file` of `lanewright-files` has
/// one that does not.
const UNGUARDED: &[&[&str]] = &[
    &["fs", "read"],
    &["fs", "read_to_string"],
    &["fs", "copy"],
    &["File", "open"],
    &["File", "create"],
    &["File", "options"],
    &["OpenOptions", "new"],
];

/// Ways to write a file that may leave half of it, that a power cut undoes, or that no write fault reaches. `lanewright-files`
/// has those that do not.
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

/// The rooms of `package`, each list with the path of its module.
fn rooms_of(package: &str) -> impl Iterator<Item = (Vec<&'static str>, Rooms)> {
    let of_package = |(module, rooms): &(&'static str, Rooms)| {
        let mut path = module.split('/');
        (path.next() == Some(package)).then(|| (path.collect(), *rooms))
    };
    ROOMS.iter().filter_map(of_package)
}

/// What a file of `package`, to which `modules` lead, imports and should not.
fn wrong_imports(package: &str, modules: &[&str], source: &str) -> Vec<String> {
    let file = Source::new(modules, false, source);
    let mut paths = Vec::new();
    collect_paths(source.parse().expect("Rust"), &[], &mut paths);
    let mut wrong = Vec::new();
    for (parent, rooms) in rooms_of(package).filter(|(parent, _)| modules.starts_with(parent)) {
        let Some((room, allowed)) = rooms.iter().find(|(room, _)| modules.get(parent.len()) == Some(room)) else {
            continue;
        };
        let is_wrong = |path: &&Vec<String>| {
            let target =
                file.absolute(path).filter(|target| target.iter().zip(&parent).all(|(one, other)| one == other));
            let target = target.as_ref().and_then(|target| target.get(parent.len())).map_or("", String::as_str);
            let is_room = target == "*" || rooms.iter().any(|(known, _)| *known == target);
            is_room && target != *room && !allowed.contains(&target)
        };
        wrong.extend(paths.iter().filter(is_wrong).map(|path| path.join("::")));
    }
    wrong
}

fn names(path: &[String], list: &[&[&str]]) -> bool {
    list.iter().any(|name| path.windows(name.len()).any(|part| part == *name))
}

/// What opens or writes a file in a way that it should not.
fn unguarded(source: &str) -> Vec<String> {
    let mut paths = Vec::new();
    collect_paths(source.parse().expect("Rust"), &[], &mut paths);
    let wrong = paths.iter().filter(|path| names(path, UNGUARDED) || names(path, WRITES));
    wrong.map(|path| path.join("::")).collect()
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

/// A file as the import graph needs it.
struct Source {
    /// The modules that lead to it: `["git", "snapshot", "index"]`.
    module: Vec<String>,
    /// The directory of its modules: that of `a/mod.rs`, of `a.rs` beside `a/`, and of `a/b.rs` is `a`.
    folder: Vec<String>,
    /// The paths in its code, re-exports left out.
    paths: Vec<Vec<String>>,
    /// The names that it re-exports, with their paths.
    exports: Vec<(String, Vec<String>)>,
}

impl Source {
    fn new(module: &[&str], is_parent: bool, source: &str) -> Self {
        let module: Vec<String> = module.iter().map(|name| (*name).to_owned()).collect();
        let folder = module[..module.len() - usize::from(!is_parent)].to_vec();
        let (mut code, mut exports) = (TokenStream::new(), TokenStream::new());
        let tokens: Vec<TokenTree> = source.parse::<TokenStream>().expect("Rust").into_iter().collect();
        let is_end = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';');
        for statement in tokens.split_inclusive(is_end) {
            let is = |at: usize, word: &str| statement.get(at).is_some_and(|token| token.to_string() == word);
            let is_export = is(0, "pub") && (is(1, "use") || is(2, "use"));
            if is_export { &mut exports } else { &mut code }.extend(statement.iter().cloned());
        }
        let (mut paths, mut exported) = (Vec::new(), Vec::new());
        collect_paths(code, &[], &mut paths);
        collect_paths(exports, &[], &mut exported);
        exported.retain(|path| path.len() > 1);
        let exports = exported.into_iter().map(|path| (path[path.len() - 1].clone(), path)).collect();
        Self { module, folder, paths, exports }
    }

    /// `path` from the crate's root, if it may lead to another file.
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let supers = path.iter().take_while(|segment| *segment == "super").count();
        match path[0].as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([&self.module, &path[1..]].concat()),
            _ if path.len() == 1 || supers > self.module.len() => None,
            _ => Some([&self.module[..self.module.len() - supers], &path[supers..]].concat()),
        }
    }

    /// The file in `sources` where what `path` names is defined.
    fn target(&self, path: &[String], sources: &[Source]) -> Option<usize> {
        let path = self.absolute(path)?;
        let starts = |source: &Source| path.starts_with(&source.module);
        let (at, file) =
            sources.iter().enumerate().filter(|(_, file)| starts(file)).max_by_key(|(_, file)| file.module.len())?;
        let export = path.get(file.module.len()).and_then(|name| file.exports.iter().find(|(known, _)| known == name));
        export.map_or(Some(at), |(_, path)| file.target(path, sources))
    }
}

/// The groups of files that import each other in a circle and are spread over folders or more than five.
fn import_cycles(sources: &[Source]) -> Vec<String> {
    let imports: Vec<Vec<usize>> = sources
        .iter()
        .map(|source| source.paths.iter().filter_map(|path| source.target(path, sources)).collect())
        .collect();
    let reached: Vec<HashSet<usize>> = (0..sources.len())
        .map(|start| {
            let (mut seen, mut next) = (HashSet::new(), vec![start]);
            while let Some(at) = next.pop() {
                next.extend(imports[at].iter().filter(|file| seen.insert(**file)));
            }
            seen
        })
        .collect();
    let tied = |a: usize, b: usize| a == b || (reached[a].contains(&b) && reached[b].contains(&a));
    let circles: BTreeSet<Vec<usize>> =
        (0..sources.len()).map(|at| (0..sources.len()).filter(|other| tied(at, *other)).collect()).collect();
    let is_wrong = |circle: &&Vec<usize>| {
        circle.len() > 5 || circle.iter().any(|file| sources[*file].folder != sources[circle[0]].folder)
    };
    let name = |file: &usize| sources[*file].module.join("::");
    let imports_within = |circle: &Vec<usize>| -> Vec<String> {
        let import = |from: &usize| -> Vec<String> {
            let to: BTreeSet<usize> =
                imports[*from].iter().copied().filter(|to| to != from && circle.contains(to)).collect();
            to.iter().map(|to| format!("{} -> {}", name(from), name(to))).collect()
        };
        circle.iter().flat_map(import).collect()
    };
    circles.iter().filter(is_wrong).map(|circle| imports_within(circle).join("\n")).collect()
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

/// A package's name and its source files, without those of tests.
type Package = (String, Vec<(PathBuf, Vec<String>)>);

/// The root package, as `.`, and every crate.
fn packages() -> Vec<Package> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = fs::read_dir(root.join("crates")).expect("the crates").map(|entry| entry.expect("an entry").path());
    let named = crates.filter(|path| path.is_dir()).map(|path| (path.file_name().map(OsStr::to_owned), path));
    let directories = [(Some(".".into()), root.to_owned())].into_iter().chain(named);
    let sources = |(name, directory): (Option<OsString>, PathBuf)| {
        let mut files = files(&directory.join("src"), &[]);
        files.retain(|(_, modules)| !["lib", "main"].contains(&modules[0].as_str()) && !is_of_tests(modules));
        (name.expect("a name").into_string().expect("UTF-8"), files)
    };
    directories.map(sources).collect()
}

/// What `wrong` finds in the files of the packages, by file.
fn found(wrong: impl Fn(&str, &[String], &str) -> Vec<String>) -> Vec<String> {
    let mut all = Vec::new();
    for (package, files) in packages() {
        for (path, modules) in files {
            let source = fs::read_to_string(&path).expect("UTF-8");
            let found = wrong(&package, &modules, without_tests(&source));
            all.extend(found.into_iter().map(|named| format!("{}: `{named}`", path.display())));
        }
    }
    all
}

#[test]
fn file_access_uses_only_designated_functions() {
    let broken = found(|package, _, source| if package == "files" { Vec::new() } else { unguarded(source) });
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    let planted = [
        "fn f() { let _ = std::fs::read(\"x\"); }",
        "use std::fs; fn f() { let _ = fs::read_to_string(\"x\"); }",
        "fn f() { let _ = File::options().append(true); }",
        "use std::fs::{OpenOptions}; fn f() { let _ = OpenOptions::new(); }",
        "fn f() { let _ = std::fs::rename(\"x\", \"y\"); }",
        "use std::fs; fn f() { let _ = fs::write(\"x\", \"y\"); }",
        "use tempfile::{NamedTempFile};",
        "use std::fs::{File, hard_link};",
        "fn f(file: &std::fs::File) { let _ = file.sync_all(); }",
        "use rustix::fs::renameat_with as r;",
    ];
    for source in planted {
        assert_eq!(unguarded(source).len(), 1, "{source}");
    }
    assert_eq!(unguarded("use std::{fs, io::Write}; use lanewright_files::{atomic, directory};"), [""; 0]);
}

#[test]
fn folders_import_only_what_they_may() {
    let broken = found(|package, modules, source| {
        let modules: Vec<&str> = modules.iter().map(String::as_str).collect();
        wrong_imports(package, &modules, source)
    });
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    let planted: [(&str, &[&str], &str); 7] = [
        ("engine", &["executor", "merge"], "use crate::{at_resume::check, executor::clock};"),
        ("engine", &["at_resume", "external_changes"], "fn f() { let _ = crate::placement::collect; }"),
        ("engine", &["state_sync", "push"], "use super::super::executor::Executor;"),
        (".", &["progress", "live"], "use crate::*;"),
        (".", &["progress", "live"], "macro_rules! m { () => { $crate::cli::Context } }"),
        (".", &["cli", "run", "intent", "request"], "use super::super::lock::locks::lock_run;"),
        (".", &["cli", "run", "execute", "start"], "use crate::cli::run::{intent::request, phase::phases};"),
    ];
    for (package, modules, source) in planted {
        assert_eq!(wrong_imports(package, modules, source).len(), 1, "{package} {modules:?}: {source}");
    }
    let harmless =
        "use crate::executor::clock; use super::at_resume; // crate::placement\nconst S: &str = \"crate::doctor\";";
    assert_eq!(wrong_imports("engine", &["placement", "collect"], harmless), [""; 0]);
    for (package, files) in packages() {
        for (parent, rooms) in rooms_of(&package) {
            let is_there = |room: &str| {
                let path: Vec<&str> = parent.iter().copied().chain([room]).collect();
                files.iter().any(|(_, modules)| {
                    path.iter().zip(modules).filter(|(one, other)| one == other).count() == path.len()
                })
            };
            assert!(rooms.iter().all(|(room, _)| is_there(room)), "{package} {parent:?}: rooms are missing");
        }
    }
}

#[test]
fn folders_do_not_import_in_circles() {
    for (_, files) in packages() {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, modules)| {
                let modules: Vec<&str> = modules.iter().map(String::as_str).collect();
                let is_parent = path.ends_with("mod.rs") || path.with_extension("").is_dir();
                Source::new(&modules, is_parent, without_tests(&fs::read_to_string(path).expect("UTF-8")))
            })
            .collect();
        let cycles = import_cycles(&sources);
        assert!(cycles.is_empty(), "{} cycles:\n\n{}", cycles.len(), cycles.join("\n\n"));
    }
}

#[test]
fn planted_cycles_are_found() {
    type File<'a> = (&'a [&'a str], bool, &'a str);
    let cycles = |files: &[File<'_>]| {
        let sources: Vec<Source> =
            files.iter().map(|(module, parent, source)| Source::new(module, *parent, source)).collect();
        import_cycles(&sources)
    };
    let facade: File<'_> = (&["git"], true, "mod repo; pub(crate) use repo::Repository; pub struct GitError;");
    let repo: File<'_> = (&["git", "repo"], false, "use super::snapshot::save::save; pub struct Repository;");
    let save = |source| -> File<'_> { (&["git", "snapshot", "save"], false, source) };
    let expected = "git::repo -> git::snapshot::save\ngit::snapshot::save -> git::repo";
    assert_eq!(cycles(&[facade, repo, save("use crate::git::Repository;")]), [expected], "by a re-export");
    assert_eq!(cycles(&[facade, repo, save("use super::super::GitError;")]), [""; 0], "the parent only re-exports");
    let calls: File<'_> = (&["git"], true, "mod repo; fn f() { repo::open() }");
    assert_eq!(cycles(&[calls, (&["git", "repo"], true, "use super::GitError;")]).len(), 1, "a folder and its parent");

    let ring = |count: usize| {
        let names = ["a", "b", "c", "d", "e", "f"];
        let modules: Vec<[&str; 2]> = (0..count).map(|at| ["git", names[at]]).collect();
        let code: Vec<String> = (0..count).map(|at| format!("use super::{}::x;", names[(at + 1) % count])).collect();
        let files: Vec<File<'_>> =
            modules.iter().zip(&code).map(|(module, code)| (&module[..], false, &code[..])).collect();
        cycles(&files).len()
    };
    assert_eq!((ring(5), ring(6)), (0, 1), "five files of a folder may");
}

/// `cargo test` sees nothing of code that only release builds have, nor of what is private to them.
#[test]
fn release_builds_have_no_code_of_their_own() {
    let broken = found(|_, _, source| {
        let is_split = source.contains("cfg(debug_assertions)") || source.contains("cfg(not(debug_assertions))");
        Vec::from_iter(is_split.then(|| "debug_assertions; write `if cfg!(debug_assertions)`".to_owned()))
    });
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
