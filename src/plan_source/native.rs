//! The native format (SPEC §3.1): a tree into a draft.

use super::draft::{
    AgentDraft, InterfaceDraft, LaneDraft, Overlaps, PlanDraft, ProgramDraft, PromptDraft, TaskDraft, TimeoutsDraft,
};
use super::faults::{Faults, quoted};
use super::fields::Fields;
use super::scalar::{command, commands, duration, flag, full_text, list, number, text, word, written};
use super::source_text::At;
use super::tree::{Node, Value};
use crate::model::plan::{AgentWorktrees, OwnershipRule, RetryFrom};
use crate::model::{Approval, Artifact, Gates, KeyLink, MergeMode, MustHaves, Round, TaskKind};

/// The most often that a failed task may be tried again.
pub(super) const MAX_RETRIES: u32 = 100;

/// Keys of a lane that cannot be the same for all.
pub(super) const NOT_IN_DEFAULTS: [&str; 6] = ["id", "name", "depends_on", "excludes", "wave", "must_haves"];

/// Reads a whole plan.
pub(super) fn plan<'a>(root: Node, faults: &'a Faults<'a>) -> Option<PlanDraft> {
    let mut fields = Fields::new(without_schema(root), "a plan", faults)?;
    let draft = PlanDraft {
        phase: fields.required("phase", "name the phase, for example `P1`", written),
        title: fields.read("title", text),
        base_branch: fields.read("base_branch", full_text),
        max_parallel: fields.read("max_parallel", |node, faults| number(node, 1, 10_000, faults)),
        merge: fields.read("merge", word(MergeMode::ALL, MergeMode::word)),
        timeouts: fields.read("timeouts", timeouts).unwrap_or_default(),
        pools: fields.read("pools", pools).unwrap_or_default(),
        gates: fields.read("gates", gates).unwrap_or_default(),
        defaults: fields.read("defaults", defaults).unwrap_or_default(),
        interfaces: fields.read("interface", tables(interface)).unwrap_or_default(),
        lanes: fields.required("lane", "a plan has at least one lane", lanes).unwrap_or_default(),
        skipped: Vec::new(),
        overlaps: Overlaps::Refused,
        is_partial: false,
    };
    fields.finish();
    Some(draft)
}

fn lanes<'a>(node: Node, faults: &'a Faults<'a>) -> Option<Vec<LaneDraft>> {
    if node.value == Value::List(Vec::new()) {
        faults.error_with(node.span, "this plan has no lane", "a plan has at least one lane");
    }
    tables(lane)(node, faults)
}

/// Leaves out `$schema`, which is for editors.
fn without_schema(mut root: Node) -> Node {
    if let Value::Table(entries) = &mut root.value {
        entries.retain(|entry| entry.key.value != "$schema");
    }
    root
}

/// A list of tables.
fn tables<'a, T>(
    reader: impl Fn(Node, &'a Faults<'a>) -> Option<T>,
) -> impl FnOnce(Node, &'a Faults<'a>) -> Option<Vec<T>> {
    move |node, faults| match node.value {
        Value::List(nodes) => Some(nodes.into_iter().filter_map(|node| reader(node, faults)).collect()),
        other => {
            let message = format!("a list of tables is wanted here, not {}", other.kind());
            faults.error_with(node.span, message, "in TOML, write each one under a header in double brackets");
            None
        }
    }
}

fn timeouts<'a>(node: Node, faults: &'a Faults<'a>) -> Option<TimeoutsDraft> {
    let mut fields = Fields::new(node, "`timeouts`", faults)?;
    let draft = TimeoutsDraft {
        agent: fields.read("agent", duration),
        gate: fields.read("gate", duration),
        kill_after: fields.read("kill_after", duration),
    };
    fields.finish();
    Some(draft)
}

fn gates<'a>(node: Node, faults: &'a Faults<'a>) -> Option<Gates> {
    let mut fields = Fields::new(node, "`gates`", faults)?;
    let gates = Gates {
        atomic: fields.read("atomic", commands).unwrap_or_default(),
        checkpoint: fields.read("checkpoint", commands).unwrap_or_default(),
        last: fields.read("final", commands).unwrap_or_default(),
    };
    fields.finish();
    Some(gates)
}

