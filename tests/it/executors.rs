//! `doctor --executor`, with stand-ins for Slurm's commands that run a job as a process on this machine.

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Ended, TestEnv, wait_until};

const SBATCH: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo "slurm-wlm 22.05.8"; exit 0; }
test= name= output= partition= cpus=
echo "$*" >>"$SCRATCH/asked"
while [ $# -gt 0 ]; do
  case $1 in
    --test-only) test=1 ;;
    -J) name=$2; shift ;;
    -o) output=$2; shift ;;
    -p) partition=$2; shift ;;
    -c) cpus=$2; shift ;;
  esac
  shift
done
[ "$partition" = nope ] && { echo "sbatch: error: invalid partition specified: nope" >&2; exit 1; }
[ "$cpus" = 99 ] && { echo "allocation failure: Requested node configuration is not available" >&2; exit 1; }
[ -n "$test" ] && exit 0
mkdir -p "$SCRATCH/jobs"
echo "$name" >>"$SCRATCH/submitted"
id=$((6 + $(wc -l <"$SCRATCH/submitted")))
cat >"$SCRATCH/script"
cp "$SCRATCH/script" "$SCRATCH/script.$id"
echo "$name" >"$SCRATCH/jobs/$id"
if [ -e "$SCRATCH/impossible" ]; then
  touch "$SCRATCH/impossible.$id"
  grep -q accepted "$SCRATCH/impossible" && { echo $id; exit; }
  echo "sbatch: error: Memory specification can not be satisfied" >&2
  echo "sbatch: error: Batch job submission failed: Requested node configuration is not available" >&2
  exit 1
fi
[ -e "$SCRATCH/never" ] || {
  sh -c 'echo $$ >"$SCRATCH/pid.'$id'"; exec sh "$SCRATCH/script.'$id'"'
  echo $? >"$SCRATCH/code.$id"
} >"$output" 2>&1 </dev/null &
[ -e "$SCRATCH/lost" ] && { echo "sbatch: error: Socket timed out on send/recv operation" >&2; exit 1; }
[ -e "$SCRATCH/kill" ] && { rm "$SCRATCH/kill"; kill -9 $PPID; }
echo $id
"#;

const SQUEUE: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo "slurm-wlm 22.05.8"; exit 0; }
for job in "$SCRATCH"/jobs/*; do
  [ -e "$job" ] || continue
  id=${job##*/} name=$(cat "$job")
  if [ -e "$SCRATCH/impossible.$id" ]; then echo "$id|$name|FAILED|1||BadConstraints|"
  elif [ -s "$SCRATCH/never" ]; then echo "$id|$name|PENDING|0||$(cat "$SCRATCH/never")|"
  elif [ -e "$SCRATCH/never" ]; then echo "$id|$name|PENDING|0||Resources|"
  elif [ -e "$SCRATCH/lost.$id" ]; then echo "$id|$name|NODE_FAIL|0|n1|None|"
  elif [ -s "$SCRATCH/code.$id" ]; then echo "$id|$name|FAILED|$(($(cat "$SCRATCH/code.$id") * 256))|n1|None|"
  else echo "$id|$name|RUNNING|0|n1|None|"
  fi
done
"#;

const SCANCEL: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo "slurm-wlm 22.05.8"; exit 0; }
signal=TERM
while [ $# -gt 0 ]; do
  case $1 in
    -s) signal=$2; shift ;;
    -*) ;;
    *) if [ -s "$SCRATCH/pid.$1" ]; then kill -$signal "$(cat "$SCRATCH/pid.$1")" 2>&-; else rm -f "$SCRATCH/jobs/$1"; fi ;;
  esac
  shift
done
:
"#;

/// A Lanewright of another version, as far as probes need it.
const OLD: &str = r#"#!/bin/sh
set -e
git init --quiet "$SCRATCH/old"
cd "$SCRATCH/old"
git fetch --quiet "$2" "$3"
blob=$(echo '{"host":"n1","lanewright":"0.0.1","git":"2.41.0"}' | git hash-object -w --stdin)
tree=$(printf '100644 blob %s\tanswer.json\n' "$blob" | git mktree)
git push --quiet "$2" "$(git commit-tree -p "$4" -m answer "$tree"):$3"
"#;

