//! Whole phases beside the script that a careful user writes: `cargo bench --bench phases -- [CASE…] [--rounds N]
//! [--beside BINARY | --walls] [--in DIRECTORY]`.
//!
//! Both do the same work on clones of the same repository: every lane changes one file, commits it and merges it. Each
//! round runs both, turn about first; the ratios are those of one round, and their median counts. The script is
//! `benches/baseline/phase.sh`. With `--beside`, each round also runs another build of Lanewright; with `--walls` ours is
//! run in a sandbox, and each round also runs it without one, without git directories of agents' own, and without looking
//! at what changes outside of worktrees. The repositories are made in DIRECTORY, else below the build directory.

#![allow(clippy::print_stdout, reason = "that is what it is for")]
#![allow(missing_docs, reason = "a program")]

mod support;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use lanewright_model::event::Event;
use lanewright_store::run_log;
use support::{Result, median, ratios};

/// What is measured, by the name under which it is chosen.
struct Case {
    name: &'static str,
    files: usize,
    lanes: usize,
    /// Whether an earlier phase of the same repository left its worktrees (`keep_pool`).
    warm: bool,
    /// How many seconds the agent of a lane works on which all others wait; 0: there is none. They do not count.
    first: u64,
    /// The largest ratio that we allow ourselves.
    limit: f64,
}

const CASES: &[Case] = &[
    Case { name: "many-lanes", files: 200, lanes: 100, warm: false, first: 0, limit: 0.6 },
    Case { name: "cold", files: 9_000, lanes: 20, warm: false, first: 0, limit: 0.4 },
    Case { name: "warm", files: 9_000, lanes: 20, warm: true, first: 0, limit: 0.25 },
    Case { name: "large", files: 57_000, lanes: 20, warm: false, first: 0, limit: 0.4 },
    Case { name: "fan-out", files: 9_000, lanes: 4, warm: false, first: 10, limit: 0.6 },
];

/// Repositories in which the start of the first agent is timed beside `git worktree add`, with their files.
const STARTS: &[(&str, usize)] = &[("start-20000", 20_000), ("start-50000", 50_000)];

/// The largest ratio of these that we allow ourselves.
const START_LIMIT: f64 = 1.3;

const PARALLEL: usize = 4;

/// What stands for an agent; `LANE` is set to the lane's name.
const AGENT: &str = "echo \"$LANE\" > \"changed-by-$LANE\"";

/// A build of Lanewright, with settings as environment variables.
#[derive(Clone, Copy)]
struct Program<'a> {
    binary: &'a Path,
    settings: &'a [(&'a str, &'a str)],
}

const WALLS: &[(&str, &str)] = &[("LANEWRIGHT_SANDBOX", "on")];

const NO_WALLS: &[(&str, &str)] =
    &[("LANEWRIGHT_SANDBOX", "off"), ("LANEWRIGHT_GIT_DIRECTORY", "shared"), ("LANEWRIGHT_OUTSIDE_CHANGES", "off")];

fn main() -> Result<()> {
    let mut rounds = 5;
    let mut chosen = Vec::new();
    let (mut beside, mut walls) = (None, false);
    let mut directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--rounds" => rounds = arguments.next().ok_or("--rounds wants a number")?.parse()?,
            "--beside" => beside = Some(PathBuf::from(arguments.next().ok_or("--beside wants a path")?)),
            "--walls" => walls = true,
            "--in" => directory = PathBuf::from(arguments.next().ok_or("--in wants a path")?),
            name => chosen.push(name.to_owned()),
        }
    }
    let names: Vec<&str> = CASES.iter().map(|case| case.name).chain(STARTS.iter().map(|start| start.0)).collect();
    if let Some(unknown) = chosen.iter().find(|chosen| !names.contains(&chosen.as_str())) {
        return Err(format!("no case is called {unknown}").into());
    }
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|chosen| chosen == name);
    println!("{:<12} {:>9} {:>9}   {:>6}  (smallest, largest)   limit", "case", "ours", "script", "ratio");
    let binary = Path::new(env!("CARGO_BIN_EXE_lanewright"));
    let ours = Program { binary, settings: if walls { WALLS } else { &[] } };
    let beside = match &beside {
        Some(binary) => Some(Program { binary, settings: &[] }),
        None => walls.then_some(Program { binary, settings: NO_WALLS }),
    };
    for case in CASES.iter().filter(|case| is_chosen(case.name)) {
        measure(case, rounds, (ours, beside), &directory)?;
    }
    for (name, files) in STARTS.iter().filter(|start| is_chosen(start.0)) {
        measure_start(name, *files, rounds, (ours, beside), &directory)?;
    }
    Ok(())
}

