//! `mcp`: runs as tools for agents, by the Model Context Protocol over standard input and output (SPEC §12, seed 001).
//!
//! Each tool has this same program do its work as a child, so that there is one truth about what a command does and
//! refuses, and nothing but the protocol is ever written to standard output.

mod answer;
mod parameters;
mod read;
mod resume;
mod start;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, Implementation, ServerCapabilities, ServerConfig};
use rmcp::transport::stdio;
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde_json::Value;

use crate::cli::child::{Caller, Outcome};
use crate::cli::{Context, ExitStatus};
use answer::answer;
use parameters::{
    CreateCheckpoint, ExecutePhase, ListCheckpoints, ReadDiff, ReadLogs, ResumeTask, RollbackLane, RunStatus, TaskId,
    taken,
};

/// Serves until standard input ends.
pub(crate) fn run(context: &Context) -> Result<ExitStatus> {
    const FAILED: &str = "the server cannot run";
    let server = Server { caller: Arc::new(Caller::new(context).context(FAILED)?) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context(FAILED)?;
    let served = runtime.block_on(async {
        match server.serve(stdio()).await {
            Ok(service) => service.waiting().await.map(drop).context(FAILED),
            // The client left before the handshake.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(anyhow::Error::from(error).context(FAILED)),
        }
    });
    // Children that still run end by themselves; the client is gone.
    runtime.shutdown_background();
    served.map(|()| ExitStatus::Done)
}

#[derive(Clone)]
struct Server {
    caller: Arc<Caller>,
}

impl Server {
    /// Has `work` done where it may take its time.
    async fn call(&self, work: impl FnOnce(&Caller) -> Outcome + Send + 'static) -> CallToolResult {
        let caller = self.caller.clone();
        let done = tokio::task::spawn_blocking(move || work(&caller)).await;
        answer(done.unwrap_or_else(|error| Err(error.into())))
    }
}

#[tool_router]
impl Server {
    #[tool(
        name = "ExecutePhase",
        description = "Start a run of a plan with Lanewright: its lanes work in parallel, each in its own git worktree. Answers once the run has begun or was refused; the run itself continues in the background and outlives this session. Only where the user asked for it. Errors: USAGE (no such plan, or it is not valid), INVALID_OPERATION (an unfinished run has these lanes: resume it), HELD (a live session works on them).",
        annotations(title = "Start a run", destructive_hint = false, open_world_hint = true)
    )]
    async fn execute_phase(&self, Parameters(wanted): Parameters<ExecutePhase>) -> CallToolResult {
        self.call(move |caller| start::execute(caller, &wanted)).await
    }

    #[tool(
        name = "ReadLogs",
        description = "The last lines that the agents and gates of a run wrote, each with its job. Changes nothing.",
        annotations(title = "Logs of a run", read_only_hint = true, open_world_hint = false)
    )]
    async fn read_logs(&self, Parameters(wanted): Parameters<ReadLogs>) -> CallToolResult {
        self.call(move |caller| read::logs(caller, &wanted)).await
    }

    #[tool(
        name = "ReadDiff",
        description = "What a lane of a run, or one of its agents, has changed: a diff, or with `stat` its summary. Changes nothing.",
        annotations(title = "Changes of a lane", read_only_hint = true, open_world_hint = false)
    )]
    async fn read_diff(&self, Parameters(wanted): Parameters<ReadDiff>) -> CallToolResult {
        self.call(move |caller| read::diff(caller, &wanted)).await
    }

    #[tool(
        name = "ResumeTask",
        description = "Resume an unfinished run of Lanewright. Answers once the run has begun again or was refused; the run itself continues in the background and outlives this session. Errors: INVALID_OPERATION (the run, or the lane, is complete), INVALID_STATE (no such run, or no checkpoint), HELD (a live session works on it), EXTERNAL_CHANGES (files were changed meanwhile).",
        annotations(title = "Resume a run", destructive_hint = false, open_world_hint = false)
    )]
    async fn resume_task(&self, Parameters(wanted): Parameters<ResumeTask>) -> CallToolResult {
        self.call(move |caller| resume::resume(caller, &taken(&wanted.task_id)?, wanted.additional_context.as_deref()))
            .await
    }

    #[tool(
        name = "RunStatus",
        description = "The state of a run: its lanes, their states and attempts, what it waits for and which command comes next. Changes nothing.",
        annotations(title = "Status of a run", read_only_hint = true, open_world_hint = false)
    )]
    async fn run_status(&self, Parameters(wanted): Parameters<RunStatus>) -> CallToolResult {
        self.call(move |caller| {
            let task = wanted.task_id.as_deref().map(taken).transpose()?;
            let status = caller.run(&words(&["status"], task.as_ref().map(|task| task.run.as_str())))?;
            match task.and_then(|task| task.lane) {
                Some(lane) => resume::lane_of(&status, &lane),
                None => Ok(status),
            }
        })
        .await
    }

    #[tool(
        name = "RollbackLane",
        description = "Put one lane of a run back to where it had not begun, or to a point of its own. Its agents are stopped and what it holds is kept in snapshots first, whose refs the answer names. Only where the user asked for it. Errors: USAGE (its work is merged, and `undoMerged` is not true; the message lists what would be undone), BLOCKED, HELD (a live session works on it).",
        annotations(
            title = "Roll a lane back",
            destructive_hint = true,
            idempotent_hint = true,
            open_world_hint = false
        )
    )]
    async fn rollback_lane(&self, Parameters(wanted): Parameters<RollbackLane>) -> CallToolResult {
        self.call(move |caller| {
            let (run, lane) = taken(&wanted.task_id)?.with_lane()?;
            let words = ["rollback", run.as_str(), "--lane", lane.as_str(), "--on-lock-conflict", "fail"];
            let to = wanted.to.iter().flat_map(|to| ["--to", to.as_str()]);
            let words = words.into_iter().chain(to).chain(wanted.undo_merged.then_some("--yes"));
            caller.run(&words.map(str::to_owned).collect::<Vec<_>>())
        })
        .await
    }

    #[tool(
        name = "ListCheckpoints",
        description = "The checkpoints that the lanes of a run reached, and the snapshots of their worktrees, each with the name that restores it. Changes nothing.",
        annotations(title = "Checkpoints of a run", read_only_hint = true, open_world_hint = false)
    )]
    async fn list_checkpoints(&self, Parameters(wanted): Parameters<ListCheckpoints>) -> CallToolResult {
        self.call(move |caller| {
            let TaskId { run, lane } = taken(&wanted.task_id)?;
            let lane = lane.map(|lane| ["--lane".to_owned(), lane.to_string()]).into_iter().flatten();
            let words: Vec<String> =
                words(&["checkpoints", "list"], Some(run.as_str())).into_iter().chain(lane).collect();
            caller.run(&words)
        })
        .await
    }

    #[tool(
        name = "CreateCheckpoint",
        description = "Keep the worktree of a lane, or of one of its agents, in a snapshot as it is now. Changes neither files nor branches.",
        annotations(title = "Keep a worktree", destructive_hint = false, open_world_hint = false)
    )]
    async fn create_checkpoint(&self, Parameters(wanted): Parameters<CreateCheckpoint>) -> CallToolResult {
        self.call(move |caller| {
            let (run, lane) = taken(&wanted.task_id)?.with_lane()?;
            let message = format!("--message={}", wanted.message.unwrap_or_default());
            let agent = wanted.agent.as_deref().map(parameters::agent).transpose()?;
            let context = wanted.context.map(|context| format!("--context={}", Value::Object(context)));
            let words = ["checkpoints", "create", &message, run.as_str(), lane.as_str()].map(str::to_owned);
            caller.run(&words.into_iter().chain(agent).chain(context).collect::<Vec<_>>())
        })
        .await
    }
}

fn words(command: &[&str], run: Option<&str>) -> Vec<String> {
    command.iter().copied().chain(run).map(str::to_owned).collect()
}

#[tool_handler]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("lanewright", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }
}

const INSTRUCTIONS: &str = "Lanewright runs phase plans as parallel lanes in git worktrees. Only its own commands move \
them: do not merge lanes, remove worktrees or edit state files by hand. Start, resume or roll back only where the user \
asks for it; an approval is given by the user with `lanewright approve`.";
