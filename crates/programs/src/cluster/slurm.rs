//! Slurm, through its commands.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Seek, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use lanewright_files::time_limit::output_within;
use lanewright_files::timing::{TARGET, outside};
use lanewright_files::{atomic, regular_file};
use lanewright_model::ExecutorSettings;
use lanewright_model::text::{last_lines, shell_line};

use super::{
    ByHand, Cancel, Check, Cluster, ClusterError, Ending, Job, Order, OrderName, Sighting, Ticket, slurm_reasons,
    squeue,
};

const LIMIT: Duration = Duration::from_secs(60);

const SHOWN_LINES: usize = 5;

pub(super) struct Slurm {
    settings: ExecutorSettings,
    variables: Vec<(String, String)>,
}

impl Slurm {
    pub(super) fn new(settings: ExecutorSettings, variables: Vec<(String, String)>) -> Self {
        Self { settings, variables }
    }

    /// Later arguments count, so those that harmless repetition depends on come after the user's.
    fn arguments(&self, order: &Order) -> Vec<String> {
        let named = [("-p", &self.settings.partition), ("-A", &self.settings.account), ("-q", &self.settings.qos)];
        let named = named.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value.clone()?])).flatten();
        let asked = &order.resources;
        let resources = [
            ["-c".to_owned(), asked.cpus().to_string()],
            ["--mem".to_owned(), format!("{}M", asked.memory_mib())],
            ["-t".to_owned(), asked.minutes().to_string()],
        ];
        // Every site with GPUs knows the generic resource; `--gpus` needs a plugin besides.
        let gpus = asked.gpus.map(|gpus| format!("--gres=gpu:{gpus}"));
        let resources = resources.into_iter().flatten().chain(gpus);
        let output = self.output_file(&order.name).to_string_lossy().replace('%', "%%");
        let own = [
            "--parsable".to_owned(),
            "--no-requeue".to_owned(),
            format!("--export={}", self.exported()),
            format!("--comment={}", order.comment),
            "-J".to_owned(),
            order.name.to_string(),
            "-o".to_owned(),
            output,
        ];
        let chdir = ["-D", "/tmp"].map(str::to_owned);
        named.chain(chdir).chain(resources).chain(self.settings.arguments.iter().cloned()).chain(own).collect()
    }

    /// The names of variables whose values `sbatch` takes from its environment: as arguments everyone could read them.
    fn exported(&self) -> String {
        let names: Vec<&str> = self.variables.iter().map(|(name, _)| name.as_str()).collect();
        if names.is_empty() { "NIL".to_owned() } else { names.join(",") }
    }

    fn sbatch(&self, more: &[&str], order: &Order) -> Result<Output, ClusterError> {
        let mut command = Command::new("sbatch");
        command.args(more).args(self.arguments(order)).envs(self.variables.iter().cloned());
        let script = format!("#!/bin/sh\nexec {}\n", shell_line(&order.command));
        let start = |source| ClusterError::Start { program: "sbatch", source };
        run("sbatch", command.stdin(file_of(&script).map_err(start)?))
    }

    /// On the machine that runs the job.
    fn output_file(&self, name: &OrderName) -> PathBuf {
        self.settings.output.as_deref().unwrap_or(Path::new("/tmp")).join(format!("{name}.out"))
    }

    /// Submits without looking whether it was done before.
    fn submit_new(&self, order: &Order) -> Result<Ticket, ClusterError> {
        let output = self.sbatch(&[], order)?;
        let said = text(&output.stdout);
        ticket(&said).ok_or_else(|| match said.trim().is_empty() {
            true => unanswered("`sbatch` printed nothing".to_owned()),
            false => ClusterError::Answer { program: "sbatch", said },
        })
    }

    fn submit_once(&self, order: &Order, known: &HashMap<OrderName, Job>) -> Result<Ticket, ClusterError> {
        if let Some(job) = known.get(&order.name) {
            return Ok(job.ticket.clone());
        }
        // The answer may be lost and the job submitted. Slurm lists some that it refused, too.
        self.submit_new(order).or_else(|error| {
            let found = self.survey(std::slice::from_ref(&order.name)).unwrap_or_default().remove(&order.name);
            let found = found.filter(|job| !matches!(job.sighting, Sighting::Over(Ending::Impossible(_))));
            found.map(|job| job.ticket).ok_or(error)
        })
    }

    /// The partitions that there are; nothing where they cannot be listed.
    fn partitions(&self) -> Vec<String> {
        let mut command = Command::new("sinfo");
        let listing = run("sinfo", command.args(["-h", "-o", "%R"])).map(|output| text(&output.stdout));
        listing.unwrap_or_default().lines().map(|line| line.trim().to_owned()).collect()
    }

    fn check_submission(&self, order: &Order) -> Result<String, ClusterError> {
        match self.sbatch(&["--test-only"], order) {
            Ok(_) => Ok(match &self.settings.partition {
                Some(partition) => format!("partition {partition}"),
                None => "the default partition".to_owned(),
            }),
            Err(ClusterError::Refused { said, .. }) if said.contains("nvalid partition") => {
                let known = self.partitions();
                let known = if known.is_empty() { String::new() } else { format!(": {}", known.join(", ")) };
                Err(ClusterError::Refused { said, remedy: format!("set `partition` to one that there is{known}") })
            }
            Err(error) => Err(error),
        }
    }
}

