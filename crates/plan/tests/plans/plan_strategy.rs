//! Any plan that a reader can make.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use lanewright_model::plan::{AgentWorktrees, Interface, OwnershipRule, RetryFrom};
use lanewright_model::{
    Agent, AgentOptions, Approval, Artifact, Budget, CommandLine, Dollars, Gates, KeyLink, Lane, LaneIndex,
    MergeChoice, MergeStyle, MustHaves, Plan, PlanParts, Resources, Round, SetupStep, SetupVariable, Task, TaskKind,
    Timeouts, UserSetup,
};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

/// Any plan that a reader can make: one to four lanes, each with files of its own.
pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    let head = ("[A-Z][0-9]{1,3}", option::of(text()), option::of("[a-z]{1,8}/[a-z]{1,8}"), option::of(1..100u32));
    let tail = (
        timeouts(),
        btree_map(text_key(), 1..9u32, 0..3),
        gates(),
        option::of(select(MergeChoice::ALL)),
        commit_message(),
    );
    let lanes = vec((lane(), any::<u8>(), any::<u8>(), any::<u8>()), 1..5);
    let interfaces = btree_map("IF-[0-9]", (text(), any::<bool>(), option::of(any::<u8>())), 0..3);
    (head, tail, lanes, interfaces).prop_map(
        |(
            (phase, title, base_branch, max_parallel),
            (timeouts, pools, gates, merge, commit_message),
            drawn,
            interfaces,
        )| {
            let interface = |(id, (text, closed, provider)): (String, (String, bool, Option<u8>))| {
                let provider = provider.map(|lane| index(usize::from(lane) % drawn.len()));
                Interface { id, text, closed, provider }
            };
            let interfaces = interfaces.into_iter().map(interface).collect();
            let mut exclusions = BTreeSet::new();
            let earlier = |at: usize, bits: u8| (0..at).filter(move |other| bits >> other & 1 == 1).map(index);
            let lanes = drawn.into_iter().enumerate().map(|(at, (mut lane, depends, excludes, uses))| {
                lane.id = format!("L{at}").parse().unwrap();
                lane.owns = lane.owns.iter().map(|glob| format!("l{at}/{glob}")).collect();
                lane.depends_on = earlier(at, depends).collect();
                lane.uses = pools
                    .keys()
                    .enumerate()
                    .filter(|(at, _)| uses >> at & 1 == 1)
                    .map(|(_, name)| name.clone())
                    .collect();
                exclusions.extend(earlier(at, excludes).map(|other| (other, index(at))));
                lane
            });
            let mut lanes: Vec<Lane> = lanes.collect();
            choose_styles(&mut lanes, merge);
            let exclusions = exclusions.into_iter().collect();
            let phase = phase.parse().unwrap();
            Plan::new(PlanParts {
                phase,
                title,
                base_branch,
                max_parallel,
                merge,
                timeouts,
                pools,
                gates,
                require_gates: max_parallel.map(|count| count % 2 == 0),
                lanes,
                exclusions,
                sequences: Vec::new(),
                added_edges: Vec::new(),
                interfaces,
                skipped: Vec::new(),
                lists: Vec::new(),
                companions: Vec::new(),
                runners: Default::default(),
                executors: Default::default(),
                commit_message,
                replaced: Vec::new(),
                prompts: Default::default(),
            })
            .unwrap()
        },
    )
}

/// Leaves out what a reader would not keep: a style where nothing is merged, and the plan's own.
fn choose_styles(lanes: &mut [Lane], merge: Option<MergeChoice>) {
    let common = merge.map(MergeChoice::style);
    for (at, lane) in lanes.iter_mut().enumerate() {
        let is_of_all = at == 0 && common.is_none();
        lane.merge_style =
            lane.merge_style.filter(|style| !is_of_all && common != Some(None) && common != Some(Some(*style)));
    }
}

fn index(at: usize) -> LaneIndex {
    LaneIndex(u32::try_from(at).unwrap())
}

fn commit_message() -> impl Strategy<Value = Option<String>> {
    option::of(
        select(&["{{ lane }}: {{ task_name }}", "work\n\n\"{{ files | join(', ') }}\""][..]).prop_map(str::to_owned),
    )
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zA-Z ]{0,12}", "[^\u{0}]{0,12}", "\n?[\"'\\\\\r\n\t a]{0,8}"]
}

fn text_key() -> impl Strategy<Value = String> {
    "[^\u{0}=]{1,6}"
}

fn time() -> impl Strategy<Value = Duration> {
    (1..366 * 24 * 3_600_000u64).prop_map(Duration::from_millis)
}

fn command() -> impl Strategy<Value = CommandLine> {
    prop_oneof![
        "[a-z]{1,5}[^\u{0}]{0,8}".prop_map(CommandLine::Shell),
        ("[a-z./]{1,8}", vec(text(), 0..3)).prop_map(|(program, arguments)| {
            CommandLine::Arguments(std::iter::once(program).chain(arguments).collect())
        }),
    ]
}