fn measure(
    case: &Case,
    rounds: usize,
    (program, beside): (Program<'_>, Option<Program<'_>>),
    directory: &Path,
) -> Result<()> {
    let scratch = tempfile::tempdir_in(directory)?;
    let origin = scratch.path().join("origin");
    make_repository(&origin, case.files)?;
    let (mut ours, mut theirs, mut others, mut waits) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let place = scratch.path().join(format!("round-{round}"));
        for script in [round % 2 == 0, round % 2 != 0] {
            if script {
                theirs.push(time_script(case, &origin, &place)?);
            } else {
                ours.push(time_lanewright(program, case, &origin, &place)?);
                waits.extend(wait_after_first(&place.join("repository"))?);
            }
            // Deleted at the end: some file systems are slow to create files for a while after many were deleted.
            fs::rename(&place, scratch.path().join(format!("done-{round}-{script}")))?;
        }
        if let Some(other) = beside {
            others.push(time_lanewright(other, case, &origin, &place)?);
            fs::rename(&place, scratch.path().join(format!("done-{round}-beside")))?;
        }
    }
    let (ratio, low, high) = ratios(&ours, &theirs);
    let verdict = if ratio > case.limit { "  over the limit" } else { "" };
    println!(
        "{:<12} {:>9.2?} {:>9.2?}   {ratio:>6.3}  ({low:.3}, {high:.3})        {:>4}{verdict}",
        case.name,
        median(&ours),
        median(&theirs),
        case.limit
    );
    if beside.is_some() {
        let (ratio, low, high) = ratios(&ours, &others);
        println!("{:<12} {:>9} {:>9.2?}   {ratio:>6.3}  ({low:.3}, {high:.3})", "", "beside", median(&others));
    }
    if !waits.is_empty() {
        println!("{:<12} the last of the next agents began {:.2?} after the first lane's merge", "", median(&waits));
    }
    Ok(())
}

/// How long the agent of the only lane waits for its start, beside one `git worktree add` in another clone, and what
/// follows its end.
fn measure_start(
    name: &str,
    files: usize,
    rounds: usize,
    (program, beside): (Program<'_>, Option<Program<'_>>),
    directory: &Path,
) -> Result<()> {
    let scratch = tempfile::tempdir_in(directory)?;
    let origin = scratch.path().join("origin");
    make_repository(&origin, files)?;
    let (mut ours, mut theirs, mut after, mut extra) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        for by_git in [round % 2 == 0, round % 2 != 0] {
            let place = scratch.path().join(format!("round-{round}-{by_git}"));
            let repository = clone_in_use(&origin, &place)?;
            if by_git {
                let mut add = Command::new("git");
                add.current_dir(&repository).args(["worktree", "add", "--quiet", "-b", "lane"]);
                theirs.push(time(add.arg(place.join("worktree")))?);
                continue;
            }
            let (start, end) = time_only_lane(program, &repository, &place)?;
            if let Some(other) = beside {
                let place = place.with_extension("beside");
                let (other_start, other_end) = time_only_lane(other, &clone_in_use(&origin, &place)?, &place)?;
                let ms = |time: Duration| time.as_secs_f64() * 1000.0;
                extra.push(ms(start + end) - ms(other_start + other_end));
            }
            ours.push(start);
            after.push(end);
        }
    }
    let (ratio, low, high) = ratios(&ours, &theirs);
    let verdict = if ratio > START_LIMIT { "  over the limit" } else { "" };
    println!(
        "{name:<12} {:>9.2?} {:>9.2?}   {ratio:>6.3}  ({low:.3}, {high:.3})        {START_LIMIT:>4}{verdict}\n\
         {:<12} {:>9.2?} from the agent's end to the end of the run",
        median(&ours),
        median(&theirs),
        "",
        median(&after),
    );
    extra.sort_by(f64::total_cmp);
    if let (Some(low), Some(median), Some(high)) = (extra.first(), extra.get(extra.len() / 2), extra.last()) {
        println!("{:<12} start and end take {median:+.0} ms ({low:+.0}, {high:+.0}) beside the other", "");
    }
    Ok(())
}

