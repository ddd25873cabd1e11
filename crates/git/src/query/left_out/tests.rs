use lanewright_model::ownership::Ownership;

use super::*;

fn rules(take: &[&str], max_file_size: u64) -> LeftOutRules {
    let take = (!take.is_empty()).then(|| Ownership::new(take).unwrap());
    LeftOutRules { take, max_file_size: Some(max_file_size), ..LeftOutRules::default() }
}

/// What is left out of `new` files, each with its text, beside `tracked` ones.
fn left_out(rules: &LeftOutRules, new: &[(&str, &str)], tracked: &[&str]) -> Vec<String> {
    let worktree = tempfile::tempdir().unwrap();
    for (path, text) in new {
        let place = worktree.path().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }
    let new: Vec<&[u8]> = new.iter().map(|(path, _)| path.as_bytes()).collect();
    let tracked = tracked.iter().map(|path| path.as_bytes()).collect();
    let as_on_disk = |files: &[(&[u8], u64)]| Ok(files.iter().map(|(_, size)| *size).collect());
    let left_out = rules.sort_out(worktree.path(), &new, &tracked, as_on_disk).unwrap();
    assert!(left_out.is_empty() || rules.may_concern(worktree.path(), new.into_iter()), "{left_out:?}");
    left_out.iter().map(LeftOut::to_string).collect()
}

#[test]
fn trees_that_programs_make_are_left_out_as_one() {
    let new = [
        ("app/node_modules/p/i.js", ""),
        ("app/node_modules/p/node_modules/q/i.js", ""),
        ("app/a.js", ""),
        ("__pycache__/a.pyc", ""),
        (".venv/pyvenv.cfg", ""),
        (".venv/lib/x.py", ""),
        (".claude/checkpoints/z", ""),
        (".claude/commands/z.md", ""),
        ("out/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n# by a tool"),
        ("out/x", ""),
        ("doc/CACHEDIR.TAG", "a page about it"),
        ("my_node_modules/x", ""),
    ];
    let expected = [
        ".claude/checkpoints/ (1 file)",
        ".venv/ (2 files)",
        "__pycache__/ (1 file)",
        "app/node_modules/ (2 files)",
        "out/ (2 files)",
    ];
    let mut others = new.to_vec();
    let found = left_out(&LeftOutRules::default(), &others, &[]);
    assert_eq!(found, expected);
    others.retain(|(path, _)| path.starts_with("my_") || path.ends_with(".md") || *path == "app/a.js");
    assert_eq!(left_out(&LeftOutRules::default(), &others, &[]), [""; 0]);
}

#[test]
fn tree_with_a_tracked_file_is_taken() {
    let new = [("node_modules/new/node_modules/x", ""), ("out/pyvenv.cfg", ""), ("out/__pycache__/x", "")];
    let found = left_out(&LeftOutRules::default(), &new, &["node_modules/old/x", "out/y"]);
    assert_eq!(found, ["out/__pycache__/ (1 file)"]);
    assert_eq!(left_out(&LeftOutRules::default(), &[("a/node_modules/x", "")], &["a/node_modules2/x"]).len(), 1);
}

#[test]
fn link_to_work_is_taken_and_one_to_a_tree_is_not() {
    let worktree = tempfile::tempdir().unwrap();
    fs::create_dir_all(worktree.path().join("vendor")).unwrap();
    let place = worktree.path().join("vendor/node_modules");
    for (target, is_left_out) in
        [("deps", false), ("../lib/./x", false), ("../node_modules", true), ("../../x", true), ("/x", true)]
    {
        std::os::unix::fs::symlink(target, &place).unwrap();
        assert_eq!(is_link_to_tree(worktree.path(), b"vendor/node_modules"), is_left_out, "{target}");
        fs::remove_file(&place).unwrap();
    }
}

#[test]
fn virtual_environment_is_never_the_whole_worktree() {
    assert_eq!(marked_tree(Path::new("/nowhere"), b"pyvenv.cfg"), None);
    assert_eq!(marked_tree(Path::new("/nowhere"), b"a/pyvenv.cfg"), Some(&b"a/"[..]));
}

#[test]
fn files_of_editors_and_desktops_are_left_out() {
    for path in ["src/.#f1", "src/.f1.swp", "a.rs~", "#a.rs#", "x/.DS_Store", "Thumbs.db", "desktop.ini"] {
        assert!(is_of_editor(path.as_bytes()), "{path}");
    }
    for path in ["a.swp", "~", "#", "##", ".swap", "a~b", "x.#y", "DS_Store", ".#dir/a", ".a.sw1"] {
        assert!(!is_of_editor(path.as_bytes()), "{path}");
    }
    assert_eq!(left_out(&LeftOutRules::default(), &[("a~", ""), ("b", "")], &[]), ["a~"]);
}

#[test]
fn files_above_the_limit_are_left_out() {
    let new = [("a.bin", "12345678"), ("b.bin", "1234567")];
    assert_eq!(left_out(&rules(&[], 7), &new, &[]), ["a.bin (1 kB)"]);
    assert_eq!(left_out(&rules(&[], 8), &new, &[]), [""; 0]);
}

#[test]
fn what_take_matches_is_taken() {
    let new = [("node_modules/p/i.js", ""), ("node_modules/q/i.js", ""), ("a~", ""), ("data/a.bin", "12345678")];
    assert_eq!(left_out(&rules(&["node_modules/p", "*~", "data/*.bin"], 7), &new, &[]), ["node_modules/ (1 file)"]);
}

#[test]
fn new_paths_are_those_that_the_index_did_not_have() {
    let entries = |paths: &[&str]| -> Vec<IndexEntry> {
        let entry = |path: &&str| IndexEntry {
            path: path.as_bytes().to_vec(),
            object: None,
            mode: 0o100_644,
            conflicts: false,
            assumed: false,
            skipped: false,
            size: None,
        };
        paths.iter().map(entry).collect()
    };
    let new = |before: &[&str], after: &[&str]| -> Vec<String> {
        new_paths(&entries(before), &entries(after)).into_iter().map(path_text).collect()
    };
    assert_eq!(new(&["a", "c", "e"], &["a", "b", "c", "d", "f"]), ["b", "d", "f"]);
    assert_eq!(new(&["a"], &["a"]), [""; 0]);
    assert_eq!(new(&[], &["a"]), ["a"]);
}