fn commands() -> impl Strategy<Value = Vec<CommandLine>> {
    vec(command(), 0..3)
}

fn env() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map(text_key(), text(), 0..3)
}

fn timeouts() -> impl Strategy<Value = Timeouts> {
    let default = Timeouts::default();
    let gate = prop_oneof![Just(default.gate), time()];
    let kill_after = prop_oneof![Just(default.kill_after), time()];
    (option::of(time()), gate, kill_after).prop_map(|(agent, gate, kill_after)| Timeouts { agent, gate, kill_after })
}

fn gates() -> impl Strategy<Value = Gates> {
    (commands(), commands(), commands(), commands()).prop_map(|(atomic, checkpoint, last, edit)| Gates {
        atomic,
        checkpoint,
        last,
        edit,
    })
}

fn must_haves() -> impl Strategy<Value = MustHaves> {
    let limits = (option::of(any::<u32>()), option::of(text()), vec(text(), 0..2));
    let artifact = ("[a-z]{1,4}", option::of(text()), limits).prop_map(|(path, provides, limits)| {
        let (min_lines, contains, exports) = limits;
        Artifact { path, provides, min_lines, contains, exports }
    });
    let link = ("[a-z]{1,4}", text(), option::of(text()), option::of(text()));
    let link = link.prop_map(|(from, to, via, pattern)| KeyLink { from, to, via, pattern });
    (vec(text(), 0..2), vec(artifact, 0..2), vec(link, 0..2)).prop_map(|(truths, artifacts, key_links)| MustHaves {
        truths,
        artifacts,
        key_links,
    })
}

fn user_setup() -> impl Strategy<Value = Vec<UserSetup>> {
    let variable = ("[A-Z]{1,4}", option::of(text())).prop_map(|(name, source)| SetupVariable { name, source });
    let step = ("[a-z]{1,4}", option::of(text())).prop_map(|(task, location)| SetupStep { task, location });
    let service = (text(), option::of(text()), vec(variable, 0..2), vec(step, 0..2));
    let service = service.prop_map(|(service, why, env_vars, dashboard_config)| UserSetup {
        service,
        why,
        env_vars,
        dashboard_config,
    });
    vec(service, 0..2)
}

/// A lane without id, place and relations.
fn lane() -> impl Strategy<Value = Lane> {
    let said = (option::of(text()), vec("[a-z*?]{1,3}", 0..3), commands(), option::of(time()), 0..=100u32);
    let approval = subsequence(Approval::ALL.to_vec(), 0..=Approval::ALL.len());
    let merge = (option::of(select(MergeStyle::ALL)), option::of(1..4_000_000_000_u64));
    let made = (approval, commands(), btree_set("[a-z]{1,4}", 0..3), env(), merge);
    let kinds = (
        select(RetryFrom::ALL),
        select(AgentWorktrees::ALL),
        select(OwnershipRule::ALL),
        (must_haves(), user_setup(), option::of(text())),
    );
    (said, made, kinds, job(), agents()).prop_map(
        |(
            (name, owns, tests, timeout, retries),
            (approval, setup, copy, env, (merge_style, tokens)),
            kinds,
            job,
            agents,
        )| {
            let (resume, agent_worktrees, ownership, (must_haves, user_setup, criteria)) = kinds;
            let owns = owns.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
            let (depends_on, uses) = (Vec::new(), Vec::new());
            let copy: Vec<String> = copy.into_iter().collect();
            // Jobs are copied nothing.
            let (executor, resources) = job.filter(|_| copy.is_empty()).unzip();
            let id = "L".parse().unwrap();
            Lane {
                id,
                name,
                depends_on,
                owns,
                ownership,
                must_haves,
                user_setup,
                criteria,
                tests,
                has_usual_tests: false,
                approval,
                timeout,
                closes: tokens.map(|tokens| format!("#{tokens}")).into_iter().collect(),
                budget: Budget { cost: tokens.and_then(|tokens| Dollars::new(tokens as f64 / 1e4)), tokens },
                retries,
                uses,
                setup,
                copy,
                env,
                merge_style,
                resume,
                agent_worktrees,
                executor: executor.map(str::to_owned),
                resources: resources.unwrap_or_default(),
                agents,
            }
        },
    )
}

/// An executor and what its job asks for.
fn job() -> impl Strategy<Value = Option<(&'static str, Resources)>> {
    let number = || option::of((1..100u32).prop_map(|number| NonZeroU32::new(number).unwrap()));
    let asked = (number(), number(), number(), option::of("[a-z]{1,5}:[0-9]"), option::of(time()));
    let asked =
        asked.prop_map(|(cpus, memory_mib, gpus, image, time)| Resources { cpus, memory_mib, gpus, image, time });
    option::of((select(vec!["hpc", "pods"]), asked))
}

