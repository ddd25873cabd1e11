//! The run that is recorded: a retry, a conflict, an approval, and a rollback.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lanewright_model::event::Event;

use crate::crash::end_state::assert_nothing_began_twice;
use crate::crash::plans::PlanText;
use crate::crash::world::{PLAN, World};
use crate::support::trace::{self, Call};

const APPROVALS: &[(&str, &str)] = &[("gamma", "changes")];

/// Gamma begins before beta is merged, and writes the same file: a conflict.
const PLAN_TEXT: PlanText = PlanText::new(
    r#"
phase = "P1"
max_parallel = 8
[defaults]
command = ["sh", "ROOT/agent.sh"]
timeout = "120s"

[[lane]]
id = "alpha"
tests = ["test -s alpha/1.txt"]
[[lane.agent]]
name = "maker"
[[lane.task]]
id = "1"
prompt = "one"
[[lane.task]]
id = "2"
prompt = "two"

[[lane]]
id = "beta"
agent_worktrees = "on"
[[lane.agent]]
name = "maker"
[[lane.task]]
id = "1"
prompt = "one"

[[lane]]
id = "gamma"
approval = ["changes"]
[[lane.agent]]
name = "maker"
[[lane.task]]
id = "1"
prompt = "one"
"#,
    r#"
write_id() { read -r id </proc/sys/kernel/random/uuid; echo "$LANEWRIGHT_LANE $LANEWRIGHT_TASK $id" >>"$1"; say "wrote $id"; }
mkdir -p "same/$LANEWRIGHT_LANE"
echo "the same in each attempt of $LANEWRIGHT_LANE" >"same/$LANEWRIGHT_LANE/$LANEWRIGHT_TASK.txt"
mkdir -p "$LANEWRIGHT_LANE"
case "$LANEWRIGHT_LANE/$LANEWRIGHT_TASK/$LANEWRIGHT_ATTEMPT" in
alpha/1/1) write_id alpha/1.txt; exit 1 ;;
beta/*) until_true 'grep -q "^begin gamma" ROOT/agents.log'; write_id shared.txt; write_id beta/1.txt ;;
gamma/*) until_true 'git -C ROOT/disk/work cat-file -e main:shared.txt'; write_id shared.txt; write_id gamma/1.txt ;;
*) write_id "$LANEWRIGHT_LANE/$LANEWRIGHT_TASK.txt" ;;
esac
"#,
);

/// The files that have what an agent wrote, each attempt something else.
const WRITTEN: [&str; 5] = ["alpha/1.txt", "alpha/2.txt", "beta/1.txt", "gamma/1.txt", "shared.txt"];
/// Those that have the same whatever happens.
const CONSTANT: [&str; 5] =
    ["readme.txt", "same/alpha/1.txt", "same/alpha/2.txt", "same/beta/1.txt", "same/gamma/1.txt"];

pub(super) struct Scenario {
    pub(super) world: World,
}

impl Scenario {
    pub(super) fn new() -> Self {
        Self { world: World::new(&PLAN_TEXT) }
    }

    /// Runs it to its end, and returns all system calls that can change a disk.
    pub(super) fn record(&self) -> Vec<Call> {
        let script = format!(
            "set -eu\nlanewright() {{ {} \"$@\"; }}\n\
             lanewright execute-phase {PLAN} --run-id r1 || test $? = 3\n\
             lanewright approve r1 gamma --gate changes\n\
             lanewright resume r1 || test $? = 3\n\
             lanewright approve r1 gamma --gate changes\n\
             lanewright resume r1\n\
             lanewright rollback r1 --lane alpha --yes\n\
             lanewright resume r1\n",
            env!("CARGO_BIN_EXE_lanewright"),
        );
        let trace = self.world.path("trace");
        let calls = "/open,creat,/write,/rename,/unlink,/mkdir,rmdir,/link,/sync,/dup,fcntl,/chdir,truncate,ftruncate,\
                     /clone,/fork,lseek,copy_file_range,sendfile,fallocate,/chmod";
        let mut words = trace::prefix(&trace, calls);
        words.extend(["sh", "-c", &script].map(Into::into));
        let ended = self.world.run_program(&words);
        assert_eq!(ended.code, 0, "{ended:?}\n{}", self.world.story());
        self.check_end();
        let calls = trace::read(&trace);
        fs::remove_file(trace).unwrap();
        calls
    }

    /// Gives the files the time of the cut, shortly after the last record.
    pub(super) fn date_files(&self) {
        let Some(last) = self.world.records().pop() else { return };
        let at = UNIX_EPOCH + Duration::from_millis(last.at.unix_millis().unsigned_abs());
        date_files_below(&self.world.path("disk"), at);
    }

    /// Brings what a cut left to its end, and panics where something is lost or done twice.
    pub(super) fn resume_and_check(&self) {
        let world = &self.world;
        let merged = self.merged();
        self.resume();
        for (lane, id) in merged {
            let text = world.git(&["cat-file", "blob", &format!("main:{lane}/1.txt")]);
            assert_eq!(text, id, "the work of {lane} that was merged is not there\n{}", world.story());
        }
        self.check_end();
    }

    /// What holds at the end of the run, also of one that nothing disturbed.
    fn check_end(&self) {
        let world = &self.world;
        let tree = world.git(&["ls-tree", "-r", "--name-only", "main"]);
        let expected: BTreeSet<&str> = WRITTEN.into_iter().chain(CONSTANT).collect();
        assert_eq!(tree.lines().collect::<BTreeSet<_>>(), expected, "{}", world.story());
        for file in CONSTANT {
            let text = world.git(&["cat-file", "blob", &format!("main:{file}")]);
            assert_eq!(text.lines().count(), 1, "{file}: {text:?}\n{}", world.story());
        }
        let wrote = world.lines_of_agents("wrote");
        for file in WRITTEN {
            let text = world.git(&["cat-file", "blob", &format!("main:{file}")]);
            let ids = text.lines().map(|line| line.rsplit_once(' ').map_or("", |(_, id)| id));
            let is_whole = ids.map(|id| wrote.iter().any(|line| line.starts_with(id) && !id.is_empty()));
            assert!(
                is_whole.clone().count() > 0 && is_whole.clone().all(|whole| whole),
                "{file}: {text:?}\n{}",
                world.story()
            );
        }
        assert_nothing_began_twice(world);
        // What nothing leads to may be damaged; a clone reads everything else.
        world.git(&["clone", "--quiet", "--no-local", "--bare", ".", "../clone"]);
        fs::remove_dir_all(world.path("disk/clone")).unwrap();
        assert_eq!(world.git(&["status", "--porcelain"]), "", "{}", world.story());
        let worktrees = world.git(&["worktree", "list", "--porcelain"]);
        assert_eq!(worktrees.matches("worktree ").count(), 1, "{worktrees}\n{}", world.story());
        assert_eq!(
            world.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]),
            "refs/heads/main\n",
            "{}",
            world.story()
        );
    }

    /// The file of each lane that is merged according to the log and was not rolled back.
    fn merged(&self) -> BTreeMap<String, String> {
        let mut merged = BTreeMap::new();
        for record in self.world.records() {
            match &record.event {
                Event::LaneMerged { lane, commit, .. } => {
                    let file = format!("{commit}:{lane}/1.txt");
                    merged.insert(lane.to_string(), self.world.git(&["cat-file", "blob", &file]));
                }
                Event::LaneRolledBack { lane, .. } | Event::RollbackBegun { lane, .. } => {
                    merged.remove(lane.as_str());
                }
                _ => {}
            }
        }
        merged
    }

    fn resume(&self) {
        let mut said = String::new();
        for _ in 0..6 {
            let was_done = self.world.is_done();
            let ended = self.world.go_on(None).wait();
            if let Some(lock) = ended.stderr.split_once(".lock exists: another git").map(|(path, _)| path) {
                // As the hint says; a git was at work when the machine stopped.
                let lock = lock.rsplit(' ').next().unwrap();
                fs::remove_file(format!("{lock}.lock")).unwrap();
                continue;
            }
            if was_done {
                assert_eq!(ended.code, 7, "{ended:?}");
                return;
            }
            if ended.stderr.contains("was interrupted") {
                let again = self.world.output(&["rollback", "r1", "--lane", "alpha", "--yes"]);
                assert_eq!(again.0, Some(0), "{again:?}\n{}", self.world.story());
                continue;
            }
            assert!(matches!(ended.code, 0 | 3), "{ended:?}\n{}", self.world.story());
            said = format!("{ended:?}");
            self.world.answer(APPROVALS);
        }
        assert!(self.world.is_done(), "{said}\n{}", self.world.story());
    }
}

pub(super) fn date_files_below(place: &Path, at: SystemTime) {
    for entry in fs::read_dir(place).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            date_files_below(&entry.path(), at);
        } else if kind.is_file() {
            fs::File::open(entry.path()).unwrap().set_modified(at).unwrap();
        }
    }
    fs::File::open(place).unwrap().set_modified(at).unwrap();
}

/// The contents of a file of a run as they are after another start of the machine.
pub(super) fn in_another_boot(path: &Path, bytes: Vec<u8>) -> Vec<u8> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let (Ok(text), Some("json" | "jsonl")) =
        (std::str::from_utf8(&bytes), path.extension().and_then(|extension| extension.to_str()))
    else {
        return bytes;
    };
    let other = "00000000-0000-4000-8000-000000000000";
    replaced(text, [boot.trim().to_owned(), other.to_owned()]).into_bytes()
}

/// A text of a run with one text in place of another.
pub(super) fn replaced(text: &str, [old, new]: [String; 2]) -> String {
    text.split_inclusive('\n').map(|line| sealed_again(line, &old, &new)).collect()
}

/// The line, under a checksum that fits if one did before.
fn sealed_again(line: &str, old: &str, new: &str) -> String {
    let changed = line.replace(old, new);
    let (Some((body, _)), Some((was, sum))) = (changed.rsplit_once(",\"crc\":\""), line.rsplit_once(",\"crc\":\""))
    else {
        return changed;
    };
    if !sum.starts_with(&format!("{:08x}", crc32fast::hash(was.as_bytes()))) {
        return changed;
    }
    let end = &sum[8..];
    format!("{body},\"crc\":\"{:08x}{end}", crc32fast::hash(body.as_bytes()))
}