/// With an exchange, and executors whose jobs call `program`.
pub(crate) fn slurm(program: &str) -> TestEnv {
    let env = TestEnv::new();
    for (name, script) in [("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL), ("old", OLD)] {
        env.program(name, script);
    }
    env.program("sinfo", "#!/bin/sh\necho main\n");
    env.git_at("", &["init", "--quiet", "--bare", "exchange.git"]);
    let place = |below: &str| env.path(below).display().to_string();
    let (exchange, cache, output) = (place("exchange.git"), place("node"), place("scratch"));
    let executor = |name: &str, partition: &str| {
        format!(
            "[executors.{name}]\nkind = 'slurm'\npartition = '{partition}'\nprogram = '{program}'\n\
             cache = '{cache}'\noutput = '{output}'\n"
        )
    };
    let settings = format!("exchange = '{exchange}'\n{}{}", executor("main", "main"), executor("nowhere", "nope"));
    env.write("repo/lanewright.toml", settings);
    env
}

pub(crate) fn this() -> &'static str {
    env!("CARGO_BIN_EXE_lanewright")
}

fn doctor(env: &TestEnv, more: &[&str]) -> Ended {
    env.lanewright(&[&["doctor", "--executor", "main"], more].concat())
}

fn assert_nothing_is_left(env: &TestEnv) {
    assert_eq!(env.git_at("exchange.git", &["for-each-ref"]), "");
    assert_eq!(env.git(&["for-each-ref", "refs/lanewright"]), "");
    let outputs = std::fs::read_dir(env.path("scratch")).expect("a directory").flatten();
    assert_eq!(outputs.filter(|entry| entry.path().extension().is_some_and(|it| it == "out")).count(), 0);
}

