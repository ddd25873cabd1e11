//! Examples of each command, for its help and its manual page.

/// A line to type, and what it is for.
pub(crate) type Example = (&'static str, &'static str);

/// The examples of the command with this path below `lanekeeper`, for example `plan check`; empty for the program.
pub(crate) fn examples_of(path: &str) -> &'static [Example] {
    EXAMPLES.iter().find(|(command, _)| *command == path).map_or(&[], |(_, examples)| examples)
}

const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "",
        &[
            ("lanekeeper plan check plan.toml", "is the plan valid?"),
            ("lanekeeper execute-phase plan.toml", "run its lanes"),
            ("lanekeeper demo", "see a run first"),
        ],
    ),
    (
        "execute-phase",
        &[
            ("lanekeeper execute-phase plan.toml --dry-run", "what would run"),
            ("lanekeeper execute-phase plan.toml --runner claude", "with Claude Code"),
        ],
    ),
    (
        "execute-lane",
        &[
            ("lanekeeper execute-lane plan.toml SL-1", "one lane"),
            ("lanekeeper execute-lane plan.toml --next", "the first ready one"),
        ],
    ),
    (
        "resume",
        &[
            ("lanekeeper resume", "the unfinished run"),
            ("lanekeeper resume r1 -m 'Use the v2 API'", "with advice for its agents"),
        ],
    ),
    (
        "rollback",
        &[
            ("lanekeeper rollback r1 --lane SL-1", "start one lane over"),
            ("lanekeeper rollback --yes", "all lanes of the unfinished run"),
        ],
    ),
    (
        "plan",
        &[
            ("lanekeeper plan check plan.toml", "report every problem"),
            ("lanekeeper plan show .planning/phases/02-api", "the lanes of a GSD phase"),
        ],
    ),
    (
        "plan check",
        &[
            ("lanekeeper plan check plan.toml", "report every problem"),
            ("lanekeeper plan check phase.md --strict", "missing parts are errors, too"),
        ],
    ),
    (
        "plan show",
        &[
            ("lanekeeper plan show plan.toml", "lanes, waves, critical path"),
            ("lanekeeper plan show plan.toml --prompts", "what the agents will read"),
        ],
    ),
    (
        "plan graph",
        &[
            ("lanekeeper plan graph plan.toml --as svg > plan.svg", "a picture"),
            ("lanekeeper plan graph plan.toml --as text --run CI-1", "states of a run"),
            ("lanekeeper plan graph plan.toml --as mermaid", "for Markdown"),
        ],
    ),
    (
        "plan convert",
        &[
            ("lanekeeper plan convert phase.md > plan.toml", "from Markdown"),
            ("lanekeeper plan convert .planning/phases/02-api", "from a GSD phase"),
        ],
    ),
    (
        "plan schema",
        &[
            ("lanekeeper plan schema > plan.schema.json", "for an editor"),
            ("lanekeeper plan schema | jq .properties.lane", "the keys of a lane"),
        ],
    ),
    (
        "plan new",
        &[
            ("lanekeeper plan new plan.toml", "asks on a terminal"),
            ("lanekeeper plan new --phase P1 --lane SL-API --runner claude", "asks nothing"),
        ],
    ),
    (
        "retry",
        &[
            ("lanekeeper retry SL-API -m 'Use the v2 API'", "with advice"),
            ("lanekeeper retry SL-API SL-WEB", "two lanes"),
        ],
    ),
    (
        "skip",
        &[
            ("lanekeeper skip SL-API -m 'done by hand'", "with a reason"),
            ("lanekeeper skip r1 SL-API --resume", "and go on at once"),
        ],
    ),
    ("list", &[("lanekeeper list", "all runs"), ("lanekeeper list --format json | jq .", "for programs")]),
    (
        "diff",
        &[
            ("lanekeeper diff SL-API --stat", "which files a lane changed"),
            ("lanekeeper diff r1 SL-API agent", "what one agent changed"),
        ],
    ),
    ("path", &[("lanekeeper path SL-API", "of a lane"), ("lanekeeper path SL-API agent", "of one of its agents")]),
    (
        "open",
        &[
            ("lanekeeper open SL-API", "in your editor"),
            ("lanekeeper open SL-API --with 'git status'", "a command in it"),
        ],
    ),
    (
        "status",
        &[
            ("lanekeeper status SL-API", "everything about one lane"),
            ("lanekeeper status --watch", "the unfinished run, as it goes"),
            ("lanekeeper status --settings", "every setting and its origin"),
        ],
    ),
    (
        "logs",
        &[
            ("lanekeeper logs r1 SL-1", "one lane"),
            ("lanekeeper logs r1 SL-1 agent --follow", "one agent, as it writes"),
        ],
    ),
    (
        "report",
        &[
            ("lanekeeper report r1", "what happened, and how long it took"),
            ("lanekeeper report --format junit -o junit.xml", "for a CI service"),
        ],
    ),
    (
        "stop",
        &[
            ("lanekeeper stop r1", "the agents end, and resume continues"),
            ("lanekeeper stop r1 SL-1 --force", "kill the agents of one lane"),
        ],
    ),
    (
        "approve",
        &[
            ("lanekeeper approve SL-1 --resume", "and go on at once"),
            ("lanekeeper approve r1 SL-1 --gate changes -m 'Well done'", "one gate"),
        ],
    ),
    (
        "reject",
        &[
            ("lanekeeper reject r1 SL-1 -m 'Keep the old names'", "with a reason"),
            ("lanekeeper reject r1 SL-1 --gate plan -m 'Too large'", "one gate"),
        ],
    ),
    (
        "checkpoints",
        &[
            ("lanekeeper checkpoints list r1", "what can be restored"),
            ("lanekeeper checkpoints restore latest:SL-1", "the newest of a lane"),
        ],
    ),
    (
        "checkpoints list",
        &[
            ("lanekeeper checkpoints list", "of the unfinished run"),
            ("lanekeeper checkpoints list r1 --lane SL-1", "of one lane"),
        ],
    ),
    (
        "checkpoints show",
        &[
            ("lanekeeper checkpoints show latest:SL-1", "the newest of a lane"),
            ("lanekeeper checkpoints show 4f2a91c", "by its commit"),
        ],
    ),
    (
        "checkpoints create",
        &[
            ("lanekeeper checkpoints create r1 SL-1 -m 'Before the API'", "with a note"),
            ("lanekeeper checkpoints create r1 SL-1 agent", "of one agent"),
        ],
    ),
    (
        "checkpoints restore",
        &[
            ("lanekeeper checkpoints restore latest:SL-1", "into its worktree"),
            ("lanekeeper checkpoints restore 4f2a91c --to /tmp/look", "elsewhere"),
        ],
    ),
    (
        "checkpoints prune",
        &[
            ("lanekeeper checkpoints prune r1 --keep 3", "the newest 3 of each lane stay"),
            ("lanekeeper checkpoints prune --older-than 7d --dry-run", "only show"),
        ],
    ),
    (
        "state",
        &[("lanekeeper state push", "on this machine"), ("lanekeeper state pull", "on another, before `resume`")],
    ),
    (
        "state push",
        &[
            ("lanekeeper state push", "the unfinished run, to origin"),
            ("lanekeeper state push r1 --remote backup", "to another remote"),
        ],
    ),
    (
        "state pull",
        &[
            ("lanekeeper state pull", "the unfinished run of this branch"),
            ("lanekeeper state pull r1 --worktree-root ../lanes", "one run"),
        ],
    ),
    (
        "state list",
        &[
            ("lanekeeper state list", "what origin has"),
            ("lanekeeper state list --remote backup", "what another remote has"),
        ],
    ),
    (
        "state drop",
        &[
            ("lanekeeper state drop", "finished and published runs"),
            ("lanekeeper state drop r1 --force", "one run, whatever its state"),
        ],
    ),
    (
        "work",
        &[
            (
                "lanekeeper work git@host:runs.git refs/lanekeeper/state/r1 \\\n      9fceb02d0ae598e95dc970b74767f19372d61af8",
                "",
            ),
            (
                "lanekeeper work /srv/runs.git refs/lanekeeper/state/r1 \\\n      9fceb02d0ae598e95dc970b74767f19372d61af8 --cache /scratch/lanekeeper",
                "",
            ),
        ],
    ),
    (
        "log-error",
        &[
            (
                "lanekeeper log-error --phase P1 --plan SL-1 --task 1 --specialist api \\\n      \
                 --error-type timeout --details 'no answer in 10 minutes'",
                "",
            ),
            (
                "lanekeeper log-error --run r1 --lane SL-1 --phase P1 --plan SL-1 --task 1 \\\n      \
                 --specialist api --error-type timeout --details 'the server is down'",
                "",
            ),
        ],
    ),
    (
        "doctor",
        &[
            ("lanekeeper doctor", "check all runs, write nothing"),
            ("lanekeeper doctor r1 --fix", "repair one run"),
            ("lanekeeper doctor --executor cluster", "try a cluster with a job"),
        ],
    ),
    (
        "clean",
        &[
            ("lanekeeper clean --dry-run", "what finished runs left"),
            ("lanekeeper clean r1 --logs", "one run, with its logs and reports"),
        ],
    ),
    (
        "init",
        &[
            ("lanekeeper init --dry-run", "a diff of what would be written"),
            ("lanekeeper init --for codex,gemini", "for Codex and Gemini CLI"),
        ],
    ),
    (
        "hook",
        &[
            ("echo '{}' | lanekeeper hook session-start", "what a session is shown"),
            ("echo '{}' | lanekeeper hook stop", "what its end is shown"),
        ],
    ),
    (
        "mcp",
        &[
            ("claude mcp add lanekeeper -- lanekeeper mcp", "for Claude Code"),
            ("codex mcp add lanekeeper -- lanekeeper mcp", "for Codex"),
        ],
    ),
    (
        "notify",
        &[
            ("lanekeeper notify", "try the targets that are set"),
            ("LANEKEEPER_NOTIFY_DESKTOP=true lanekeeper notify", "try the desktop"),
        ],
    ),
    (
        "demo",
        &[
            ("lanekeeper demo", "about half a minute"),
            ("lanekeeper demo --fast", "a few seconds"),
            ("lanekeeper demo --keep --dir /tmp/demo", "look around afterwards"),
        ],
    ),
    (
        "completions",
        &[
            ("lanekeeper completions fish | source", "for this shell"),
            ("lanekeeper completions bash > lanekeeper.bash", "to install it"),
        ],
    ),
    (
        "man",
        &[
            ("lanekeeper man | man -l -", "read the page of the program"),
            ("lanekeeper man --dir ~/.local/share/man/man1", "install all pages"),
        ],
    ),
];
