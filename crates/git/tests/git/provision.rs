//! What a slot holds is what `git worktree add` would have put there, byte for byte, however the slot was provided.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use lanewright_git::Pool;
use lanewright_model::CommitId;

use crate::support::*;

/// A repository with two commits that are as unlike as can be: what its name says is in the second.
struct Nasty {
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
    make: fn(&Path),
}

const NASTY: &[Nasty] = &[
    Nasty { name: "plain files, modes, links and names", settings: &[], make: names_and_modes },
    Nasty { name: "attributes that change nothing", settings: &[], make: harmless_attributes },
    Nasty { name: "crlf by attribute", settings: &[], make: crlf_by_attribute },
    Nasty { name: "crlf by setting", settings: &[("core.autocrlf", "true")], make: lines },
    Nasty { name: "crlf by eol", settings: &[("core.eol", "crlf")], make: text_attribute },
    Nasty { name: "crlf taken in", settings: &[("core.autocrlf", "input")], make: lines },
    Nasty { name: "keywords and encodings", settings: &[], make: keywords_and_encodings },
    Nasty { name: "attributes beside the repository", settings: &[], make: attributes_outside },
    Nasty { name: "filters", settings: FILTERS, make: filtered },
    Nasty { name: "pointers without a filter", settings: &[], make: filtered },
    Nasty { name: "no modes", settings: &[("core.fileMode", "false")], make: names_and_modes },
    Nasty { name: "no links", settings: &[("core.symlinks", "false")], make: names_and_modes },
    Nasty { name: "a submodule", settings: &[], make: submodule },
    Nasty { name: "a sparse selection", settings: &[], make: sparse },
    Nasty { name: "a split index", settings: &[("core.splitIndex", "true")], make: names_and_modes },
    Nasty { name: "an index of version 4", settings: &[("index.version", "4")], make: names_and_modes },
    Nasty { name: "settings by worktree", settings: &[("extensions.worktreeConfig", "true")], make: lines },
];

const FILTERS: &[(&str, &str)] = &[
    ("filter.lfs.clean", "sed s/^BIG/pointer/"),
    ("filter.lfs.smudge", "sed s/^pointer/BIG/"),
    ("filter.lfs.required", "true"),
    ("filter.turn.clean", "tr A-Za-z N-ZA-Mn-za-m"),
    ("filter.turn.smudge", "tr A-Za-z N-ZA-Mn-za-m"),
];

/// Names are bytes, files have modes, and links lead anywhere.
fn names_and_modes(main: &Path) {
    let odd = [b"caf\xe9".as_slice(), b"new\nline", b"tab\t", b"-dash", b" ", b"\"quoted\"", "ünïcode".as_bytes()];
    for name in odd {
        write(&main.join(OsStr::from_bytes(name)), name);
    }
    for (name, text) in
        [("README", "upper"), ("readme", "lower"), ("empty", ""), ("ignored.log", "tracked all the same")]
    {
        write(&main.join(name), text);
    }
    write(&main.join("big"), vec![b'x'; 3 << 20]);
    write(&main.join("a/b/c/d/e/f/g/h/i/j/k/l/deep"), "deep");
    write(&main.join(".github/workflows/ci.yml"), "on: push\n");
    write(&main.join("run.sh"), "#!/bin/sh\n");
    fs::set_permissions(main.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    for (name, to) in
        [("link", "a.txt"), ("dangling", "/nowhere/at/all"), ("to-directory", "src"), ("a/up", "../run.sh")]
    {
        symlink(to, main.join(name)).unwrap();
    }
    git(main, &["add", "--force", "ignored.log"]);
}

fn harmless_attributes(main: &Path) {
    names_and_modes(main);
    write(
        &main.join(".gitattributes"),
        "* text=auto\n*.sh text eol=lf\n/docs export-ignore\n*.log linguist-generated\n",
    );
    write(&main.join("deeper/.gitattributes"), "*.bin -text -diff\n");
    write(&main.join("deeper/x.bin"), "a\r\nb\n");
}

fn lines(main: &Path) {
    write(&main.join("lines.txt"), "one\ntwo\n");
    write(&main.join("binary"), b"\0one\ntwo\n");
}

fn text_attribute(main: &Path) {
    lines(main);
    write(&main.join(".gitattributes"), "*.txt text\n");
}

fn crlf_by_attribute(main: &Path) {
    lines(main);
    write(&main.join("deeper/lines.txt"), "one\ntwo\n");
    write(&main.join(".gitattributes"), "*.txt text=auto eol=crlf\n");
    write(&main.join("deeper/.gitattributes"), "*.txt -text\n");
}

fn keywords_and_encodings(main: &Path) {
    write(&main.join(".gitattributes"), "*.c ident\n*.utf16 text working-tree-encoding=UTF-16LE-BOM\n");
    write(&main.join("file.c"), "/* $Id$ */\n");
    let text: Vec<u8> = "\u{feff}wide\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    write(&main.join("file.utf16"), text);
}

fn attributes_outside(main: &Path) {
    lines(main);
    write(&main.join("file.c"), "/* $Id$ */\n");
    write(&main.join(".git/info/attributes"), "*.c ident\n*.txt eol=crlf\n");
}

/// Blobs with and without their filters; the filter that turns letters keeps the size of a file.
fn filtered(main: &Path) {
    write(&main.join(".gitattributes"), "*.bin filter=lfs -text\n*.turned filter=turn\n");
    write(&main.join("large.bin"), "BIG content\n");
    write(&main.join("letters.turned"), "letters\n");
    write(&main.join("plain.txt"), "plain\n");
}

fn submodule(main: &Path) {
    let other = main.with_file_name("other");
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "--quiet"]);
    write(&other.join("inner"), "inner\n");
    commit(&other, "inner");
    git(main, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.to_str().unwrap(), "sub"]);
}