fn pools(node: Node, faults: &Faults<'_>) -> Option<Vec<(At<String>, u32)>> {
    let Value::Table(entries) = node.value else {
        faults.error_with(node.span, "`pools` is a table of names and sizes", "write for example `heavy = 1`");
        return None;
    };
    let size = |node| Some(number(node, 1, u32::MAX, faults)?.value);
    Some(entries.into_iter().filter_map(|entry| Some((entry.key, size(entry.value)?))).collect())
}

fn env(node: Node, faults: &Faults<'_>) -> Option<Vec<(At<String>, String)>> {
    let Value::Table(entries) = node.value else {
        faults.error_with(
            node.span,
            "`env` is a table of names and values",
            "write for example `env = { CI = \"1\" }`",
        );
        return None;
    };
    let value = |node| Some(written(node, faults)?.value);
    let mut variables = Vec::new();
    for entry in entries {
        if entry.key.value.is_empty() || entry.key.value.contains('=') {
            let message = format!("{} cannot name an environment variable", quoted(&entry.key.value));
            faults.error_with(entry.key.span, message, "use letters, digits and `_`");
        } else if let Some(value) = value(entry.value) {
            variables.push((entry.key, value));
        }
    }
    Some(variables)
}

fn defaults<'a>(mut node: Node, faults: &'a Faults<'a>) -> Option<LaneDraft> {
    if let Value::Table(entries) = &mut node.value {
        entries.retain(|entry| {
            let own = NOT_IN_DEFAULTS.contains(&entry.key.value.as_str());
            if own {
                let message = format!("`{}` cannot be the same for all lanes", entry.key.value);
                faults.error_with(entry.key.span, message, "write it in each lane");
            }
            !own
        });
    }
    Some(lane_keys(Fields::new(node, "`defaults`", faults)?))
}

fn lane<'a>(node: Node, faults: &'a Faults<'a>) -> Option<LaneDraft> {
    let mut fields = Fields::new(node, "a lane", faults)?;
    let id = fields.required("id", "name the lane, for example `SL-1`", written);
    Some(LaneDraft { id, ..lane_keys(fields) })
}

fn lane_keys(mut fields: Fields<'_>) -> LaneDraft {
    let draft = LaneDraft {
        span: fields.span(),
        id: None,
        name: fields.read("name", text),
        depends_on: fields.read("depends_on", list(written)).unwrap_or_default(),
        also_after: Vec::new(),
        excludes: fields.read("excludes", list(written)).unwrap_or_default(),
        wave: fields.read("wave", |node, faults| number(node, 0, u32::MAX, faults)),
        owns: fields.read("owns", list(text)),
        ownership: fields.read("ownership", word(OwnershipRule::ALL, OwnershipRule::word)),
        must_haves: fields.read("must_haves", must_haves).unwrap_or_default(),
        tests: fields.read("tests", commands),
        timeout: fields.read("timeout", duration),
        retries: fields.read("retries", |node, faults| number(node, 0, MAX_RETRIES, faults)),
        approval: fields.read("approval", list(word(Approval::ALL, Approval::word))),
        uses: fields.read("uses", list(text)),
        setup: fields.read("setup", commands),
        copy: fields.read("copy", list(text)),
        env: fields.read("env", env).unwrap_or_default(),
        resume: fields.read("resume", word(RetryFrom::ALL, RetryFrom::word)),
        merge: fields.read("merge", word(MergeMode::ALL, MergeMode::word)),
        agent_worktrees: fields.read("agent_worktrees", word(AgentWorktrees::ALL, AgentWorktrees::word)),
        program: program(&mut fields),
        prompt: prompt(&mut fields),
        max_time: fields.read("max_time", duration),
        allow_empty: fields.read("allow_empty", flag),
        tasks: fields.read("task", tables(task)),
        agents: fields.read("agent", tables(agent)),
    };
    fields.finish();
    draft
}

fn interface<'a>(node: Node, faults: &'a Faults<'a>) -> Option<InterfaceDraft> {
    let mut fields = Fields::new(node, "an interface", faults)?;
    let id = fields.required("id", "name the interface, for example `IF-0-P1-LEDGER`", written);
    let text = fields.read("text", text).map(|text| text.value).unwrap_or_default();
    let closed = fields.read("closed", flag).unwrap_or_default();
    let provider = fields.read("provider", written);
    fields.finish();
    Some(InterfaceDraft { id: id?, text, closed, provider })
}