#[test]
fn an_executor_that_works_answers_through_the_exchange() {
    let env = slurm(this());
    let said = doctor(&env, &["--format", "json"]).exits(0).stdout;
    let report: Value = serde_json::from_str(&said).expect("JSON");
    let checks: Vec<(&str, &str)> = report["checks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|check| (check["check"].as_str().expect("a word"), check["outcome"].as_str().expect("a word")))
        .collect();
    let names = ["commands", "submission", "exchange", "job", "node"];
    assert_eq!(checks, names.map(|name| (name, "ok")));
    assert!(env.scratch("script").starts_with("#!/bin/sh\nexec "), "{}", env.scratch("script"));
    assert_nothing_is_left(&env);
}

#[test]
fn unanswered_submission_is_found_by_job_name() {
    let env = slurm(this());
    env.write("scratch/lost", "");
    doctor(&env, &[]).exits(0);
    assert_eq!(env.scratch("submitted").lines().count(), 1);
    assert_nothing_is_left(&env);
}

#[test]
fn without_slurms_commands_it_says_what_to_install() {
    let env = slurm(this());
    let git = env.git_in(&env.path("repo"), &["--exec-path"]);
    for (name, target) in [("git", format!("{git}/git")), ("sh", "/bin/sh".to_owned())] {
        let link = env.path("few").join(name);
        std::fs::create_dir_all(env.path("few")).expect("a directory");
        std::os::unix::fs::symlink(target, link).expect("a link");
    }
    let few = env.path("few");
    let said = env.lanewright_with(&["doctor", "--executor", "main"], |command| command.env("PATH", &few)).exits(3);
    assert!(said.stdout.contains("`sbatch` is not installed here"), "{}", said.stdout);
    assert!(said.stdout.contains("apt install slurm-client"), "{}", said.stdout);
    assert_nothing_is_left(&env);
}

#[test]
fn unknown_partition_is_refused_with_the_known_ones() {
    let env = slurm(this());
    let said = env.lanewright(&["doctor", "--executor", "nowhere"]).exits(3).stdout;
    assert!(said.contains("set `partition` to one that there is: main"), "{said}");
    assert!(said.contains("job         skipped"), "{said}");
    assert_nothing_is_left(&env);
}

#[test]
fn an_exchange_without_atomic_pushes_is_refused() {
    let env = slurm(this());
    env.git_at("exchange.git", &["config", "receive.advertiseAtomic", "false"]);
    let said = doctor(&env, &[]).exits(3).stdout;
    assert!(said.contains("does not take pushes of several refs at once"), "{said}");
    assert!(!env.path("scratch/jobs/7").exists());
    assert_nothing_is_left(&env);
}

#[test]
fn message_of_exchange_hook_is_shown() {
    let env = slurm(this());
    env.write("exchange.git/hooks/update", "#!/bin/sh\necho 'no probes here' >&2\ncase $1 in *-b) exit 1 ;; esac\n");
    let hook = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(env.path("exchange.git/hooks/update"), hook).expect("permissions");
    let said = doctor(&env, &[]).exits(3).stdout;
    assert!(said.contains("hook declined") && said.contains("no probes here"), "{said}");
    assert_nothing_is_left(&env);
}

#[test]
fn a_job_that_never_starts_is_given_up_and_removed() {
    let env = slurm(this());
    env.write("scratch/never", "");
    let said = doctor(&env, &["--wait", "1s"]).exits(3).stdout;
    assert!(said.contains("did not answer within 1s; it waits: no node has enough free (Resources)"), "{said}");
    assert!(!env.path("scratch/jobs/7").exists(), "the job was cancelled");
    assert_nothing_is_left(&env);
}

#[test]
fn doctor_submits_each_request_of_a_plan_once() {
    let env = slurm(this());
    let lane = |id: &str, more: &str| format!("[[lane]]\nid = '{id}'\ncommand = 'true'\n{more}\n");
    let large = "executor = 'main'\ncpus = 4\nmemory_mib = 8192\ngpus = 1\njob_time = '2h'";
    env.plan(&[lane("A", ""), lane("B", ""), lane("C", large), lane("HERE", "executor = 'local'\n")].concat());
    let plan = env.path("plan.toml").display().to_string();
    let said = doctor(&env, &["--plan", &plan]).exits(0).stdout;
    assert!(said.contains("asked for: 1 CPU, 2048 MiB, 8h (A, B)"), "{said}");
    assert!(said.contains("asked for: 4 CPUs, 8192 MiB, 1 GPU, 2h (C)"), "{said}");
    let asked = env.scratch("asked");
    let (tests, jobs): (Vec<&str>, Vec<&str>) = asked.lines().partition(|line| line.contains("--test-only"));
    for lines in [tests, jobs] {
        let [small, large] = lines[..] else { panic!("{asked}") };
        assert!(small.contains("-c 1 --mem 2048M -t 480 --parsable"), "{small}");
        assert!(large.contains("-c 4 --mem 8192M -t 120 --gres=gpu:1 --parsable"), "{large}");
    }
    assert_nothing_is_left(&env);
    env.lanewright(&["doctor", "--executor", "nowhere", "--plan", &plan]).exits(3);
    env.plan(&lane("HERE", "executor = 'local'"));
    doctor(&env, &["--plan", &plan]).exits(2).says(&["no lane of", "is for the executor `main`"]);
}

#[test]
fn doctor_names_the_lane_that_no_node_can_run() {
    let env = slurm(this());
    env.plan("[[lane]]\nid = 'A'\ncommand = 'true'\n[[lane]]\nid = 'B'\ncommand = 'true'\ncpus = 99\n");
    let plan = env.path("plan.toml").display().to_string();
    let said = doctor(&env, &["--plan", &plan]).exits(3).stdout;
    let words = "node configuration is not available; asked for: 99 CPUs, 2048 MiB, 8h (B)";
    assert!(said.contains(words) && said.contains("lower `cpus`"), "{said}");
    assert!(said.contains("job         skipped") && !env.path("scratch/jobs").exists(), "{said}");
    assert_nothing_is_left(&env);
}

#[test]
fn doctor_ends_early_on_a_job_that_is_stuck() {
    let env = slurm(this());
    env.write("scratch/never", "PartitionTimeLimit");
    let said = doctor(&env, &["--wait", "1h"]).exits(3).stdout;
    assert!(said.contains("it waits: it asks for more time than the partition allows (PartitionTimeLimit)"), "{said}");
    assert!(said.contains("lower `job_time`"), "{said}");
    assert_nothing_is_left(&env);
}

#[test]
fn an_interrupted_doctor_removes_the_job_and_the_refs() {
    let env = slurm(this());
    env.write("scratch/never", "");
    let doctor = env.start_with(&["doctor", "--executor", "main"], |command| command);
    wait_until("the job", || env.path("scratch/jobs/7").exists());
    doctor.signal(Signal::INT);
    doctor.wait().exits(130);
    assert!(!env.path("scratch/jobs/7").exists(), "the job was cancelled");
    assert_nothing_is_left(&env);
}

#[test]
fn doctor_reports_node_without_lanewright() {
    let env = slurm("/nonsuch/lanewright");
    let said = doctor(&env, &[]).exits(3).stdout;
    assert!(said.contains("no answer: the job ended with exit code 127; it printed: "), "{said}");
    assert!(said.contains("install Lanewright on the nodes, or set `program`"), "{said}");
    assert_nothing_is_left(&env);
}

#[test]
fn another_version_on_the_node_is_a_warning() {
    let env = slurm("old");
    let said = doctor(&env, &[]).exits(0).stdout;
    let version = env!("CARGO_PKG_VERSION");
    let words = format!("n1 has Lanewright 0.0.1 and git 2.41.0; this machine has Lanewright {version}");
    assert!(said.contains("node        warning") && said.contains(&words), "{said}");
    assert_nothing_is_left(&env);
}

#[test]
fn unknown_executor_and_unset_secret_are_usage_errors() {
    let env = slurm(this());
    let said = env.lanewright(&["doctor", "--executor", "mian"]).exits(2).stderr;
    assert!(said.contains("did you mean `main`?"), "{said}");
    let settings = env.read("repo/lanewright.toml");
    env.write("repo/lanewright.toml", format!("{settings}environment = {{ A_TOKEN = '$A_TOKEN' }}\n"));
    let said = env.lanewright(&["doctor", "--executor", "nowhere"]).exits(2).stderr;
    assert!(said.contains("the variable A_TOKEN, which [executors.nowhere] takes a value from, is not set"), "{said}");
    env.write("repo/lanewright.toml", "[executors.main]\nkind = 'slurm'\n");
    assert!(doctor(&env, &[]).exits(2).stderr.contains("no exchange is set"));
}

/// What `doctor` prints for an executor of Kubernetes, where no cluster is known.
fn without_cluster(code: i32) -> String {
    let env = slurm(this());
    env.write(
        "repo/lanewright.toml",
        "exchange = '../exchange.git'\n[executors.pods]\nkind = 'kubernetes'\nimage = 'i'\n",
    );
    let ended = env.lanewright_with(&["doctor", "--executor", "pods"], |command| {
        command.env("KUBECONFIG", "/nonsuch").env_remove("KUBERNETES_SERVICE_HOST")
    });
    let said = ended.exits(code);
    assert_nothing_is_left(&env);
    format!("{}{}", said.stdout, said.stderr)
}

#[cfg(not(feature = "kubernetes"))]
#[test]
fn build_without_kubernetes_names_required_feature() {
    let said = without_cluster(2);
    assert!(said.contains("this Lanewright was built without Kubernetes"), "{said}");
    assert!(said.contains("cargo build --release --features kubernetes"), "{said}");
}

#[cfg(feature = "kubernetes")]
#[test]
fn without_a_kubeconfig_it_says_where_it_was_looked_for() {
    let said = without_cluster(3);
    assert!(said.contains("api         failed"), "{said}");
    assert!(said.contains("check the kubeconfig (KUBECONFIG, else ~/.kube/config)"), "{said}");
    assert!(said.contains("job         skipped"), "{said}");
}