fn sparse(main: &Path) {
    write(&main.join("other/file"), "left out\n");
    git(main, &["add", "--all"]);
    git(main, &["sparse-checkout", "set", "src"]);
}

impl Nasty {
    /// The repository, its two commits, and the user's checkout at the second.
    fn build(&self) -> (World, CommitId, CommitId) {
        let world = World::new();
        for (key, value) in self.settings {
            git(&world.main, &["config", key, value]);
        }
        // What becomes a file, a directory or a link later is something else now.
        write(&world.main.join("link/inner"), "a directory before\n");
        write(&world.main.join("a"), "a file before\n");
        symlink("a.txt", world.main.join("run.sh")).unwrap();
        write(&world.main.join("lines.txt"), "other\nlines\n");
        write(&world.main.join(".gitattributes"), "*.txt -text\n*.rs ident\n");
        write(&world.main.join("only-here/file"), "gone later\n");
        let before = commit(&world.main, "before");
        git(&world.main, &["rm", "-rq", "link", "a", "run.sh", "lines.txt", ".gitattributes", "only-here"]);
        (self.make)(&world.main);
        // A sparse selection refuses what is outside of it; there all is staged already.
        git_output(&world.main, &["add", "--all"]);
        git(&world.main, &["commit", "--quiet", "-m", "after"]);
        let after = head(&world.main);
        (world, before, after)
    }
}

/// Compares the slot at `path` with what `git worktree add` makes of `commit`.
fn assert_as_git_makes_it(what: &str, world: &World, path: &Path, commit: &CommitId) {
    let reference = world.main.with_file_name("reference");
    git(&world.main, &["worktree", "add", "--quiet", "--detach", reference.to_str().unwrap(), commit.as_str()]);
    assert_eq!(contents(path), contents(&reference), "{what}");
    assert_eq!(directories(path), directories(&reference), "{what}");
    for question in [
        ["ls-files", "-s", "-z", "--full-name"].as_slice(),
        &["ls-files", "-t", "-v", "-z"],
        &["status", "--porcelain", "--ignored"],
        &["diff", "--raw", commit.as_str()],
        &["diff", "--cached", "--raw", commit.as_str()],
    ] {
        assert_eq!(git_output(path, question).stdout, git_output(&reference, question).stdout, "{what}: {question:?}");
    }
    assert_eq!(git(path, &["diff", commit.as_str()]), "", "{what}");
    assert_known_without_reading(what, path);
    git(&world.main, &["worktree", "remove", "--force", reference.to_str().unwrap()]);
}

/// The directories below `path`: git makes one for a submodule that is not there.
fn directories(path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).unwrap().flatten().filter(|entry| entry.file_type().unwrap().is_dir()) {
        let name = entry.file_name().to_string_lossy().into_owned();
        found.extend(directories(&entry.path()).into_iter().map(|inner| format!("{name}/{inner}")));
        found.push(name);
    }
    found.sort();
    found
}