impl Cluster for Slurm {
    fn submit(&self, orders: &[Order]) -> Vec<Result<Ticket, ClusterError>> {
        let names: Vec<OrderName> = orders.iter().map(|order| order.name.clone()).collect();
        match self.survey(&names) {
            Ok(known) => orders.iter().map(|order| self.submit_once(order, &known)).collect(),
            // Nothing can be submitted without danger of doing it twice.
            Err(error) => orders.iter().map(|_| Err(error.again())).collect(),
        }
    }

    fn survey(&self, names: &[OrderName]) -> Result<HashMap<OrderName, Job>, ClusterError> {
        let names: Vec<String> = names.iter().map(OrderName::to_string).collect();
        let mut command = Command::new("squeue");
        command.args(["-h", "-r", "-t", "all", "-n", &names.join(","), "-O", squeue::FIELDS]);
        let said = text(&run("squeue", &mut command)?.stdout);
        let listed = squeue::jobs(&said).ok_or(ClusterError::Answer { program: "squeue", said })?;
        let mut jobs: HashMap<OrderName, Job> = HashMap::new();
        for (name, job) in listed {
            let is_over = |job: &Job| matches!(job.sighting, Sighting::Over(_));
            if jobs.get(&name).is_none_or(is_over) {
                jobs.insert(name, job);
            }
        }
        Ok(jobs)
    }

    fn cancel(&self, tickets: &[Ticket], how: Cancel) -> Result<(), ClusterError> {
        let ids = || tickets.iter().map(|ticket| &ticket.0);
        let signal: &[&str] = match how {
            // Alone, the last command signals the job's processes all at once.
            Cancel::Ask => &["-b", "-s", "TERM"],
            Cancel::Kill => &["-f", "-s", "KILL"],
        };
        // It fails where none runs yet.
        let _ = run("scancel", Command::new("scancel").arg("-Q").args(signal).args(ids()));
        run("scancel", Command::new("scancel").arg("-Q").args(ids())).map(drop)
    }

    fn output(&self, name: &OrderName, from: u64) -> Result<Option<Vec<u8>>, ClusterError> {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        // Where the directory is not shared, the file is on another machine.
        let printed = regular_file::read(self.output_file(name)).ok();
        Ok(printed.map(|bytes| bytes.get(from..).unwrap_or_default().to_vec()))
    }

    fn forget(&self, names: &[OrderName]) -> Result<(), ClusterError> {
        let mut files = names.iter().map(|name| self.output_file(name)).filter(|file| file.exists());
        files
            .try_for_each(|file| atomic::remove_durably(&file))
            .map_err(|error| ClusterError::Refused { said: error.to_string(), remedy: "remove it by hand".to_owned() })
    }

