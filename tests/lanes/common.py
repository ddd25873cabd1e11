"""A phase of twelve lanes, run here and as jobs of an engine while faults happen at random moments.

Each run must end with the exit code, the files, the merges, the states and the checkpoints of the run without jobs.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

PLAN = """phase = "P1"
[defaults]
memory_mib = 100
retries = 2
[[lane]]
id = "BASE"
command = 'sleep 1; echo base > base.txt'
[[lane]]
id = "RETRY"
command = 'if [ "$LANEWRIGHT_ATTEMPT" = 1 ]; then echo half > retry.txt; exit 3; fi; sleep 1; echo retry > retry.txt'
depends_on = ["BASE"]
tests = ['test -f retry.txt && test -f base.txt']
[[lane]]
id = "ONE"
command = './add one'
[[lane]]
id = "TWO"
command = './add two'
[[lane]]
id = "FAILS"
command = 'echo nothing; exit 9'
[[lane]]
id = "NEVER"
command = 'echo never > never.txt'
depends_on = ["FAILS"]
[[lane]]
id = "ASKS"
command = 'sleep 1; echo asks > asks.txt'
approval = ["changes"]
[[lane]]
id = "HERE"
command = 'sleep 1; echo here > here.txt'
executor = "local"
depends_on = ["BASE"]
[[lane]]
id = "LEFT"
command = 'sleep 2; cat base.txt > left.txt'
depends_on = ["BASE"]
[[lane]]
id = "RIGHT"
command = 'sleep 3; cat base.txt > right.txt'
depends_on = ["BASE"]
[[lane]]
id = "JOIN"
command = 'sleep 1; cat left.txt right.txt > join.txt'
depends_on = ["LEFT", "RIGHT"]
[[lane]]
id = "LAST"
depends_on = ["JOIN", "HERE", "RETRY"]
[[lane.agent]]
name = "first"
command = 'sleep 1; cat join.txt here.txt > last-1.txt'
[[lane.agent]]
name = "second"
command = 'sleep 2; cat retry.txt > last-2.txt'
"""

# Where lanes that change the same lines are built again, the result is the same in any order.
ADD = """#!/bin/sh
sleep 1
{ cat shared.txt; echo "$1"; } | sort -u > new.txt && mv new.txt shared.txt
"""


class Wrong(Exception):
    pass


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def processes(*words):
    """Processes whose command line has all the words."""
    found = [int(directory.name) for directory in Path("/proc").glob("[0-9]*")]
    return [pid for pid in found if all(str(word) in command_line(pid) for word in words)]


def tree(pid):
    """What a process started, without it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [found for child in map(int, children) for found in [child, *tree(child)]]


def kill(pids, how=signal.SIGKILL):
    for pid in pids:
        try:
            os.kill(pid, how)
        except ProcessLookupError:
            pass


class Engine:
    """What the lanes need of Slurm, Kubernetes, …; `faults` are those that only the engine can have."""

    name = ""
    faults = []

    def __init__(self, options):
        self.options, self.directory = options, Path(options.directory).resolve()

    def settings(self, where):
        """The keys of the executor, whose jobs use files in the directory `where`."""
        raise NotImplementedError

    def jobs(self):
        """Jobs that are not over."""
        raise NotImplementedError

    def remove_jobs(self):
        raise NotImplementedError

    def lose_job(self, worker):
        """Makes the engine forget the job of a process, which stays; returns what ends this condition."""
        raise NotImplementedError

    def call(self, *command):
        return subprocess.run([*map(str, command)], capture_output=True, text=True).stdout