/// What the index says of every file is what the file system says, so that git need not read it to know it.
fn assert_known_without_reading(what: &str, worktree: &Path) {
    let listing = git_output(worktree, &["ls-files", "-z", "--debug"]).stdout;
    let listing = listing.strip_suffix(b"\n").unwrap_or(&listing);
    let mut rest = listing;
    while let Some(end) = rest.iter().position(|&byte| byte == 0) {
        let (name, after) = (&rest[..end], &rest[end + 1..]);
        let size = after.windows(6).position(|it| it == b"flags:").unwrap();
        let end = size + after[size..].iter().position(|&byte| byte == b'\n').unwrap_or(after.len() - size);
        let said = String::from_utf8_lossy(&after[..end]).into_owned();
        rest = after.get(end + 1..).unwrap_or_default();
        let path = worktree.join(OsStr::from_bytes(name));
        let Ok(file) = fs::symlink_metadata(&path) else { continue };
        if file.is_dir() {
            continue;
        }
        for expected in [
            format!("ctime: {}:{}", file.ctime(), file.ctime_nsec()),
            format!("mtime: {}:{}", file.mtime(), file.mtime_nsec()),
            format!("ino: {}", file.ino() as u32),
            format!("size: {}", file.size()),
        ] {
            assert!(said.contains(&expected), "{what}: {}: {said}, not {expected}", path.display());
        }
    }
}

fn check(nasty: &Nasty) {
    let (world, before, after) = nasty.build();
    let pool = world.pool(9);
    let open = |name: &str, start: &CommitId, how: &str| {
        let slot = pool.open(&holder(name, None), &fresh(&format!("lane/P1/{name}"), start)).unwrap();
        assert_eq!(slot.head, *start);
        assert_eq!(git(&slot.path, &["symbolic-ref", "HEAD"]), format!("refs/heads/lane/P1/{name}"));
        assert_as_git_makes_it(&format!("{}, {how}", nasty.name), &world, &slot.path, start);
        slot
    };
    let close = |pool: &Pool, name: &str, start: &CommitId| {
        pool.release(&holder(name, None), std::slice::from_ref(start)).unwrap();
    };
    let first = open("first", &after, "fresh");
    open("second", &after, "fresh beside another");
    open("third", &before, "fresh at another commit");
    for (name, start, how) in [
        ("back", &before, "taken over for another commit"),
        ("forth", &after, "taken over from another commit"),
        ("same", &after, "taken over for the same commit"),
    ] {
        close(
            &pool,
            if name == "back" {
                "first"
            } else if name == "forth" {
                "back"
            } else {
                "forth"
            },
            if name == "forth" { &before } else { &after },
        );
        for ignored in ["target/cache", "x.log"] {
            write(&first.path.join(ignored), "left");
        }
        assert_eq!(open(name, start, how).slot, first.slot);
    }
    git(&world.main, &["fsck", "--strict"]);
}

