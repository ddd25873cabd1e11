//! Plain commits held against those of the git program.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use super::super::plain_files::LARGE;
use super::super::program::Git;
use super::super::status::survey;
use super::*;

/// A repository with files of all kinds, and another one just like it.
struct Twins {
    ours: PathBuf,
    theirs: PathBuf,
    _directory: tempfile::TempDir,
}

fn git(place: &Path, arguments: &[&str]) -> String {
    let answer = Git::new(place).args(arguments).run().unwrap();
    String::from_utf8_lossy(&answer).trim_end().to_owned()
}

fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn run(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Both after a first commit and `change`.
fn twins(change: impl Fn(&Path)) -> Twins {
    let directory = tempfile::tempdir().unwrap();
    let [ours, theirs] = ["ours", "theirs"].map(|name| {
        let place = directory.path().canonicalize().unwrap().join(name);
        fs::create_dir(&place).unwrap();
        git(&place, &["init", "--quiet", "--initial-branch=main"]);
        git(&place, &["config", "user.name", "someone"]);
        git(&place, &["config", "user.email", "someone@example.invalid"]);
        for name in ["kept", "changed", "script", "gone", "deep/er/file", "deep/other", "file", "directory/inner"] {
            write(&place.join(name), format!("{name}\n"));
        }
        symlink("kept", place.join("link")).unwrap();
        git(&place, &["add", "--all"]);
        git(&place, &["commit", "--quiet", "--message=first"]);
        change(&place);
        place
    });
    Twins { ours, theirs, _directory: directory }
}

const TRAILERS: &[(&str, &str)] = &[("Run", "r1"), ("Task", "a\nb")];
const MESSAGE: &str = "A: work  \n\n\n\nand more \u{fc}";

fn commit(place: &Path, nobody_else: bool) -> Option<Head> {
    let repository = Repository::locate(place).unwrap();
    let looked = SystemTime::now();
    let found = survey(place).unwrap();
    let (head, since) = (found.head.clone().unwrap(), found.head.unwrap().commit);
    let request = CommitRequest { worktree: place, message: MESSAGE, trailers: TRAILERS, since: &since, nobody_else };
    let done =
        (!found.staged).then(|| commit_plainly(&repository, &request, &head, &found.differing, looked)).flatten();
    assert_eq!(done.as_ref().unwrap_or(&head).commit.as_str(), git(place, &["rev-parse", "HEAD"]));
    done
}

#[test]
fn a_plain_commit_is_the_one_that_git_would_make() {
    let changes: &[fn(&Path)] = &[
        |place| write(&place.join("new/in/depth"), ""),
        |place| {
            write(&place.join("changed"), "mixed\r\nline\nends\r");
            run(&place.join("script"), 0o755);
            run(&place.join("kept"), 0o611);
            fs::remove_file(place.join("gone")).unwrap();
            fs::remove_dir_all(place.join("deep/er")).unwrap();
            write(&place.join(".gitignore"), "*.log\n");
            write(&place.join("x.log"), "ignored");
            write(&place.join(".github/workflows/ci.yml"), "on: push\n");
            write(&place.join("binary"), [0, 255, 13, 10, 0]);
            ["-dash", "new\nline", "with space", "\"quoted\"", "*", "[a]", "tab\t", "$HOME", "~"]
                .iter()
                .for_each(|name| write(&place.join(name), name));
            write(&place.join(OsStr::from_bytes(b"latin-\xfc")), "no UTF-8");
        },
        |place| {
            fs::remove_file(place.join("link")).unwrap();
            write(&place.join("link"), "a file now");
            fs::remove_file(place.join("changed")).unwrap();
            symlink("no/where", place.join("changed")).unwrap();
            symlink("../kept", place.join("deep/link")).unwrap();
        },
    ];
    for change in changes {
        let twins = twins(change);
        assert!(commit(&twins.ours, true).is_some());
        git(&twins.theirs, &["add", "--all"]);
        let text = message(MESSAGE, TRAILERS);
        git(&twins.theirs, &["commit", "--quiet", "--cleanup=whitespace", "--message", &text]);
        for question in [
            &["rev-parse", "HEAD^{tree}"][..],
            &["show", "--no-patch", "--format=%B|%an|%ae|%cn|%ce|%e|%P|%D", "HEAD"],
            &["ls-files", "--stage", "-z"],
            &["log", "--walk-reflogs", "--format=%gs", "HEAD"],
            &["log", "--walk-reflogs", "--format=%gs", "main"],
        ] {
            let [ours, theirs] = [&twins.ours, &twins.theirs].map(|place| git(place, question));
            let of_parent = |text: String, place| text.replace(&git(place, &["rev-parse", "HEAD^"]), "PARENT");
            assert_eq!(of_parent(ours, &twins.ours), of_parent(theirs, &twins.theirs), "{question:?}");
        }
        // The plumbing command takes every file whose times are not the index's for changed. `kept` got another mode after
        // it was added, perhaps in another second, and git has nothing to add there.
        assert_eq!(git(&twins.ours, &["diff-files", "--", ":(exclude)kept"]), "");
        assert_eq!(git(&twins.ours, &["status", "--porcelain"]), "");
        git(&twins.ours, &["fsck", "--strict", "--no-dangling"]);
    }
}

#[test]
fn what_git_may_do_otherwise_is_left_to_it() {
    type Change = Box<dyn Fn(&Path)>;
    let configured = |name: &'static str, value: &'static str| -> Change {
        Box::new(move |place| drop(git(place, &["config", name, value])))
    };
    let written = |name: &'static str| -> Change { Box::new(move |place| write(&place.join(name), "x")) };
    let cases: Vec<(&str, Change)> = vec![
        ("attributes at the root", written(".gitattributes")),
        ("attributes on the way", written("deep/.gitattributes")),
        ("attributes of the repository", written(".git/info/attributes")),
        ("attributes of the user", configured("core.attributesFile", "/nowhere")),
        ("attributes of a tree", configured("attr.tree", "HEAD")),
        ("line ends on the way in", configured("core.autocrlf", "input")),
        ("line ends", configured("core.autocrlf", "true")),
        ("modes", configured("core.fileMode", "false")),
        ("links", configured("core.symlinks", "false")),
        ("cases", configured("core.ignoreCase", "true")),
        ("a sparse selection", configured("core.sparseCheckout", "true")),
        ("times", configured("core.ignoreStat", "true")),
        ("settings for a worktree alone", configured("extensions.worktreeConfig", "true")),
        ("names that libgit2 does not know", configured("author.name", "somebody else")),
        ("a name that leads to git's own directory", written("git~1")),
        ("a list of submodules", written(".gitmodules")),
        ("a name with a backslash", written("a\\b")),
        ("a large file", Box::new(|place| write(&place.join("large"), vec![0; LARGE as usize + 1]))),
        ("many files", Box::new(|place| (0..=FEW).for_each(|at| write(&place.join(format!("{at}")), "x")))),
        ("a file of which git knows that it will be added", {
            Box::new(|place| {
                write(&place.join("planned"), "x");
                git(place, &["add", "--intent-to-add", "planned"]);
            })
        }),
        ("a detached head", Box::new(|place| drop(git(place, &["checkout", "--quiet", "--detach"])))),
        ("a file as a directory", {
            Box::new(|place| {
                fs::remove_file(place.join("file")).unwrap();
                write(&place.join("file/inside"), "x");
            })
        }),
        ("a directory as a file", {
            Box::new(|place| {
                fs::remove_dir_all(place.join("directory")).unwrap();
                write(&place.join("directory"), "x");
            })
        }),
        ("a link as a directory", {
            Box::new(|place| {
                fs::rename(place.join("directory"), place.join("elsewhere")).unwrap();
                symlink("elsewhere", place.join("directory")).unwrap();
            })
        }),
        ("a locked index", written(".git/index.lock")),
    ];
    for (name, change) in cases {
        let twins = twins(|place| {
            write(&place.join("deep/er/file"), "changed");
            change(place);
        });
        assert_eq!(commit(&twins.ours, true), None, "{name}");
    }
    let usual = twins(|place| write(&place.join("deep/er/file"), "changed"));
    assert_eq!(commit(&usual.ours, false), None, "others may be at work");
    assert!(commit(&usual.ours, true).is_some());
}

#[test]
fn attributes_that_are_nowhere_but_in_the_head_count() {
    let twins = twins(|place| {
        write(&place.join("deep/.gitattributes"), "* text\n");
        git(place, &["add", "--all"]);
        git(place, &["commit", "--quiet", "--message=attributes"]);
        fs::remove_file(place.join("deep/.gitattributes")).unwrap();
        git(place, &["update-index", "--assume-unchanged", "deep/.gitattributes"]);
        write(&place.join("deep/er/file"), "changed\r\n");
    });
    assert_eq!(commit(&twins.ours, true), None);
}
