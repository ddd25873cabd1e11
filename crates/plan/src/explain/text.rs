//! The explanation as text for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use lanewright_model::plan::{EdgeOrigin, OwnershipRule, Skipped};
use lanewright_model::safe_text::visible_line;
use lanewright_model::text::counted;
use lanewright_model::time::exact;
use lanewright_model::{Agent, AgentOptions, CommandLine, LaneId, MustHaves, Round, TaskId, UNSET_RUNNER, user_setup};

use super::{Explanation, InterfaceExplanation, LaneExplanation, Shared};

/// How many lanes that are left out for one reason are shown one by one.
const MAX_SKIPPED: usize = 10;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.phase)?;
        self.title.iter().try_for_each(|title| write!(f, ": {}", visible_line(title)))?;
        writeln!(f, "\n{}", self.summary())?;
        self.lanes.iter().try_for_each(|lane| write!(f, "\n{lane}"))?;
        writeln!(
            f,
            "\ncritical path  {} (at most {})",
            joined(&self.critical_path, " -> "),
            exact(self.critical_time)
        )?;
        for (one, other) in self.exclusions.iter().filter(|pair| self.sequence_of(pair).is_none()) {
            writeln!(f, "kept apart     {one}, {other}")?;
        }
        for (first, then) in &self.sequences {
            writeln!(f, "in turn        {first}, then {then}")?;
        }
        if let Some(sharing) = &self.sharing {
            for pair in sharing.pairs.iter().filter(|pair| !pair.treatment.is_apart()) {
                writeln!(f, "merged         {}, {}: both {}", pair.lanes.0, pair.lanes.1, visible_line(&pair.files))?;
            }
            if sharing.rule.is_some() && self.lanes.len() > 1 {
                writeln!(f, "side by side   {sharing}")?;
            }
        }
        for shared in &self.shared {
            writeln!(f, "shared files   {shared}")?;
        }
        self.interfaces.iter().try_for_each(|interface| writeln!(f, "interface      {interface}"))?;
        self.write_skipped(f)?;
        if let Some(template) = &self.commit_message {
            writeln!(f, "commits        {}", visible_line(template))?;
        }
        write_commands(f, "", "after an edit", &self.gates.edit)?;
        write_commands(f, "", "after a task ", &self.gates.atomic)?;
        write_commands(f, "", "after a merge", &self.gates.checkpoint)?;
        write_commands(f, "", "at the end   ", &self.gates.last)
    }
}

impl Explanation {
    /// What is left out, many lanes of one reason in one line.
    fn write_skipped(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut by_reason: BTreeMap<&str, Vec<&Skipped>> = BTreeMap::new();
        for skipped in &self.skipped {
            by_reason.entry(&skipped.reason).or_default().push(skipped);
        }
        let mut written = BTreeSet::new();
        for Skipped { lane, name, reason } in &self.skipped {
            let same = &by_reason[reason.as_str()];
            if same.len() <= MAX_SKIPPED {
                let name = name.as_ref().map_or_else(String::new, |name| format!(" ({})", visible_line(name)));
                writeln!(f, "skipped        {lane}{name}: {}", visible_line(reason))?;
            } else if written.insert(reason) {
                let first: Vec<String> =
                    same.iter().take(MAX_SKIPPED).map(|skipped| skipped.lane.to_string()).collect();
                let more = same.len() - MAX_SKIPPED;
                writeln!(f, "skipped        {} and {more} more: {}", first.join(", "), visible_line(reason))?;
            }
        }
        Ok(())
    }

    /// The order that two lanes keep which may not run at once.
    fn sequence_of(&self, (one, other): &(LaneId, LaneId)) -> Option<&(LaneId, LaneId)> {
        self.sequences.iter().find(|(first, then)| (first, then) == (one, other) || (first, then) == (other, one))
    }

    fn summary(&self) -> String {
        let mut parts = vec![counted(self.lanes.len(), "lane")];
        let waves = self.lanes.iter().map(|lane| lane.wave).max().unwrap_or(0);
        parts.push(counted(waves as usize, "wave"));
        parts.extend(self.base_branch.iter().map(|branch| format!("onto {}", visible_line(branch))));
        parts.extend(self.merge.iter().map(|mode| format!("merge {mode}")));
        parts.extend(
            self.max_parallel.iter().map(|number| format!("at most {} at once", counted(*number as usize, "agent"))),
        );
        parts.join(", ")
    }
}