/// How long the agent of the only lane waits for its start, and what follows its end.
fn time_only_lane(program: Program<'_>, repository: &Path, place: &Path) -> Result<(Duration, Duration)> {
    let (plan, marks) = (place.join("plan.toml"), place.join("marks"));
    fs::create_dir(&marks)?;
    let mark = |word: &str| marks.join(word);
    let [begun, ended] = ["begun", "ended"].map(|word| format!(": > {}", mark(word).display()));
    let text = format!("phase = \"P\"\n\n[[lane]]\nid = \"A\"\ncommand = '{begun}; {AGENT}; {ended}'\n");
    fs::write(&plan, text.replace("$LANE", "$LANEWRIGHT_LANE"))?;
    let mut run = Command::new(program.binary);
    run.envs(program.settings.iter().copied()).env("LANEWRIGHT_SANDBOX_WRITE", &marks);
    let took = time(run.current_dir(repository).arg("execute-phase").arg(&plan))?;
    let end = SystemTime::now();
    let at = |word: &str| -> Result<SystemTime> { Ok(fs::metadata(mark(word))?.modified()?) };
    Ok((at("begun")?.duration_since(end - took)?, end.duration_since(at("ended")?)?))
}

/// How long after the merge of the lane on which all others wait the last of their agents began, if there is such a lane.
fn wait_after_first(repository: &Path) -> Result<Option<Duration>> {
    let logs = fs::read_dir(repository.join(".claude/ai-dev-kit/run-logs"))?.flatten().map(|entry| entry.path());
    let (mut merged, mut begun) = (None, None);
    for log in logs.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")) {
        for record in run_log::read(&log)?.records {
            match record.event {
                Event::LaneMerged { lane, .. } if lane.as_str() == "first" => merged = Some(record.at),
                Event::JobStarted { .. } => begun = Some(record.at),
                _ => {}
            }
        }
    }
    Ok(merged.zip(begun).map(|(merged, begun)| begun.since(merged)))
}

fn time_script(case: &Case, origin: &Path, place: &Path) -> Result<Duration> {
    let repository = clone(origin, place)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/baseline/phase.sh");
    let phase = |lanes: usize, name: &str, agent: String| {
        let mut phase = Command::new("sh");
        phase.arg(&script).args([&repository, &place.join("worktrees")]);
        phase.args([lanes.to_string(), PARALLEL.to_string(), agent]).env("NAME", name);
        time(&mut phase)
    };
    let first =
        if case.first > 0 { phase(1, "first", format!("sleep {}; {AGENT}", case.first))? } else { Duration::ZERO };
    let time = phase(case.lanes, "lane", AGENT.to_owned())?;
    check(case, &repository)?;
    Ok((first + time).saturating_sub(Duration::from_secs(case.first)))
}

fn time_lanewright(program: Program<'_>, case: &Case, origin: &Path, place: &Path) -> Result<Duration> {
    let repository = clone(origin, place)?;
    if case.warm {
        run_phase(program, &repository, &Case { first: 0, ..*case }, "earlier", "before", true)?;
    }
    let time = run_phase(program, &repository, case, "measured", "lane", false)?;
    check(case, &repository)?;
    Ok(time.saturating_sub(Duration::from_secs(case.first)))
}