    fn remedy(&self, name: &OrderName, sighting: Option<&Sighting>) -> String {
        match sighting {
            Some(Sighting::Stuck(cause) | Sighting::Over(Ending::Impossible(cause))) => cause.remedy.clone(),
            Some(Sighting::Over(Ending::NeverStarted(reason))) if reason == "JobLaunchFailure" => {
                format!("check that {} can be written on the nodes", self.output_file(name).display())
            }
            Some(Sighting::Over(_)) => "ask the engine why: scontrol show job".to_owned(),
            _ => "see why the engine does not start it: squeue --me".to_owned(),
        }
    }

    fn by_hand(&self, name: &OrderName) -> ByHand {
        ByHand {
            output: self.output_file(name).display().to_string(),
            end: shell_line(["scancel".to_owned(), format!("--name={name}")]),
        }
    }

    fn check(&self, order: &Order) -> Vec<Check> {
        let version = |program| run(program, Command::new(program).arg("--version")).map(|said| text(&said.stdout));
        let versions: Result<Vec<String>, _> = ["sbatch", "squeue", "scancel"].into_iter().map(version).collect();
        let commands = Check { name: "commands", outcome: versions.map(|all| all[0].trim().to_owned()) };
        if commands.outcome.is_err() {
            return vec![commands];
        }
        vec![commands, Check { name: "submission", outcome: self.check_submission(order) }]
    }
}

/// The job's id in what `sbatch --parsable` prints: `12` or `12;cluster`.
fn ticket(said: &str) -> Option<Ticket> {
    let id = said.lines().next_back()?.split(';').next()?.trim();
    (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())).then(|| Ticket(id.to_owned()))
}

fn file_of(text: &str) -> io::Result<Stdio> {
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

/// Without the user's variables that change what the program prints.
fn run(program: &'static str, command: &mut Command) -> Result<Output, ClusterError> {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("SQUEUE_") || name.starts_with("SCANCEL_")) {
            command.env_remove(name);
        }
    }
    let mut owned = Command::new(program);
    std::mem::swap(command, &mut owned);
    let _span = tracing::debug_span!(target: TARGET, "cluster", title = program).entered();
    match outside(|| output_within(owned, LIMIT)) {
        Ok(Some(output)) if output.status.success() => Ok(output),
        Ok(Some(output)) => Err(refused(program, &output)),
        Ok(None) => Err(ClusterError::TimedOut { program, limit: LIMIT }),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(ClusterError::Missing { program }),
        Err(source) => Err(ClusterError::Start { program, source }),
    }
}

/// What a controller that is out, restarts or has too much to do makes the commands print.
const TRANSIENT: &[&str] = &[
    "Unable to contact slurm controller",
    "configuration source",
    "Connection refused",
    "Connection reset",
    "timed out",
    "Zero Bytes were transmitted",
    "temporarily un",
    "in standby mode",
];

fn refused(program: &str, output: &Output) -> ClusterError {
    let all = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
    let lines = last_lines(&all, SHOWN_LINES).join("; ");
    let said = match output.status.signal() {
        Some(signal) => return unanswered(format!("`{program}` was ended by signal {signal}")),
        None if lines.is_empty() => return unanswered(format!("`{program}` failed and printed nothing")),
        None if TRANSIENT.iter().any(|words| all.contains(words)) => return unanswered(lines),
        None => lines,
    };
    if is_submit_limit(&all) {
        let remedy = "set `max_lanes` of `[executors.NAME]` to the number of jobs that you may have there; if you have \
                      none queued, the lane exceeds your limits: lower its `cpus`, `memory_mib`, `gpus` or `job_time`";
        return ClusterError::Unavailable { said, remedy: remedy.to_owned() };
    }
    let remedy = slurm_reasons::refusal(&all)
        .unwrap_or("correct what it names in `[executors.NAME]`: partition, account, qos or arguments");
    ClusterError::Refused { said, remedy: remedy.to_owned() }
}

fn unanswered(said: String) -> ClusterError {
    let remedy = "check that Slurm's controller answers (scontrol ping) and that SLURM_CONF is right".to_owned();
    ClusterError::Unavailable { said, remedy }
}