pinned_tests! {
    fn slots_equal_worktrees_made_by_git() {
        for nasty in NASTY {
            check(nasty);
        }
    }

    fn open_takes_free_slot_with_fewest_changes() {
        let world = World::new();
        let base = world.head();
        for number in 0..40 {
            write(&world.main.join(format!("more/{number}")), "x\n");
        }
        let far = commit(&world.main, "forty files more");
        let pool = world.pool(2);
        let (near_base, near_far) = (pool.open(&holder("A", None), &detached(&base)), pool.open(&holder("B", None), &detached(&far)));
        let (near_base, near_far) = (near_base.unwrap(), near_far.unwrap());
        for (lane, start, expected) in [("C", &far, &near_far), ("D", &base, &near_base), ("E", &far, &near_far)] {
            for last in ["A", "B", "C", "D"] {
                pool.release(&holder(last, None), &[base.clone(), far.clone()]).unwrap();
            }
            assert_eq!(pool.open(&holder(lane, None), &detached(start)).unwrap().slot, expected.slot, "{lane}");
        }
    }

    fn waiting_open_takes_released_slot() {
        let world = World::new();
        let at = |name: &str| world.main.with_file_name(name);
        let base = world.head();
        let filter = format!("touch {}; while ! test -e {}; do sleep 0.01; done; cat", at("running").display(), at("go").display());
        git(&world.main, &["config", "filter.slow.smudge", &filter]);
        write(&world.main.join(".gitattributes"), "*.slow filter=slow\n");
        write(&world.main.join("x.slow"), "x\n");
        let slow = commit(&world.main, "slow");
        // As many as may create a slot at once.
        let makers = std::thread::available_parallelism().unwrap().get().div_ceil(2);
        let pool = world.pool(99);
        let first = pool.open(&holder("first", None), &detached(&base)).unwrap();
        std::thread::scope(|scope| {
            for number in 0..makers {
                let pool = &pool;
                let slow = &slow;
                scope.spawn(move || pool.open(&holder(&format!("M{number}"), None), &detached(slow)).unwrap());
            }
            wait_until("the makers", || pool.held_by(&run_id("r1")).unwrap().len() == makers + 1 && at("running").exists());
            let waiting = scope.spawn(|| pool.open(&holder("waiting", None), &detached(&base)).unwrap().slot);
            std::thread::sleep(std::time::Duration::from_millis(100));
            pool.release(&holder("first", None), std::slice::from_ref(&base)).unwrap();
            write(&at("go"), "");
            assert_eq!(waiting.join().unwrap(), first.slot);
        });
    }

    fn reuse_keeps_mtimes_of_unchanged_files() {
        let world = World::new();
        let cargo = PathBuf::from(std::env::var_os("CARGO").unwrap());
        let build = |directory: &Path| {
            let mut command = std::process::Command::new(&cargo);
            // Not by way of rustup, which would look for its toolchains in the test's home.
            command.env("RUSTC", cargo.with_file_name("rustc")).env_remove("CARGO_TARGET_DIR");
            let output = command.args(["build", "--offline", "-v"]).current_dir(directory).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{said}");
            said
        };
        write(&world.main.join("Cargo.toml"), "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
        write(&world.main.join("src/lib.rs"), "pub fn one() -> u8 { 1 }\n");
        build(&world.main);
        let base = commit(&world.main, "a crate");
        write(&world.main.join("notes.md"), "nothing that is built\n");
        let noted = commit(&world.main, "notes");
        write(&world.main.join("src/lib.rs"), "pub fn one() -> u8 { 2 }\n");
        let changed = commit(&world.main, "another one");
        let pool = Pool::new(world.repository(), &world.root(), 1, true);
        for (lane, start, expected) in [("A", &base, "Compiling"), ("B", &noted, "Fresh"), ("C", &changed, "Dirty")] {
            let slot = pool.open(&holder(lane, None), &fresh(&format!("lane/P1/{lane}"), start)).unwrap();
            let said = build(&slot.path);
            assert!(said.contains(&format!("{expected} small")), "{lane}: {said}");
            pool.release(&holder(lane, None), std::slice::from_ref(start)).unwrap();
        }
    }

    fn post_checkout_hook_that_hangs_is_ended() {
        let world = World::new();
        let hook = world.main.join(".git/hooks/post-checkout");
        write(&hook, "#!/bin/sh\necho made > made.txt; sleep 1000\n");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        let pool = world.pool(1).ending_hooks_after(std::time::Duration::from_secs(1));
        let slot = pool.open(&holder("A", None), &fresh("lane/P1/A", &world.head())).unwrap();
        assert!(slot.path.join("made.txt").exists());
        let said = pool.hook_failure().unwrap();
        assert!(said.contains("hooks/post-checkout took longer than 1s and was ended"), "{said}");
    }

    fn post_checkout_hook_runs_once_per_slot() {
        let world = World::new();
        let hook = world.main.join(".git/hooks/post-checkout");
        write(&hook, "#!/bin/sh\necho \"$1 $2 $3\" >> \"$(git rev-parse --git-dir)/hooked\"\n");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        let (base, pool) = (world.head(), world.pool(2));
        let said = |slot: &str| fs::read_to_string(world.main.join(".git/worktrees").join(slot).join("hooked")).unwrap();
        pool.open(&holder("A", None), &fresh("lane/P1/A", &base)).unwrap();
        pool.open(&holder("B", None), &fresh("lane/P1/B", &base)).unwrap();
        assert_eq!((said("01").lines().count(), said("02")), (1, format!("{base} {base} 1\n")));
        pool.release(&holder("A", None), std::slice::from_ref(&base)).unwrap();
        write(&world.main.join("a.txt"), "next\n");
        let next = commit(&world.main, "next");
        pool.open(&holder("C", None), &fresh("lane/P1/C", &next)).unwrap();
        assert_eq!(said("01").lines().last(), Some(format!("{base} {next} 1").as_str()));
        // A hook that moves while the pool lives, as tools for hooks do it.
        let elsewhere = world.main.join("hooks/post-checkout");
        write(&elsewhere, "#!/bin/sh\necho elsewhere >> \"$(git rev-parse --git-dir)/hooked\"\n");
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o755)).unwrap();
        git(&world.main, &["config", "core.hooksPath", elsewhere.parent().unwrap().to_str().unwrap()]);
        pool.release(&holder("C", None), std::slice::from_ref(&next)).unwrap();
        pool.open(&holder("D", None), &fresh("lane/P1/D", &next)).unwrap();
        assert_eq!(said("01").lines().last(), Some("elsewhere"));
    }
}