impl fmt::Display for LaneExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lane = &self.lane;
        write!(f, "{}", lane.id)?;
        lane.name.iter().try_for_each(|name| write!(f, "  {}", visible_line(name)))?;
        writeln!(f)?;
        writeln!(f, "  wave {}, at most {}{}", self.wave, exact(self.time), self.after())?;
        for (on, origin) in &self.because {
            match origin {
                EdgeOrigin::Blocks => writeln!(f, "  after {on} because that one says that it blocks this one")?,
                EdgeOrigin::Interface(id) => writeln!(f, "  after {on} because it provides {}", visible_line(id))?,
            }
        }
        match lane.ownership {
            OwnershipRule::Enforced => write_list(f, "owns", &lane.owns)?,
            OwnershipRule::Advisory => write_list(f, "about", &lane.owns)?,
            OwnershipRule::Nothing => writeln!(f, "  changes nothing")?,
        }
        write_list(f, "uses", &lane.uses)?;
        write_list(f, "approval", &lane.approval)?;
        write_list(f, "set up", &user_setup::to_do(&lane.user_setup, |_| true))?;
        write_list(f, "copy", &lane.copy)?;
        write_list(f, "merge", lane.merge_style.as_slice())?;
        write_list(f, "closes", &lane.closes)?;
        write_list(f, "budget", &lane.budget.in_words())?;
        write_commands(f, "  ", "setup", &lane.setup)?;
        for (agent, limits) in lane.agents.iter().zip(&self.task_limits_ms) {
            write_agent(f, agent, limits)?;
        }
        write_commands(f, "  ", "tests", &lane.tests)?;
        if !self.has_gate {
            writeln!(f, "  no gate: nothing judges the work before it is merged")?;
        }
        write_must_haves(f, &lane.must_haves)
    }
}

fn write_must_haves(f: &mut fmt::Formatter<'_>, must_haves: &MustHaves) -> fmt::Result {
    let paths: Vec<&str> = must_haves.artifacts.iter().map(|artifact| artifact.path.as_str()).collect();
    let links = must_haves.key_links.iter().map(|link| format!("{} -> {}", link.from, link.to)).collect::<Vec<_>>();
    write_list(f, "must have", &paths)?;
    write_list(f, "must link", &links)
}

impl LaneExplanation {
    fn after(&self) -> String {
        if self.waits_for.is_empty() { String::new() } else { format!(", after {}", joined(&self.waits_for, ", ")) }
    }
}

fn write_agent(f: &mut fmt::Formatter<'_>, agent: &Agent, limits_ms: &[u64]) -> fmt::Result {
    let round = if agent.round == Round::Implementation { String::new() } else { format!(" ({})", agent.round) };
    match agent.runner == UNSET_RUNNER {
        true if !agent.runs_its_command() => writeln!(f, "  agent {}{round}", agent.name)?,
        true => writeln!(f, "  agent {}{round}  no runner is set", agent.name)?,
        false => writeln!(f, "  agent {}{round}  $ {}", agent.name, visible_line(&agent.command.to_string()))?,
    }
    write_options(f, &agent.options)?;
    write_list(f, "  fallback", agent.fallback.as_deref().unwrap_or_default())?;
    for (task, limit) in agent.tasks.iter().zip(limits_ms) {
        write!(f, "    task {}", task_title(&task.id, task.name.as_deref()))?;
        match task.kind.is_human() {
            true => writeln!(f, ", a person's ({})", task.kind)?,
            false => writeln!(f, ", at most {}", exact(Duration::from_millis(*limit)))?,
        }
        write_commands(f, "    ", "  run", task.command.as_slice())?;
        write_commands(f, "    ", "  verify", &task.verify)?;
    }
    Ok(())
}

/// `model opus, effort high, budget $1.50`.
fn write_options(f: &mut fmt::Formatter<'_>, options: &AgentOptions) -> fmt::Result {
    if options.is_empty() {
        return Ok(());
    }
    let given = options.set_options().into_iter().map(|(name, value)| match (name, options.budget) {
        ("budget", Some(budget)) => format!("budget {budget}"),
        _ => format!("{name} {value}"),
    });
    writeln!(f, "    {}", visible_line(&given.collect::<Vec<_>>().join(", ")))
}

fn task_title(id: &TaskId, name: Option<&str>) -> String {
    name.map_or_else(|| id.to_string(), |name| format!("{id}: {}", visible_line(name)))
}

fn write_list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, label: &str, list: &[T]) -> fmt::Result {
    if list.is_empty() { Ok(()) } else { writeln!(f, "  {label} {}", visible_line(&joined(list, ", "))) }
}

fn write_commands(f: &mut fmt::Formatter<'_>, indent: &str, label: &str, commands: &[CommandLine]) -> fmt::Result {
    commands.iter().try_for_each(|command| writeln!(f, "{indent}{label}  $ {}", visible_line(&command.to_string())))
}

fn joined<T: fmt::Display>(list: &[T], between: &str) -> String {
    list.iter().map(T::to_string).collect::<Vec<_>>().join(between)
}

impl fmt::Display for InterfaceExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match (&self.provider, self.closed) {
            (_, true) => "closed".to_owned(),
            (Some(lane), false) => format!("closes when {lane} is merged"),
            (None, false) => "open, and no lane of this plan provides it".to_owned(),
        };
        write!(f, "{}, {how}", visible_line(&self.id))
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((one, other), (left, right)) = (&self.lanes, &self.globs);
        write!(f, "{one} ({}), {other} ({})", visible_line(left), visible_line(right))?;
        self.example.iter().try_for_each(|path| write!(f, ", for example {}", visible_line(path)))
    }
}