/// Whether a limit on the number of jobs was reached, which the end of one lifts. The general message stands for every
/// limit; versions of Slurm that name the limit do so in a word of its own before it.
fn is_submit_limit(said: &str) -> bool {
    let mut named = said.split(|c: char| !c.is_ascii_alphanumeric());
    let named =
        named.find(|word| ["Assoc", "QOS"].iter().any(|kind| word.len() > kind.len() && word.starts_with(kind)));
    named.map_or(said.contains("Job violates accounting/QOS policy"), |limit| limit.contains("Submit"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::ExecutorKind;

    #[test]
    fn sbatch_ticket_is_parsed() {
        let id = |said: &str| ticket(said).map(|ticket| ticket.0);
        assert_eq!(id("12\n").as_deref(), Some("12"));
        assert_eq!(id("sbatch: something new\n12;west\n").as_deref(), Some("12"));
        assert_eq!([id(""), id("Submitted batch job 12"), id("\n")], [None, None, None]);
    }

    #[test]
    fn slurm_outages_and_job_limits_are_transient() {
        let failed = |status: i32, stderr: &str| {
            let status = std::process::ExitStatus::from_raw(status);
            refused("sbatch", &Output { status, stdout: Vec::new(), stderr: stderr.as_bytes().to_vec() })
        };
        let general = "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, \
                       user's size and/or time limits)";
        let exited = 1 << 8;
        for (status, stderr) in [
            (9, ""),
            (15, "sbatch: error: Invalid qos specification"),
            (exited, ""),
            (exited, "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"),
            (exited, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"),
            (exited, "squeue: error: _open_persist_conn: Connection refused"),
            (exited, "slurm_load_jobs error: Zero Bytes were transmitted or received"),
            (
                exited,
                "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying.\nmore\nof\nit\nall\n.",
            ),
        ] {
            let error = failed(status, stderr);
            assert!(error.is_outage() && error.remedy().contains("scontrol ping"), "{stderr}: {error:?}");
        }
        for limit in [
            "sbatch: error: QOSMaxSubmitJobPerUserLimit",
            "sbatch: error: AssocMaxSubmitJobLimit\n",
            "sbatch: error: AssocGrpSubmitJobsLimit\n",
            "",
        ] {
            let error = failed(exited, &format!("{limit}\n{general}"));
            assert!(error.is_outage() && error.remedy().contains("`max_lanes`"), "{limit}: {error:?}");
        }
        for stderr in [
            &format!("sbatch: error: QOSMaxWallDurationPerJobLimit\n{general}"),
            "sbatch: error: Batch job submission failed: Invalid qos specification",
            "sbatch: error: invalid partition specified: nope",
        ] {
            assert!(!failed(exited, stderr).is_outage(), "{stderr}");
        }
    }

    #[test]
    fn sbatch_arguments_hold_no_secrets() {
        let settings = ExecutorSettings {
            kind: ExecutorKind::Slurm,
            partition: Some("main".into()),
            account: None,
            qos: None,
            arguments: vec!["--requeue".into()],
            context: None,
            namespace: None,
            image: None,
            service_account: None,
            secret: None,
            pod_patch: Default::default(),
            cache: None,
            output: Some("/shared/100%".into()),
            program: None,
            environment: Default::default(),
            max_lanes: None,
        };
        let slurm = Slurm::new(settings, vec![("KEY".into(), "secret".into())]);
        let name = OrderName::of(&["a", "b"]);
        let resources = serde_json::json!({ "cpus": 2, "memory_mib": 512, "gpus": 4, "time": 180_000 });
        let resources = serde_json::from_value(resources).unwrap();
        let order = Order { name, comment: "c".into(), command: vec![], resources };
        let name = order.name.to_string();
        assert_eq!((name.len(), &name[..3]), (19, "lw-"));
        let expected = format!(
            "-p main -D /tmp -c 2 --mem 512M -t 3 --gres=gpu:4 --requeue --parsable --no-requeue --export=KEY --comment=c \
             -J {name} -o /shared/100%%/{name}.out"
        );
        assert_eq!(slurm.arguments(&order).join(" "), expected);
    }
}
