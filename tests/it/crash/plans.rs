//! The plans of these tests and their agents.

use std::path::Path;

/// A plan and what its agents do; `ROOT` stands for the scratch directory.
#[derive(Clone, Copy)]
pub struct PlanText {
    /// How its lanes are merged; nothing: as merge commits.
    merge: &'static str,
    plan: &'static str,
    agent: &'static str,
}

impl PlanText {
    pub const fn new(plan: &'static str, agent: &'static str) -> Self {
        Self { merge: "", plan, agent }
    }

    pub fn plan(&self, root: &Path) -> String {
        let merge = if self.merge.is_empty() { String::new() } else { format!("merge = \"{}\"\n", self.merge) };
        merge + &self.plan.replace("ROOT", &root.to_string_lossy())
    }

    pub const fn merged_by(self, merge: &'static str) -> Self {
        Self { merge, ..self }
    }

    /// The program of all agents: it says that it begins, works, and says that it has finished.
    pub fn agent(&self, root: &Path) -> String {
        format!("{COMMON}{}\nsay finish\n", self.agent).replace("ROOT", &root.to_string_lossy())
    }
}

const COMMON: &str = r#"set -eu
say() { echo "$1 $LANEWRIGHT_LANE $LANEWRIGHT_AGENT $LANEWRIGHT_TASK $LANEWRIGHT_ATTEMPT" >>ROOT/agents.log; }
# Waits until a command succeeds, as long as the test lives.
until_true() { until eval "$1" 2>/dev/null; do test -d ROOT/disk/work; sleep 0.02; done; }
write() { mkdir -p "$LANEWRIGHT_LANE"; echo "$LANEWRIGHT_AGENT $LANEWRIGHT_TASK" >"$LANEWRIGHT_LANE/$LANEWRIGHT_AGENT-$LANEWRIGHT_TASK.txt"; }
say begin
"#;

