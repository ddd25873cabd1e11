//! Examples of each command, for its help and its manual page.

/// A line to type, and what it is for.
pub(crate) type Example = (String, &'static str);

/// The examples of the command with this path below `lanewright`, for example `plan check`; empty for the program.
pub(crate) fn examples_of(path: &str) -> Vec<Example> {
    let section = format!("[{path}]\n");
    let rest = EXAMPLES.split_once(&section).map_or("", |(_, rest)| rest);
    let mut examples: Vec<Example> = Vec::new();
    for line in rest.lines().take_while(|line| !line.starts_with('[')) {
        if let Some((last, _)) = examples.last_mut().filter(|(last, _)| last.ends_with('\\')) {
            *last += &format!("\n{line}");
        } else {
            let (line, about) = line.split_once("  # ").unwrap_or((line, ""));
            examples.push((line.to_owned(), about));
        }
    }
    examples
}

/// Below the path of each command the lines to type, each with what it is for.
const EXAMPLES: &str = r#"
[]
lanewright plan check plan.toml  # is the plan valid?
lanewright execute-phase plan.toml  # run its lanes
lanewright demo  # see a run first
[execute-phase]
lanewright execute-phase plan.toml --dry-run  # what would run
lanewright execute-phase plan.toml --runner claude  # with Claude Code
[execute-lane]
lanewright execute-lane plan.toml SL-1  # one lane
lanewright execute-lane plan.toml --next  # the first ready one
[resume]
lanewright resume  # the unfinished run
lanewright resume r1 -m 'Use the v2 API'  # with advice for its agents
[tell]
lanewright tell SL-1 -m 'the v2 API is deployed now'  # of the unfinished run
lanewright tell r1 SL-1 -m "$(cat notes.md)"  # a longer text
[pick]
lanewright pick SL-1 2  # of the unfinished run
lanewright pick r1 SL-1 2 --resume  # and continue
[follow]
lanewright follow  # for two hours
lanewright follow r1 --once  # ask the forge once, as in a CI job
[rollback]
lanewright rollback r1 --lane SL-1  # start one lane over
lanewright rollback --yes  # all lanes of the unfinished run
[plan]
lanewright plan check plan.toml  # report every problem
lanewright plan show .planning/phases/02-api  # the lanes of a GSD phase
[plan check]
lanewright plan check plan.toml  # report every problem
lanewright plan check phase.md --strict  # missing parts are errors, too
[plan show]
lanewright plan show plan.toml  # lanes, waves, critical path
lanewright plan show plan.toml --prompts  # what the agents will read
[plan graph]
lanewright plan graph plan.toml --as svg > plan.svg  # a picture
lanewright plan graph plan.toml --as text --run CI-1  # states of a run
lanewright plan graph plan.toml --as mermaid  # for Markdown
[plan convert]
lanewright plan convert phase.md > plan.toml  # from Markdown
lanewright plan convert .planning/phases/02-api  # from a GSD phase
[plan schema]
lanewright plan schema > plan.schema.json  # for an editor
lanewright plan schema | jq .properties.lane  # the keys of a lane
[plan new]
lanewright plan new plan.toml  # asks on a terminal
lanewright plan new --phase P1 --lane SL-API --runner claude  # asks nothing
[retry]
lanewright retry SL-API -m 'Use the v2 API'  # with advice
lanewright retry SL-API SL-WEB  # two lanes
[recover]
lanewright recover SL-API  # the next level
lanewright recover r1 SL-API --error 'the port is in use'  # with the error
[skip]
lanewright skip SL-API -m 'done by hand'  # with a reason
lanewright skip r1 SL-API --resume  # and go on at once
[list]
lanewright list  # all runs
lanewright list --format json | jq .  # for programs
[diff]
lanewright diff SL-API --stat  # which files a lane changed
lanewright diff r1 SL-API agent  # what one agent changed
[path]
lanewright path SL-API  # of a lane
lanewright path SL-API agent  # of one of its agents
[open]
lanewright open SL-API  # in your editor
lanewright open SL-API --with 'git status'  # a command in it
[status]
lanewright status SL-API  # everything about one lane
lanewright status --watch  # the unfinished run, as it goes
lanewright status --settings  # every setting and its origin
[ui]
lanewright ui  # the unfinished run
lanewright ui @latest  # the newest run
[logs]
lanewright logs r1 SL-1  # one lane
lanewright logs r1 SL-1 agent --follow  # one agent, as it writes
[report]
lanewright report r1  # what happened, and how long it took
lanewright report --format junit -o junit.xml  # for a CI service
[stop]
lanewright stop r1  # the agents end, and resume continues
lanewright stop r1 SL-1 --force  # kill the agents of one lane
[gate]
lanewright gate atomic SL-1  # in the lane's worktree
lanewright gate final r1  # on the integration branch
[approve]
lanewright approve SL-1 --resume  # and go on at once
lanewright approve r1 SL-1 --gate changes -m 'Well done'  # one gate
[reject]
lanewright reject r1 SL-1 -m 'Keep the old names'  # with a reason
lanewright reject r1 SL-1 --gate plan -m 'Too large'  # one gate
[checkpoints]
lanewright checkpoints list r1  # what can be restored
lanewright checkpoints restore latest:SL-1  # the newest of a lane
[checkpoints list]
lanewright checkpoints list  # of the unfinished run
lanewright checkpoints list r1 --lane SL-1  # of one lane
[checkpoints show]
lanewright checkpoints show latest:SL-1  # the newest of a lane
lanewright checkpoints show 4f2a91c  # by its commit
[checkpoints create]
lanewright checkpoints create r1 SL-1 -m 'Before the API'  # with a note
lanewright checkpoints create SL-1 agent --context "$JSON"  # decisions
[checkpoints restore]
lanewright checkpoints restore latest:SL-1  # into its worktree
lanewright checkpoints restore 4f2a91c --to /tmp/look  # elsewhere
[checkpoints prune]
lanewright checkpoints prune r1 --keep 3  # the newest 3 of each lane stay
lanewright checkpoints prune --older-than 7d --dry-run  # only show
[state]
lanewright state push  # on this machine
lanewright state pull  # on another, before `resume`
[state push]
lanewright state push  # the unfinished run, to origin
lanewright state push r1 --remote backup  # to another remote
[state pull]
lanewright state pull  # the unfinished run of this branch
lanewright state pull r1 --worktree-root ../lanes  # one run
[state list]
lanewright state list  # what origin has
lanewright state list --remote backup  # what another remote has
[state drop]
lanewright state drop  # finished and published runs
lanewright state drop r1 --force  # one run, whatever its state
[publish]
lanewright publish  # the newest run
lanewright publish r1 --as pr  # in a pull request
[work]
lanewright work git@host:runs.git refs/lanewright/state/r1 \
      9fceb02d0ae598e95dc970b74767f19372d61af8
lanewright work /srv/runs.git refs/lanewright/state/r1 \
      9fceb02d0ae598e95dc970b74767f19372d61af8 --cache /scratch/lanewright
[ci]
lanewright ci plan.toml --timeout 5h  # in a job that may take six hours
lanewright ci plan.toml --approve SL-1  # what an earlier job waits for
[log-error]
lanewright log-error --phase P1 --plan SL-1 --task 1 --specialist api \
      --error-type timeout --details 'no answer in 10 minutes'
lanewright log-error --run r1 --lane SL-1 --phase P1 --plan SL-1 --task 1 \
      --specialist api --error-type timeout --details 'the server is down'
[log-event]
lanewright log-event deployed --data '{"to": "test"}'  # with data
lanewright log-event measured r1 --lane SL-1  # of a lane
[doctor]
lanewright doctor  # check all runs, write nothing
lanewright doctor r1 --fix  # repair one run
lanewright doctor --executor cluster  # try a cluster with a job
lanewright doctor --executor x --plan p.toml  # what its lanes ask for
[clean]
lanewright clean --dry-run  # what finished runs left
lanewright clean r1 --logs  # one run, with its logs and reports
[init]
lanewright init --dry-run  # a diff of what would be written
lanewright init --for codex,gemini  # for Codex and Gemini CLI
[hook]
echo '{}' | lanewright hook session-start  # what a session is shown
echo '{}' | lanewright hook stop  # what its end is shown
[mcp]
claude mcp add lanewright -- lanewright mcp  # for Claude Code
codex mcp add lanewright -- lanewright mcp  # for Codex
[notify]
lanewright notify  # try the targets that are set
LANEWRIGHT_NOTIFY_DESKTOP=true lanewright notify  # try the desktop
[demo]
lanewright demo  # about half a minute
lanewright demo --fast  # a few seconds
lanewright demo --keep --dir /tmp/demo  # look around afterwards
[completions]
lanewright completions fish | source  # for this shell
lanewright completions bash > lanewright.bash  # to install it
[man]
lanewright man | man -l -  # read the page of the program
lanewright man --dir ~/.local/share/man/man1  # install all pages
"#;
