//! Ways out of a worktree, tried without a wall and behind each that this machine builds, as this user and as a plain one.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::thread;

use super::*;
use crate::process::LiveProcess;

/// A way out: its name, what is run in the worktree, and what then succeeds outside where it led out.
struct Way(&'static str, &'static str, &'static str);

/// `$W` is a directory with a checkout `main` and its worktrees `slot1` (where the line runs) and `slot2`, a home, a state
/// directory, and a file `evidence-…` for each daemon that did something.
const WAYS: &[Way] = &[
    Way("change a file of the checkout", "echo x >$W/main/f1", "grep -q x $W/main/f1"),
    Way("make a file in the checkout", "echo x >$W/main/new", "test -e $W/main/new"),
    Way("truncate a file of the checkout", "truncate -s 0 $W/main/f2", "! test -s $W/main/f2"),
    Way("delete a file of the checkout", "rm -f $W/main/f3", "! test -e $W/main/f3"),
    Way("move a file out of the checkout", "mv $W/main/f4 moved", "! test -e $W/main/f4"),
    Way("make a directory in the checkout", "mkdir $W/main/d", "test -d $W/main/d"),
    Way("make a link in the checkout", "ln -s /etc $W/main/l", "test -L $W/main/l"),
    Way("write through a hard link", "ln $W/main/f5 hard && echo x >>hard", "grep -q x $W/main/f5"),
    Way("change permissions", "chmod 700 $W/main/f6", "test $(stat -c %a $W/main/f6) = 700"),
    Way("change times", "touch -d @1 $W/main/f7", "test $(stat -c %Y $W/main/f7) = 1"),
    Way("set a setting of the repository", "git -C $W/main config alias.x y", "grep -q alias $W/main/.git/config"),
    Way("set a hook", "echo x >$W/main/.git/hooks/pre-commit", "test -e $W/main/.git/hooks/pre-commit"),
    Way("change what is ignored", "echo x >>$W/main/.git/info/exclude", "grep -qx x $W/main/.git/info/exclude"),
    Way("switch the checkout", "git -C $W/main checkout -q --detach", "! git -C $W/main symbolic-ref -q HEAD"),
    Way(
        "move another branch",
        "git update-ref refs/heads/other HEAD~",
        "test $(git -C $W/main rev-parse other) = $(git -C $W/main rev-parse slot1~)",
    ),
    Way("delete objects", "rm -f $P", "! test -e $P"),
    Way("write to another worktree", "echo x >$W/slot2/x", "test -e $W/slot2/x"),
    Way(
        "lead another worktree elsewhere",
        "echo x >$W/main/.git/worktrees/slot2/commondir",
        "grep -qx x $W/main/.git/worktrees/slot2/commondir",
    ),
    Way(
        "lead the own worktree elsewhere",
        "echo x >$W/main/.git/worktrees/slot1/commondir",
        "grep -qx x $W/main/.git/worktrees/slot1/commondir",
    ),
    Way("forge an exit", "echo x >$W/state/exit.json", "grep -q x $W/state/exit.json"),
    Way("change the shell's profile", "echo x >>$W/home/.bashrc", "grep -qx x $W/home/.bashrc"),
    Way("change git's settings", "cd / && HOME=$W/home git config --global a.b c", "test -e $W/home/.gitconfig"),
    Way("let in by ssh", "echo x >>$W/home/.ssh/authorized_keys", "test -e $W/home/.ssh/authorized_keys"),
    Way("read a key", "cp $W/home/.ssh/id_rsa key", "grep -q secret $W/slot1/key"),
    Way("use a directory for temporary files that others use", "echo x >/tmp/$N", "rm /tmp/$N"),
    Way("read variables of a process", "cat /proc/$V/environ >environ", "grep -q CANARY $W/slot1/environ"),
    Way("change a process", "echo 500 >/proc/$V/oom_score_adj", "grep -q 500 /proc/$V/oom_score_adj"),
    Way(
        "mount in a namespace",
        "unshare -Urm sh -c 'mount -o remount,bind,rw /; echo x >$W/main/m' || echo x >$W/main/m",
        "test -e $W/main/m",
    ),
    Way(
        "ask a daemon by a socket",
        "perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(\"$ENV{W}/sockets/daemon\"); $s->print(1); $s->shutdown(1); <$s>'",
        "test -e $W/evidence-socket",
    ),
    Way(
        "ask a daemon by an abstract socket",
        "perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(\"\\0$ENV{W}\"); $s->print(1); $s->shutdown(1); <$s>'",
        "test -e $W/evidence-abstract",
    ),
    Way(
        "ask a daemon by TCP",
        "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(\"127.0.0.1:$ENV{T}\"); $s->print(1); $s->shutdown(1); <$s>'",
        "test -e $W/evidence-tcp",
    ),
    Way("hold a lock", "flock -n $W/main/f8 true && echo x >held", "test -e $W/slot1/held"),
    Way("end a process", "kill -9 $V", "! kill -0 $V || grep -q Z /proc/$V/stat"),
];

/// The ways that need perl, which some systems lack.
const BY_PERL: &str = "perl ";

/// What git writes in the worktree where the ways are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Git {
    /// The repository's own directory.
    Shared,
    /// One that is the worktree's alone, as agents have, with the objects of the repository to read.
    Private,
}