/// Goes through every action that a run without a stop can come to: two tasks with gates, two agents in a lane, a
/// failed attempt that begins afresh, a conflict that has a lane built again, a reviewer, all kinds of gates, and an empty
/// change that needs no approval.
pub const EVERYTHING: PlanText = PlanText {
    merge: "",
    plan: r#"
phase = "P1"
max_parallel = 8
[gates]
checkpoint = ["test -e readme.txt"]
final = ["test -e delta/maker-1.txt"]
[defaults]
command = ["sh", "ROOT/agent.sh"]

[[lane]]
id = "alpha"
owns = ["alpha/**"]
tests = ["test -e alpha/maker-2.txt"]
must_haves = { artifacts = [{ path = "alpha/maker-1.txt" }] }
[[lane.agent]]
name = "maker"
[[lane.task]]
id = "1"
prompt = "one"
verify = ["test -e alpha/maker-1.txt"]
[[lane.task]]
id = "2"
prompt = "two"

[[lane]]
id = "beta"
[[lane.agent]]
name = "left"
[[lane.agent]]
name = "right"
[[lane.task]]
id = "1"
prompt = "one"

[[lane]]
id = "gamma"
resume = "fresh"
[[lane.agent]]
name = "maker"
[[lane.task]]
id = "1"
prompt = "one"

[[lane]]
id = "delta"
depends_on = ["alpha", "gamma"]
setup = ["test -e readme.txt"]
[[lane.agent]]
name = "maker"
[[lane.agent]]
name = "reviewer"
round = "review"
[[lane.task]]
id = "1"
prompt = "one"

[[lane]]
id = "epsilon"
approval = ["changes"]
[[lane.agent]]
name = "maker"
allow_empty = true
[[lane.task]]
id = "1"
prompt = "one"
allow_empty = true
"#,
    // Gamma begins before beta is merged, and works on the same file at the same time: a conflict, every time.
    agent: r#"
case "$LANEWRIGHT_LANE/$LANEWRIGHT_AGENT/$LANEWRIGHT_ATTEMPT" in
beta/left/*) until_true 'grep -q "^begin gamma" ROOT/agents.log'; echo beta >>shared.txt; write ;;
gamma/maker/1) echo half-done >left-behind.txt; exit 1 ;;
gamma/maker/*) until_true 'git -C ROOT/disk/work cat-file -e main:shared.txt'; echo gamma >>shared.txt; write ;;
delta/reviewer/*) printf '{"status":"COMPLETE","decision":"APPROVED","feedback":""}' >"$LANEWRIGHT_STATUS_FILE" ;;
epsilon/*) ;;
*) write ;;
esac
"#,
};

/// Agents and tests that wait until they are released, and no retries.
pub const HELD: PlanText = PlanText {
    merge: "",
    plan: r#"
phase = "P1"
max_parallel = 8
[defaults]
command = ["sh", "ROOT/agent.sh"]
retries = 0
tests = ["until test -e ROOT/tests-may-end; do test -d ROOT/disk/work || exit 1; sleep 0.02; done"]

[[lane]]
id = "alpha"
owns = ["alpha/**"]
[[lane.agent]]
name = "maker"
[[lane.task]]
id = "1"
prompt = "one"

[[lane]]
id = "beta"
owns = ["beta/**"]
[[lane.agent]]
name = "left"
[[lane.agent]]
name = "right"
[[lane.task]]
id = "1"
prompt = "one"

[[lane]]
id = "gamma"
owns = ["gamma/**"]
depends_on = ["alpha"]
[[lane.agent]]
name = "maker"
[[lane.task]]
id = "1"
prompt = "one"
"#,
    agent: r#"
write
until_true 'test -e ROOT/agents-may-end'
"#,
};

/// Gates that leave changes behind, which have to make room and are kept: in an agent's worktree when it is given back,
/// and in the lane's when the second agent's work comes in and before its tests.
pub const LITTERING: PlanText = PlanText {
    merge: "",
    plan: r#"
phase = "P1"
max_parallel = 8
[gates]
atomic = ["echo litter >litter.txt"]
checkpoint = ["echo litter >>readme.txt"]
[defaults]
command = ["sh", "ROOT/agent.sh"]

[[lane]]
id = "alpha"
tests = ["true"]
[[lane.agent]]
name = "left"
[[lane.agent]]
name = "right"
[[lane.task]]
id = "1"
prompt = "one"
"#,
    agent: "write",
};

/// What people and the world do to a run: an agent that ignores the end of its time, a quota that is out, a gate that
/// fails once on what was merged, approvals before and after the work, and a task that is a person's.
pub const TROUBLE: PlanText = PlanText {
    merge: "",
    plan: r#"
phase = "P1"
max_parallel = 8
[timeouts]
kill_after = "100ms"
[gates]
checkpoint = ["test ! -e broken.txt"]
[defaults]
command = ["sh", "ROOT/agent.sh"]

[[lane]]
id = "alpha"
[[lane.agent]]
name = "maker"
timeout = "400ms"
[[lane.task]]
id = "1"
prompt = "one"
[[lane.task]]
id = "2"
prompt = "two"
max_time = "10m"

[[lane]]
id = "beta"
approval = ["plan", "changes"]
[[lane.agent]]
name = "maker"
[[lane.task]]
id = "1"
prompt = "one"

[[lane]]
id = "gamma"
[[lane.agent]]
name = "maker"
[[lane.task]]
id = "1"
prompt = "one"
[[lane.task]]
id = "ask"
type = "checkpoint:decision"
prompt = "Which?"
[[lane.task]]
id = "2"
prompt = "two"

[[lane]]
id = "delta"
depends_on = ["alpha"]
[[lane.agent]]
name = "maker"
[[lane.task]]
id = "1"
prompt = "one"
"#,
    agent: r#"
case "$LANEWRIGHT_LANE/$LANEWRIGHT_TASK/$LANEWRIGHT_ATTEMPT" in
alpha/1/1) trap '' TERM; until_true false ;;
delta/1/1) echo "API Error: 429 Too Many Requests"; exit 1 ;;
delta/1/2) write; touch broken.txt ;;
delta/1/*) write; rm -f broken.txt ;;
*) write ;;
esac
"#,
};

/// What [`TROUBLE`] asks people.
pub const QUESTIONS: [(&str, &str); 3] = [("beta", "plan"), ("beta", "changes"), ("gamma", "ask")];

/// Two lanes that begin at once; the tests of the one that is merged second wait on the merged result.
pub const MOVED: PlanText = PlanText {
    merge: "",
    plan: r#"
phase = "P1"
[defaults]
command = ["sh", "ROOT/agent.sh"]
tests = ["""if test -d alpha && test -d beta; then touch ROOT/merged-tests
until test -e ROOT/merged-may-end; do test -d ROOT/disk/work || exit 1; sleep 0.02; done; fi"""]

[[lane]]
id = "alpha"
owns = ["alpha/**"]
[[lane.agent]]
name = "maker"
[[lane.task]]
id = "1"
prompt = "one"

[[lane]]
id = "beta"
owns = ["beta/**"]
[[lane.agent]]
name = "maker"
[[lane.task]]
id = "1"
prompt = "one"
"#,
    agent: r#"
until_true 'grep -q "^begin alpha" ROOT/agents.log && grep -q "^begin beta" ROOT/agents.log'
write
"#,
};

/// One agent, whose first attempt fails.
pub const RETRIED: PlanText = PlanText {
    merge: "",
    plan: r#"
phase = "P1"
[defaults]
command = ["sh", "ROOT/agent.sh"]

[[lane]]
id = "alpha"
owns = ["alpha/**"]
[[lane.agent]]
name = "maker"
[[lane.task]]
id = "1"
prompt = "one"
"#,
    agent: r#"
write
test "$LANEWRIGHT_ATTEMPT" != 1
"#,
};