class Round:
    def __init__(self, engine, where):
        self.engine, self.where = engine, where
        self.lanewright = engine.options.lanewright
        self.repository, self.exchange = where / "repo", where / "exchange.git"
        self.environment = os.environ | {
            "XDG_CONFIG_HOME": str(where),
            "PATH": f"{where / 'bin'}:{os.environ['PATH']}",
            "GIT_CONFIG_GLOBAL": str(where / "gitconfig"),
            "TMPDIR": tempfile.gettempdir(),
        }
        self.clones, self.started = 0, []
        for name in ("bin", "out"):
            (where / name).mkdir(parents=True)
        (where / "gitconfig").write_text("[user]\nname = T\nemail = t@example.invalid\n")
        (where / "plan.toml").write_text(PLAN)
        self.make_repository()

    def make_repository(self):
        self.git("init", "-q", "--bare", self.exchange, within=self.where)
        self.git("init", "-q", "-b", "main", self.repository, within=self.where)
        settings = f'exchange = "{self.exchange}"\nstate_remote = "x"\n{self.engine.settings(self.where)}'
        for name, text in {"add": ADD, "shared.txt": "alpha\nzulu\n", "lanewright.toml": settings}.items():
            (self.repository / name).write_text(text)
        (self.repository / "add").chmod(0o755)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "first")
        self.git("remote", "add", "x", self.exchange)

    def git(self, *arguments, within=None):
        command = ["git", *map(str, arguments)]
        done = subprocess.run(command, cwd=within or self.repository, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            raise Wrong(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def start(self, *arguments):
        output = open(self.where / "output.txt", "a")
        output.write(f"--- {' '.join(arguments)}\n")
        output.flush()
        process = subprocess.Popen(
            [self.lanewright, *arguments], cwd=self.repository, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=output, start_new_session=True)
        self.started.append(process)
        return process

    def wait(self, process, limit=300):
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            raise Wrong(f"it did not end within {limit} s")

    def call(self, *arguments):
        return self.wait(self.start(*arguments))

    def workers(self):
        return processes(f"{self.lanewright} work", self.exchange)

    def clean_up(self):
        self.engine.remove_jobs()
        kill([process.pid for process in self.started if process.poll() is None] + self.workers())

    def to_another_clone(self):
        """The work goes on in another clone, which knows of the run by the exchange alone."""
        self.clones += 1
        run = next(iter(json.loads(self.said("list", "--format", "json"))["runs"]))["run_id"]
        other = self.where / f"clone-{self.clones}"
        self.git("clone", "-q", self.repository, other, within=self.where)
        self.repository = other
        self.git("remote", "add", "x", self.exchange)
        if self.call("state", "pull", "--remote", "x", run):
            raise Wrong("the state cannot be pulled")

    def said(self, *arguments):
        command = [self.lanewright, *arguments]
        return subprocess.run(command, cwd=self.repository, env=self.environment, capture_output=True, text=True).stdout

    def result(self, code):
        """What must be the same in every run."""
        subjects = self.git("log", "--merges", "--first-parent", "--format=%s", "main").splitlines()
        merges = sorted(subject.split("(")[0] for subject in subjects)
        lanes = json.loads(self.said("status", "--format", "json"))["lanes"]
        states = {lane["lane"]: lane["state"] for lane in lanes}
        stages = {}
        written = self.repository / ".claude/ai-dev-kit/run-logs/checkpoints.json"
        for checkpoint in json.loads(written.read_text()):
            stages.setdefault(checkpoint.get("lane") or "", set()).add(checkpoint["stage"])
        # Which of the two is built again depends on which is merged first.
        pair = [stages.pop(lane, set()) for lane in ("ONE", "TWO")]
        stages["ONE or TWO"] = set.intersection(*pair)
        stages["TWO or ONE"] = set.union(*pair)
        return {
            "code": code,
            "files": [file for file in self.git("ls-tree", "-r", "main").splitlines() if "lanewright.toml" not in file],
            "merges": merges,
            "states": states,
            "checkpoints": {lane: sorted(of) for lane, of in sorted(stages.items())},
        }


def execute(round, disturb, *flags):
    """A run, then the approval, then its end; `disturb` is called once beside it."""
    process = round.start("run", str(round.where / "plan.toml"), "--yes", *flags)
    process = disturb(round, process) or process
    code = round.wait(process)
    for _ in range(8):
        if code not in (-9, 130, 143, 4):
            break
        code = round.call("resume", "--yes")
    if round.call("approve", "ASKS"):
        raise Wrong("ASKS cannot be approved")
    return round.call("resume", "--yes")


def nothing(round, process):
    pass


def orchestrator(round, process):
    for _ in range(random.randint(1, 3)):
        time.sleep(random.uniform(0.3, 12))
        kill([process.pid])
        process.wait()
        process = round.start("resume", "--yes")
    return process


def moved(round, process):
    time.sleep(random.uniform(6, 14))
    kill([process.pid])
    process.wait()
    round.to_another_clone()
    return round.start("resume", "--yes")


def worker(round, process):
    for _ in range(random.randint(1, 4)):
        time.sleep(random.uniform(0.3, 6))
        kill(random.sample(round.workers(), min(1, len(round.workers()))))


def exchange(round, process):
    time.sleep(random.uniform(0.5, 8))
    away = round.where / "away.git"
    round.exchange.rename(away)
    time.sleep(random.uniform(10, 30))
    away.rename(round.exchange)


def partition(round, process):
    """A worker stops and its job is gone; it goes on once others have its lane."""
    time.sleep(random.uniform(0.5, 8))
    workers = round.workers()
    if not workers:
        return
    frozen = random.choice(workers)
    both = [frozen, *tree(frozen)]
    kill(both, signal.SIGSTOP)
    found_again = round.engine.lose_job(frozen)
    time.sleep(random.uniform(15, 45))
    kill(both, signal.SIGCONT)
    found_again()


def two(round, process):
    """A second process resumes the run elsewhere, while the first one works on."""
    time.sleep(random.uniform(6, 14))
    round.to_another_clone()
    return round.start("resume", "--yes")


FAULTS = [nothing, orchestrator, moved, worker, exchange, partition, two]


def difference(key, found, expected):
    lines = lambda of: Counter([f"{key}: {value}" for key, value in of.items()] if isinstance(of, dict) else map(str, of))
    if isinstance(found, int):
        return f"{key}: {found}, expected {expected}"
    more = lambda one, other: [*(lines(one) - lines(other)).elements()]
    return f"{key}: {more(found, expected)}, expected {more(expected, found)}"


def check(round, disturb, flags, expected):
    found = round.result(execute(round, disturb, *flags))
    for process in round.started:
        round.wait(process)
    differs = [key for key in found if expected and found[key] != expected[key]]
    if differs:
        raise Wrong("; ".join(difference(key, found[key], expected[key]) for key in differs))
    limit = time.time() + 60
    while (left := f"{round.engine.jobs()} {round.workers()}") != "[] []":
        if time.time() > limit:
            raise Wrong(f"left: {left}")
        time.sleep(1)
    return found


def attempt(engine, name, disturb, flags=(), expected=None):
    where = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=engine.options.keep))
    began = time.time()
    round = Round(engine, where)
    try:
        found = check(round, disturb, flags, expected)
    except Wrong as wrong:
        print(f"{name} {time.time() - began:.0f} s FAILED in {where}: {wrong}", flush=True)
        return None
    finally:
        round.clean_up()
    print(f"{name} {time.time() - began:.0f} s ok", flush=True)
    shutil.rmtree(where, ignore_errors=True)
    return found


def main(kind, usage):
    parser = argparse.ArgumentParser(usage=usage)
    parser.add_argument("lanewright", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("directory")
    parser.add_argument("faults", nargs="*")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep")
    options = parser.parse_intermixed_args()
    random.seed(options.seed)
    engine = kind(options)
    faults = {fault.__name__: fault for fault in FAULTS + kind.faults}
    expected = attempt(engine, "here", nothing)
    if expected is None:
        sys.exit(1)
    failures = 0
    for _ in range(options.rounds):
        for name in options.faults or faults:
            failures += attempt(engine, name, faults[name], ["--executor", kind.name], expected) is None
    print("all as expected" if failures == 0 else f"{failures} FAILED")
    sys.exit(failures > 0)