/// Implementation agents that share some tasks and have others for themselves, and specialists.
fn agents() -> impl Strategy<Value = Vec<Agent>> {
    let drawn =
        vec((agent(), select(vec![Round::Requirements, Round::Implementation, Round::Review]), any::<bool>()), 1..4);
    let tasks = prop_oneof![1 => Just(Vec::new()), 2 => vec((task(), any::<u8>()), 1..5)];
    (drawn, tasks, option::of(time()), any::<bool>()).prop_map(|(drawn, tasks, max_time, lone)| {
        let with_round = |(agent, round, allow_empty)| Agent {
            round,
            allow_empty: allow_empty && round == Round::Implementation,
            ..agent
        };
        let mut agents: Vec<Agent> = drawn.into_iter().map(with_round).collect();
        if lone {
            agents = vec![plain(agents.remove(0))];
        }
        name_and_employ(agents, &tasks, max_time)
    })
}

fn plain(agent: Agent) -> Agent {
    let name = if agent.runner == "command" { "agent" } else { &agent.runner };
    let name = name.parse().unwrap();
    Agent { name, env: BTreeMap::new(), timeout: None, ..agent }
}

fn name_and_employ(mut agents: Vec<Agent>, tasks: &[(Task, u8)], max_time: Option<Duration>) -> Vec<Agent> {
    let several = agents.len() > 1;
    let workers = agents.iter().filter(|agent| agent.round == Round::Implementation).count();
    let mut worker = 0;
    for (at, agent) in agents.iter_mut().enumerate() {
        if several {
            agent.name = format!("agent-{at}").parse().unwrap();
        }
        let only = |id: &str, max_time| Task { id: id.parse().unwrap(), max_time, ..agent.tasks[0].clone() };
        agent.tasks = match agent.round {
            Round::Requirements => vec![only("report", None)],
            Round::Judge => vec![only("judge", None)],
            Round::Review => vec![only("review", None)],
            Round::Implementation => {
                let number = worker;
                worker += 1;
                // The first task is everybody's, so that nobody is without.
                let mine = |at: usize, owner: u8| {
                    at == 0
                        || usize::from(owner) % (workers + 1) == workers
                        || usize::from(owner) % (workers + 1) == number
                };
                let chosen = tasks.iter().enumerate().filter(|(at, (_, owner))| mine(*at, *owner));
                let own: Vec<Task> = chosen
                    .map(|(at, (task, _))| Task { id: format!("t{at}").parse().unwrap(), ..task.clone() })
                    .collect();
                if own.is_empty() { vec![only("1", max_time)] } else { own }
            }
        };
    }
    agents
}

/// An agent with one bare task.
fn agent() -> impl Strategy<Value = Agent> {
    let program = prop_oneof![
        Just(("claude".to_owned(), crate::native_plans::runners("claude").unwrap())),
        command().prop_map(|command| ("codex".to_owned(), command)),
        command().prop_map(|command| ("command".to_owned(), command)),
    ];
    let fallback = option::of(vec(Just("claude".to_owned()), 0..2));
    (program, fallback, env(), option::of(time()), prompt(), options()).prop_map(
        |((runner, command), fallback, env, timeout, prompt, options)| {
            let task = Task {
                id: "1".parse().unwrap(),
                name: None,
                kind: TaskKind::Auto,
                prompt,
                command: None,
                verify: Vec::new(),
                max_time: None,
                files: Vec::new(),
                interfaces: Vec::new(),
                acceptance_criteria: Vec::new(),
                allow_empty: false,
            };
            let name = "some-agent".parse().unwrap();
            Agent {
                name,
                round: Round::Implementation,
                command,
                runner,
                fallback,
                options,
                env,
                timeout,
                allow_empty: false,
                candidate: None,
                tasks: vec![task],
            }
        },
    )
}

fn options() -> impl Strategy<Value = AgentOptions> {
    let word = || option::of(select(&["large", "high", "a/b"][..]).prop_map(str::to_owned));
    let budget = option::of((1..1000_u32).prop_map(|cents| Dollars::new(f64::from(cents) / 100.0).unwrap()));
    (word(), word(), option::of(1..1_000_000_u32), budget).prop_map(|(model, effort, max_turns, budget)| AgentOptions {
        model,
        effort,
        max_turns,
        budget,
    })
}

/// An empty one is refused.
fn prompt() -> impl Strategy<Value = String> {
    text().prop_filter("blank", |text| !text.trim().is_empty())
}

fn task() -> impl Strategy<Value = Task> {
    let lists = (vec(text(), 0..3), vec(text(), 0..3), vec(text(), 0..3));
    let work = (option::of(command()), commands());
    (option::of(text()), prompt(), work, option::of(time()), lists, any::<bool>()).prop_map(
        |(name, prompt, (command, verify), max_time, (files, interfaces, acceptance_criteria), allow_empty)| {
            let id = "t".parse().unwrap();
            // What a person does has no commands of its own.
            let is_persons = command.is_none() && verify.is_empty();
            let kind = if is_persons { TaskKind::Decision } else { TaskKind::Auto };
            Task {
                id,
                name,
                kind,
                prompt,
                command,
                verify,
                max_time,
                files,
                interfaces,
                acceptance_criteria,
                allow_empty,
            }
        },
    )
}
