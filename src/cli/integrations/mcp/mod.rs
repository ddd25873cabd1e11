//! `mcp`: runs as tools for agents, by the Model Context Protocol over standard input and output (SPEC §12, seed 001).
//!
//! Each tool has this same program do its work as a child, so that there is one truth about what a command does and
//! refuses, and nothing but the protocol is ever written to standard output.

mod answer;
mod control;
mod judge;
mod output;
mod parameters;
mod read;
mod resume;
mod start;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use lanewright_model::time::short;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, Implementation, ProgressNotificationParam, ServerCapabilities, ServerConfig};
use rmcp::service::RequestContext;
use rmcp::transport::stdio;
use rmcp::{RoleServer, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde_json::Value;

use crate::cli::child::{Caller, Outcome};
use crate::cli::{Context, ExitStatus};
use answer::answer;
use output::output;
use parameters::{
    Answer, CreateCheckpoint, Doctor, ExecutePhase, Gate, ListCheckpoints, Pick, ReadDiff, ReadLogs, ResumeTask, Retry,
    Rollback, RollbackLane, RunStatus, TaskId, Tell, taken,
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

/// How often a client is notified of a tool that works.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone)]
struct Server {
    caller: Arc<Caller>,
}

impl Server {
    /// Has `work` done where it may take its time. A client that gave a token for it is notified at once and then regularly,
    /// so that it can show that the tool works, and does not give up waiting.
    async fn call(
        &self,
        client: RequestContext<RoleServer>,
        work: impl FnOnce(&Caller) -> Outcome + Send + 'static,
    ) -> CallToolResult {
        let caller = self.caller.clone();
        let since = Instant::now();
        let mut done = tokio::task::spawn_blocking(move || work(&caller));
        let token = client.meta.get_progress_token();
        let done = loop {
            let Some(token) = &token else { break done.await };
            let waited = since.elapsed();
            let progress = ProgressNotificationParam::new(token.clone(), waited.as_secs_f64());
            // A client that is gone gets no answer either.
            let _ = client.peer.notify_progress(progress.with_message(format!("working for {}", short(waited)))).await;
            if let Ok(done) = tokio::time::timeout(PROGRESS_INTERVAL, &mut done).await {
                break done;
            }
        };
        answer(done.unwrap_or_else(|error| Err(error.into())))
    }
}

#[tool_router]
impl Server {
    #[tool(
        name = "ExecutePhase",
        output_schema = output("ExecutePhase"),
        description = "Start a run of a plan with Lanewright: its lanes work in parallel, each in its own git worktree. Answers once the run has begun or was refused; the run itself continues in the background and outlives this session. Only where the user asked for it. Errors: USAGE (no such plan, or it is not valid), INVALID_OPERATION (an unfinished run has these lanes: resume it), HELD (a live session works on them).",
        annotations(title = "Start a run", destructive_hint = false, open_world_hint = true)
    )]
    async fn execute_phase(
        &self,
        Parameters(wanted): Parameters<ExecutePhase>,
        client: RequestContext<RoleServer>,
    ) -> CallToolResult {
        self.call(client, move |caller| start::execute(caller, &wanted)).await
    }

    #[tool(
        name = "ReadLogs",
        output_schema = output("ReadLogs"),
        description = "The last lines that the agents and gates of a run wrote, each with its job. Changes nothing.",
        annotations(title = "Logs of a run", read_only_hint = true, open_world_hint = false)
    )]
    async fn read_logs(
        &self,
        Parameters(wanted): Parameters<ReadLogs>,
        client: RequestContext<RoleServer>,
    ) -> CallToolResult {
        self.call(client, move |caller| read::logs(caller, &wanted)).await
    }

    #[tool(
        name = "ReadDiff",
        output_schema = output("ReadDiff"),
        description = "What a lane of a run, or one of its agents, has changed: a diff, or with `stat` its summary. Changes nothing.",
        annotations(title = "Changes of a lane", read_only_hint = true, open_world_hint = false)
    )]
    async fn read_diff(
        &self,
        Parameters(wanted): Parameters<ReadDiff>,
        client: RequestContext<RoleServer>,
    ) -> CallToolResult {
        self.call(client, move |caller| read::diff(caller, &wanted)).await
    }

    #[tool(
        name = "ResumeTask",
        output_schema = output("ResumeTask"),
        description = "Resume an unfinished run of Lanewright. Answers once the run has begun again or was refused; the run itself continues in the background and outlives this session. Errors: INVALID_OPERATION (the run, or the lane, is complete), INVALID_STATE (no such run, or no checkpoint), HELD (a live session works on it), EXTERNAL_CHANGES (files were changed meanwhile).",
        annotations(title = "Resume a run", destructive_hint = false, open_world_hint = false)
    )]
    async fn resume_task(
        &self,
        Parameters(wanted): Parameters<ResumeTask>,
        client: RequestContext<RoleServer>,
    ) -> CallToolResult {
        self.call(client, move |caller| {
            resume::resume(caller, &taken(&wanted.task_id)?, wanted.additional_context.as_deref())
        })
        .await
    }

    #[tool(
        name = "RunStatus",
        output_schema = output("RunStatus"),
        description = "The state of a run: its lanes, their states and attempts, what it waits for and which command comes next. Changes nothing.",
        annotations(title = "Status of a run", read_only_hint = true, open_world_hint = false)
    )]
    async fn run_status(
        &self,
        Parameters(wanted): Parameters<RunStatus>,
        client: RequestContext<RoleServer>,
    ) -> CallToolResult {
        self.call(client, move |caller| read::status(caller, &wanted)).await
    }

    #[tool(
        name = "RollbackLane",
        output_schema = output("RollbackLane"),
        description = "Put one lane of a run back to where it had not begun, or to a point of its own. Its agents are stopped and what it holds is kept in snapshots first, whose refs the answer names. Only where the user asked for it. Errors: USAGE (its work is merged, and `undoMerged` is not true; the message lists what would be undone), BLOCKED, HELD (a live session works on it).",
        annotations(
            title = "Roll a lane back",
            destructive_hint = true,
            idempotent_hint = true,
            open_world_hint = false
        )
    )]
    async fn rollback_lane(
        &self,
        Parameters(wanted): Parameters<RollbackLane>,
        client: RequestContext<RoleServer>,
    ) -> CallToolResult {
        self.call(client, move |caller| {
            taken(&wanted.task_id)?.with_lane()?;
            let RollbackLane { task_id, to, undo_merged } = wanted;
            judge::rollback(caller, &Rollback { task_id, to, dry_run: false, undo_merged })
        })
        .await
    }

    #[tool(
        name = "Approve",
        output_schema = output("Approve"),
        description = "Approve what a lane waits with (its set-up, its plan, its changes or a task), and resume the run in the background. Only where the user said so about this lane: an approval is the user's. Show the user first what is approved: the plan's text, or the changes with their commit (RunStatus, ReadDiff). Errors: INVALID_OPERATION (it does not wait for that), HELD, EXTERNAL_CHANGES.",
        annotations(title = "Approve a lane", destructive_hint = false, open_world_hint = false)
    )]
    async fn approve(
        &self,
        Parameters(wanted): Parameters<Answer>,
        client: RequestContext<RoleServer>,
    ) -> CallToolResult {
        self.call(client, move |caller| control::answer(caller, &wanted, true)).await
    }

    #[tool(
        name = "Reject",
        output_schema = output("Reject"),
        description = "Send back what a lane waits with, with what to change as `message`, and resume the run in the background. Only where the user said so, in the user's words. Errors: USAGE (no message), INVALID_OPERATION (it does not wait for that), HELD, EXTERNAL_CHANGES.",
        annotations(title = "Reject a lane", destructive_hint = false, open_world_hint = false)
    )]
    async fn reject(
        &self,
        Parameters(wanted): Parameters<Answer>,
        client: RequestContext<RoleServer>,
    ) -> CallToolResult {
        self.call(client, move |caller| control::answer(caller, &wanted, false)).await
    }

    #[tool(
        name = "Tell",
        output_schema = output("Tell"),
        description = "Tell the agents of a lane something, also while they work: their next prompts have it, and an agent whose program passes on its tool calls gets it at the next one. Only what the user said, in the user's words. Errors: USAGE (no text), INVALID_OPERATION (no agent works in the lane any more).",
        annotations(title = "Tell agents", destructive_hint = false, open_world_hint = false)
    )]
    async fn tell(&self, Parameters(wanted): Parameters<Tell>, client: RequestContext<RoleServer>) -> CallToolResult {
        self.call(client, move |caller| control::tell(caller, &wanted)).await
    }

    #[tool(
        name = "Pick",
        output_schema = output("Pick"),
        description = "Choose another candidate of a lane before it is merged; the lane is built and judged again with its work. Only where the user said so. Show the user first what each candidate changed (ReadDiff with the candidate's agent). Errors: USAGE (no such candidate), INVALID_OPERATION (the lane is merged, or the candidate did not pass its gates).",
        annotations(title = "Pick a candidate", destructive_hint = false, open_world_hint = false)
    )]
    async fn pick(&self, Parameters(wanted): Parameters<Pick>, client: RequestContext<RoleServer>) -> CallToolResult {
        self.call(client, move |caller| control::pick(caller, &wanted)).await
    }

    #[tool(
        name = "Retry",
        output_schema = output("Retry"),
        description = "Run a lane again that failed or is blocked, with fresh retries, in the background. Only where the user asked for it. Errors: INVALID_OPERATION (it did not fail), INVALID_STATE (no such run), HELD, EXTERNAL_CHANGES.",
        annotations(title = "Retry a lane", destructive_hint = false, open_world_hint = true)
    )]
    async fn retry(&self, Parameters(wanted): Parameters<Retry>, client: RequestContext<RoleServer>) -> CallToolResult {
        self.call(client, move |caller| control::retry(caller, &wanted)).await
    }

    #[tool(
        name = "Doctor",
        output_schema = output("Doctor"),
        description = "Check the stored state of runs: what is damaged, what would be refused and why, each with its remedy. Changes nothing without `fix`.",
        annotations(title = "Check stored state", destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn doctor(
        &self,
        Parameters(wanted): Parameters<Doctor>,
        client: RequestContext<RoleServer>,
    ) -> CallToolResult {
        self.call(client, move |caller| judge::doctor(caller, &wanted)).await
    }

    #[tool(
        name = "Gate",
        output_schema = output("Gate"),
        description = "Run a gate of the plan by hand in the worktree of a lane, or `final` on the integration branch: whether it passes, and what it found. Changes nothing of the run. Errors: USAGE (the plan has no such gate), BLOCKED, HELD.",
        annotations(title = "Run a gate", destructive_hint = false, open_world_hint = true)
    )]
    async fn gate(&self, Parameters(wanted): Parameters<Gate>, client: RequestContext<RoleServer>) -> CallToolResult {
        self.call(client, move |caller| judge::gate(caller, &wanted)).await
    }

    #[tool(
        name = "Rollback",
        output_schema = output("Rollback"),
        description = "Put a run, or one of its lanes, back to its start, or to a point with `to`. Its agents are stopped and what it holds is kept in snapshots first, whose refs the answer names. Call it with `dryRun` and show the user what would be done; then only where the user asked for it. Errors: USAGE (work is merged, and `undoMerged` is not true; the message lists what would be undone), BLOCKED, HELD.",
        annotations(title = "Roll back", destructive_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn rollback(
        &self,
        Parameters(wanted): Parameters<Rollback>,
        client: RequestContext<RoleServer>,
    ) -> CallToolResult {
        self.call(client, move |caller| judge::rollback(caller, &wanted)).await
    }

    #[tool(
        name = "ListCheckpoints",
        output_schema = output("ListCheckpoints"),
        description = "The checkpoints that the lanes of a run reached, and the snapshots of their worktrees, each with the name that restores it. Changes nothing.",
        annotations(title = "Checkpoints of a run", read_only_hint = true, open_world_hint = false)
    )]
    async fn list_checkpoints(
        &self,
        Parameters(wanted): Parameters<ListCheckpoints>,
        client: RequestContext<RoleServer>,
    ) -> CallToolResult {
        self.call(client, move |caller| {
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
        output_schema = output("CreateCheckpoint"),
        description = "Keep the worktree of a lane, or of one of its agents, in a snapshot as it is now. Changes neither files nor branches.",
        annotations(title = "Keep a worktree", destructive_hint = false, open_world_hint = false)
    )]
    async fn create_checkpoint(
        &self,
        Parameters(wanted): Parameters<CreateCheckpoint>,
        client: RequestContext<RoleServer>,
    ) -> CallToolResult {
        self.call(client, move |caller| {
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
asks for it. Approvals are the user's: show what waits, and call Approve or Reject only with what the user said. If a run \
belongs to another session, choose other work.";