fn must_haves<'a>(node: Node, faults: &'a Faults<'a>) -> Option<MustHaves> {
    let mut fields = Fields::new(node, "`must_haves`", faults)?;
    let must_haves = MustHaves {
        truths: fields.read("truths", list(text)).map(values).unwrap_or_default(),
        artifacts: fields.read("artifacts", tables(artifact)).unwrap_or_default(),
        key_links: fields.read("key_links", tables(key_link)).unwrap_or_default(),
    };
    fields.finish();
    Some(must_haves)
}

fn artifact<'a>(node: Node, faults: &'a Faults<'a>) -> Option<Artifact> {
    let mut fields = Fields::new(node, "an artifact", faults)?;
    let path = fields.required("path", "name the file, relative to the repository's root", full_text);
    let artifact = Artifact {
        path: String::new(),
        provides: fields.read("provides", text).map(|text| text.value),
        min_lines: fields.read("min_lines", |node, faults| number(node, 0, u32::MAX, faults)).map(|lines| lines.value),
        contains: fields.read("contains", text).map(|text| text.value),
        exports: fields.read("exports", list(text)).map(values).unwrap_or_default(),
    };
    fields.finish();
    Some(Artifact { path: path?.value, ..artifact })
}

fn key_link<'a>(node: Node, faults: &'a Faults<'a>) -> Option<KeyLink> {
    let mut fields = Fields::new(node, "a key link", faults)?;
    let from = fields.required("from", "name the file, relative to the repository's root", full_text);
    let link = KeyLink {
        from: String::new(),
        to: fields.read("to", text).map(|text| text.value).unwrap_or_default(),
        via: fields.read("via", text).map(|text| text.value),
        pattern: fields.read("pattern", text).map(|text| text.value),
    };
    fields.finish();
    Some(KeyLink { from: from?.value, ..link })
}

fn values(texts: Vec<At<String>>) -> Vec<String> {
    texts.into_iter().map(|text| text.value).collect()
}

fn program(fields: &mut Fields<'_>) -> ProgramDraft {
    let read = |fields: &mut Fields<'_>| (fields.read("command", command), fields.read("runner", full_text));
    let ((command, runner), faulty) = fields.observe(read);
    ProgramDraft { command, runner, faulty }
}

fn prompt(fields: &mut Fields<'_>) -> PromptDraft {
    PromptDraft { text: fields.read("prompt", text), file: fields.read("prompt_file", full_text) }
}

fn task<'a>(node: Node, faults: &'a Faults<'a>) -> Option<TaskDraft> {
    let mut fields = Fields::new(node, "a task", faults)?;
    let draft = TaskDraft {
        span: fields.span(),
        id: fields.read("id", written),
        name: fields.read("name", text),
        kind: fields.read("type", word(TaskKind::ALL, TaskKind::word)),
        prompt: prompt(&mut fields),
        verify: fields.read("verify", commands).unwrap_or_default(),
        max_time: fields.read("max_time", duration),
        files: fields.read("files", list(text)).unwrap_or_default(),
        interfaces: fields.read("interfaces", list(text)).unwrap_or_default(),
        acceptance_criteria: fields.read("acceptance_criteria", list(text)).unwrap_or_default(),
        agent: fields.read("agent", written),
        allow_empty: fields.read("allow_empty", flag).unwrap_or_default(),
    };
    fields.finish();
    Some(draft)
}

fn agent<'a>(node: Node, faults: &'a Faults<'a>) -> Option<AgentDraft> {
    let mut fields = Fields::new(node, "an agent", faults)?;
    let draft = AgentDraft {
        span: fields.span(),
        name: fields.read("name", written),
        round: fields.read("round", word(Round::ALL, Round::word)),
        program: program(&mut fields),
        timeout: fields.read("timeout", duration),
        env: fields.read("env", env).unwrap_or_default(),
        prompt: prompt(&mut fields),
        allow_empty: fields.read("allow_empty", flag),
    };
    fields.finish();
    Some(draft)
}