/// Where the ways are tried.
struct World {
    directory: tempfile::TempDir,
    git: Git,
    victim: Child,
    port: u16,
    object: PathBuf,
}

impl World {
    fn new(git: Git) -> Self {
        let directory = tempfile::Builder::new().prefix("walls").tempdir().unwrap();
        let w = directory.path().canonicalize().unwrap();
        let line = "set -e; cd $W; mkdir -p home/.ssh state sockets; echo secret >home/.ssh/id_rsa; echo >home/.bashrc
            git init -q -b main main; cd main
            git config user.name N; git config user.email e@x; git config gc.auto 0
            for i in 1 2 3 4 5 6 7 8; do echo $i >f$i; done
            git add .; git commit -q -m one; git commit -q --allow-empty -m two; git branch other
            git worktree add -q ../slot1 -b slot1; git worktree add -q ../slot2 -b slot2
            git rev-parse main^{tree} >../tree
            test $PRIVATE = false && exit
            git clone -q --bare --shared . .git/private; cd .git/private
            git config include.path ../config; git config core.bare false; git symbolic-ref HEAD refs/heads/slot1; cp ../worktrees/slot1/index .
            echo gitdir: $(pwd) >$W/slot1/.git";
        let line = line.replace("$PRIVATE", if git == Git::Private { "true" } else { "false" });
        let made = shell(&line).env("W", &w).env("HOME", w.join("home")).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let tree = fs::read_to_string(w.join("tree")).unwrap();
        let (first, rest) = tree.trim().split_at(2);
        let object = w.join("main/.git/objects").join(first).join(rest);
        let listener = UnixListener::bind(w.join("sockets/daemon")).unwrap();
        let name = SocketAddr::from_abstract_name(w.as_os_str().as_encoded_bytes()).unwrap();
        let (abstract_listener, tcp) =
            (UnixListener::bind_addr(&name).unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let port = tcp.local_addr().unwrap().port();
        let [socket, by_abstract, by_tcp] =
            ["socket", "abstract", "tcp"].map(|name| w.join(format!("evidence-{name}")));
        thread::spawn(move || listener.incoming().flatten().for_each(|stream| serve(stream, &socket)));
        thread::spawn(move || abstract_listener.incoming().flatten().for_each(|stream| serve(stream, &by_abstract)));
        thread::spawn(move || tcp.incoming().flatten().for_each(|stream| serve(stream, &by_tcp)));
        let victim = Command::new("sleep").arg("1000").env("CANARY", "1").spawn().unwrap();
        Self { directory, git, victim, port, object }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn wall(&self, builder: &WallBuilder) -> Wall {
        let (written, fixed): (&[&str], &[&str]) = match self.git {
            Git::Shared => (
                &["slot1", "main/.git/objects", "main/.git/refs", "main/.git/logs", "main/.git/worktrees/slot1"],
                &["main/.git/worktrees/slot1/commondir", "slot1/.git"],
            ),
            Git::Private => (&["slot1", "main/.git/private"], &["slot1/.git"]),
        };
        let paths = |names: &[&str]| names.iter().map(|name| self.path(name)).collect();
        Wall {
            builder: builder.clone(),
            writable: paths(written),
            fixed: paths(fixed),
            hidden: vec![self.path("home/.ssh")],
            network: true,
        }
    }

    fn set_environment(&self, command: &mut Command) {
        let w = self.directory.path().canonicalize().unwrap();
        command.env("W", &w).env("N", w.file_name().unwrap()).env("V", self.victim.id().to_string());
        command.env("T", self.port.to_string()).env("P", &self.object).env("HOME", w.join("home"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    }

    /// The ways that lead out behind the wall of `builder`, or without one.
    fn ways_out(&self, builder: Option<&WallBuilder>) -> Vec<&'static str> {
        let built = builder.map(|builder| (self.wall(builder), Scratch::create().unwrap()));
        let has_perl = shell("perl -MIO::Socket::UNIX -e 1").output().unwrap().status.success();
        let leads_out = |Way(_, line, evidence): &&Way| {
            let wall = built.as_ref().map(|(wall, scratch)| (wall, scratch));
            let child = spawn(wall, &in_shell(line), &self.path("slot1"), |command| self.set_environment(command));
            child.unwrap().wait().unwrap();
            let mut check = shell(evidence);
            self.set_environment(&mut check);
            check.status().unwrap().success()
        };
        let tried = WAYS.iter().filter(|Way(_, line, _)| has_perl || !line.starts_with(BY_PERL));
        tried.filter(leads_out).map(|Way(name, ..)| *name).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

fn in_shell(line: &str) -> [String; 3] {
    ["/bin/sh", "-c", line].map(str::to_owned)
}

fn shell(line: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]);
    command
}

/// Writes the evidence before it answers, so the client has it when it ends.
fn serve(mut stream: impl Read + Write, evidence: &Path) {
    let _ = stream.read(&mut [0]);
    let _ = fs::write(evidence, "x");
    let _ = stream.write_all(b"1");
}

/// The walls that this machine builds, for the user that runs the tests.
fn builders() -> Vec<WallBuilder> {
    let path = std::env::var("PATH").unwrap_or_default();
    let all = bubblewrap::find(&path).ok().map(WallBuilder::Bubblewrap).into_iter().chain([WallBuilder::Landlock]);
    all.filter(|builder| check(builder).map_err(|refusal| skip(&refusal.reason)).is_ok()).collect()
}

/// Shown by `cargo test -- --nocapture`.
#[allow(clippy::print_stderr, reason = "of a test")]
fn skip(reason: &str) {
    eprintln!("note: {reason}");
}

#[test]
fn ways_out_are_counted_for_each_wall() {
    let out = World::new(Git::Shared).ways_out(None);
    assert!(out.len() >= 28, "without a wall {} of {} lead out: {out:?}", out.len(), WAYS.len());
    let not: Vec<&str> = WAYS.iter().map(|way| way.0).filter(|name| !out.contains(name)).collect();
    skip(&format!("without a wall {} of {} lead out, all but {not:?}", out.len(), WAYS.len()));
    // What the kernel's Landlock has no rules for; the numbers are those of decision 73.
    let version = landlock_version().unwrap_or_default();
    let unscoped = usize::from(version < 6);
    for (builder, git) in
        builders().into_iter().flat_map(|builder| [Git::Shared, Git::Private].map(|git| (builder.clone(), git)))
    {
        let of_git = |ways: usize| if git == Git::Shared { ways } else { 0 };
        let limit = match builder {
            WallBuilder::Landlock => 6 + of_git(3) + 2 * unscoped,
            WallBuilder::Bubblewrap(_) => 3 + of_git(2) + unscoped,
        };
        let out = World::new(git).ways_out(Some(&builder));
        skip(&format!("{builder:?}, {git:?}: {} of {} lead out: {out:?}", out.len(), WAYS.len()));
        assert!(out.len() <= limit, "{builder:?}, {git:?}: {} lead out: {out:?}", out.len());
    }
}

/// The same as a user without rights, where the tests run as root.
#[test]
fn ways_out_are_counted_for_a_plain_user() {
    if !rustix::process::geteuid().is_root() {
        return skip("the tests run as a plain user anyway");
    }
    let place = tempfile::Builder::new().prefix("plain").tempdir_in("/tmp").unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // The target directory may lie where other users see nothing.
    let program = place.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut again = Command::new(&program);
    again.args(["--exact", "wall::tests::ways_out_are_counted_for_each_wall", "--nocapture"]);
    let ended = again.uid(65534).gid(65534).current_dir("/").env("TMPDIR", place.path()).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
    skip(&said);
}

#[test]
fn commits_are_made_and_temporary_files_written() {
    for builder in builders() {
        let world = World::new(Git::Private);
        let (wall, scratch) = (world.wall(&builder), Scratch::create().unwrap());
        let line = "echo y >>f1 && git commit -qam three && git branch mine && git tag mine && git stash list \
            && d=$(mktemp -d) && echo x >$d/x && echo x >/dev/null && test \"$(pwd)\" = \"$PWD\" && id";
        let child = spawn(Some((&wall, &scratch)), &in_shell(line), &world.path("slot1"), |command| {
            world.set_environment(command);
            command.env("PWD", world.path("slot1")).stderr(Stdio::piped());
        });
        let ended = child.unwrap().wait_with_output().unwrap();
        assert!(ended.status.success(), "{builder:?}: {}", String::from_utf8_lossy(&ended.stderr));
        let place = scratch.path().to_owned();
        drop(scratch);
        assert!(!place.exists());
    }
}

#[test]
fn networks_are_closed_where_they_are_not_wanted() {
    for builder in builders() {
        let world = World::new(Git::Private);
        let (wall, scratch) = (Wall { network: false, ..world.wall(&builder) }, Scratch::create().unwrap());
        let Way(_, line, _) = WAYS.iter().find(|way| way.1.contains("INET")).unwrap();
        let child = spawn(Some((&wall, &scratch)), &in_shell(line), &world.path("slot1"), |command| {
            world.set_environment(command);
        });
        child.unwrap().wait().unwrap();
        assert!(!world.path("evidence-tcp").exists(), "{builder:?}");
    }
}

#[test]
fn programs_that_do_not_exist_are_not_started() {
    for builder in builders() {
        let (place, scratch) = (tempfile::tempdir().unwrap(), Scratch::create().unwrap());
        let wall = Wall { builder, writable: vec![], fixed: vec![], hidden: vec![], network: true };
        let started = spawn(Some((&wall, &scratch)), &["no-such-program".to_owned()], place.path(), |_| ());
        assert_eq!(started.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

#[test]
fn what_a_killed_process_left_is_removed() {
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let owner = lanewright_model::ProcessId::of(i32::try_from(child.id()).unwrap()).unwrap();
    let place = std::env::temp_dir().join(format!("lanewright-job-{}-{}", owner.pid, owner.started));
    fs::create_dir_all(place.join("sub")).unwrap();
    fs::set_permissions(place.join("sub"), fs::Permissions::from_mode(0o500)).unwrap();
    drop(Scratch::create().unwrap());
    assert!(place.exists(), "its owner lives");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(Scratch::create().unwrap());
    assert!(!place.exists());
}