fn run_phase(
    program: Program<'_>,
    repository: &Path,
    case: &Case,
    phase: &str,
    prefix: &str,
    keep_pool: bool,
) -> Result<Duration> {
    let plan = repository.with_file_name(format!("{phase}.toml"));
    let mut text = format!("phase = \"{phase}\"\n");
    let agent = AGENT.replace("$LANE", "$LANEWRIGHT_LANE");
    let after = if case.first > 0 { "depends_on = ['first']\n" } else { "" };
    if case.first > 0 {
        write!(text, "\n[[lane]]\nid = \"first\"\ncommand = 'sleep {}; {agent}'\n", case.first)?;
    }
    for lane in 1..=case.lanes {
        write!(text, "\n[[lane]]\nid = \"{prefix}-{lane}\"\n{after}command = '{agent}'\n")?;
    }
    fs::write(&plan, text)?;
    let mut run = Command::new(program.binary);
    run.envs(program.settings.iter().copied());
    run.current_dir(repository).arg("execute-phase").arg(&plan).arg("--max-parallel").arg(PARALLEL.to_string());
    run.env("LANEWRIGHT_KEEP_POOL", keep_pool.to_string());
    time(&mut run)
}

/// How long the command takes, with nothing of before left to be written to the disk.
fn time(command: &mut Command) -> Result<Duration> {
    Command::new("sync").status()?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let began = Instant::now();
    let output = command.output()?;
    let time = began.elapsed();
    if output.status.success() {
        return Ok(time);
    }
    Err(format!("{command:?} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}

/// Makes sure that the work of every lane is in the branch, each with a merge of its own.
fn check(case: &Case, repository: &Path) -> Result<()> {
    let names = (1..=case.lanes).map(|lane| format!("changed-by-lane-{lane}"));
    if let Some(missing) = names.into_iter().find(|name| !repository.join(name).is_file()) {
        return Err(format!("{} has no {missing}", repository.display()).into());
    }
    let subjects = git(repository, &["log", "--first-parent", "--merges", "--format=%s"])?;
    let missing =
        (1..=case.lanes).find(|lane| !subjects.lines().any(|subject| subject.ends_with(&format!("lane-{lane}"))));
    missing.map_or(Ok(()), |lane| Err(format!("lane-{lane} has no merge of its own").into()))
}

fn clone(origin: &Path, place: &Path) -> Result<PathBuf> {
    fs::create_dir_all(place)?;
    let repository = place.join("repository");
    git(place, &["clone", "--quiet", "--local", &origin.to_string_lossy(), "repository"])?;
    git(&repository, &["config", "user.name", "Somebody"])?;
    git(&repository, &["config", "user.email", "somebody@example.invalid"])?;
    Ok(repository)
}

/// The same after the user's first `git status`: where the files are as young as the index, git reads all of them each time.
fn clone_in_use(origin: &Path, place: &Path) -> Result<PathBuf> {
    let repository = clone(origin, place)?;
    std::thread::sleep(Duration::from_millis(1_100));
    git(&repository, &["status", "--porcelain"])?;
    Ok(repository)
}

fn git(directory: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").current_dir(directory).args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}

/// Makes a repository of that many files, 25 in a directory, of 200 to 8,000 bytes each: what source trees have.
fn make_repository(path: &Path, files: usize) -> Result<()> {
    git(Path::new("/"), &["init", "--quiet", "--initial-branch=main", &path.to_string_lossy()])?;
    let mut import =
        Command::new("git").current_dir(path).args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn()?;
    let mut stream = std::io::BufWriter::new(import.stdin.take().ok_or("no pipe to git fast-import")?);
    write!(stream, "commit refs/heads/main\ncommitter Somebody <somebody@example.invalid> 1700000000 +0000\n")?;
    writeln!(stream, "data 5\nfirst")?;
    let mut chance: u64 = 0x9e37_79b9_7f4a_7c15;
    for file in 0..files {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let size = 200 + (chance >> 33) % 7_800;
        let contents = format!("line {chance:016x} of file {file}\n").repeat(size as usize / 40 + 1);
        let (area, part) = (file / 500, file / 25 % 20);
        writeln!(stream, "M 100644 inline area-{area:03}/part-{part:02}/file-{file:05}.txt")?;
        writeln!(stream, "data {}\n{contents}", contents.len())?;
    }
    stream.flush()?;
    drop(stream);
    if !import.wait()?.success() {
        return Err("git fast-import failed".into());
    }
    git(path, &["symbolic-ref", "HEAD", "refs/heads/main"])?;
    Ok(())
}
