//! Actions: what the core wants done in the world.
//!
//! An action is named by what it is about and carries nothing else: the executor reads the details from the
//! state. It is wanted for as long as [`super::decide`] says so; asked twice, its executor finds the work done. The
//! answer comes back as events.

use lanewright_model::event::SnapshotReason;
use lanewright_model::{JobId, LaneIndex};

/// Something to be done. An agent is an index into its lane's agents.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Check the lane's preconditions and find its base. Answer: `LaneBased`.
    CheckLane(LaneIndex),
    /// Check out a worktree for one agent of the lane, or for the lane itself. Answer: `WorktreeOpened`.
    OpenWorktree { lane: LaneIndex, agent: Option<usize> },
    /// Start the job unless it was started before, and wait for its end. Answer: `JobStarted`, `JobExited`.
    RunJob(JobId),
    /// Have the job stopped, with `force` at once. No answer but the job's own end.
    StopJob { job: JobId, force: bool },
    /// Commit what the agent left, and look at what it changed. Answer: `WorkCommitted` or `FailureNoted`.
    CommitWork(LaneIndex, usize),
    /// Keep the whole state of the agent's worktree. Answer: `SnapshotTaken` or `SnapshotFailed`.
    Snapshot { lane: LaneIndex, agent: usize, reason: SnapshotReason },
    /// Merge the agent's branch into the lane's. Answer: `AgentMerged` or `FailureNoted`.
    MergeAgent(LaneIndex, usize),
    /// Give the agent's worktree back. Answer: `WorktreeReleased`.
    ReleaseAgent(LaneIndex, usize),
    /// Put the agent's worktree where its next attempt starts from. Answer: `AgentReset`.
    ResetAgent(LaneIndex, usize),
    /// Put the lane where it is built again from. Answer: `LaneReset`.
    ResetLane(LaneIndex),
    /// Make the lane's merge with the integration branch. Answer: `MergeStaged` or `FailureNoted`.
    StageMerge(LaneIndex),
    /// Move the integration branch to the staged merge. Answer: `LaneMerged` or `MergeSuperseded`.
    PublishMerge(LaneIndex),
    /// Push the lane's branch. Answer: `BranchPushed` or `ForgeUnavailable`.
    PushBranch(LaneIndex),
    /// Open a pull request for the lane's branch, or bring the one that there is up to date. Answer:
    /// `PullRequestOpened` or `ForgeUnavailable`.
    OpenPullRequest(LaneIndex),
    /// Ask the forge about the pull requests that are followed. Answer: `PullRequestChanged` and `FeedbackReceived` of
    /// lanes, then `PullRequestsChecked`.
    CheckPullRequests,
    /// Have the forge merge the lane's pull request. Answer: `PullRequestChanged` or `PullRequestRefused`.
    MergePullRequest(LaneIndex),
    /// Offer the lane to its executor, and have a job started for it. Answer: `LanePlaced`, or `LaneBlocked`.
    PlaceLane(LaneIndex),
    /// Copy what the lane's own log says, until its job is over. Answer: those events, then `PlacementEnded`.
    FollowLane(LaneIndex),
    /// Have the lane's job stopped, and with `force` take the lane back at once. No answer but the end of the placement.
    StopPlacement { lane: LaneIndex, force: bool },
    /// Remove what the lane no longer needs. Answer: `LaneCleaned`.
    CleanLane(LaneIndex),
    /// Find the merge that broke the lane's tests, or, without a lane, the final gate. Answer: `MergesBisected`.
    BisectMerges(Option<LaneIndex>),
    /// Look for what must be true of the lane's work. Answer: `MustHavesChecked`.
    CheckMustHaves(LaneIndex),
    /// Find out how much the lane changed. Answer: `ChangesMeasured`.
    MeasureChanges(LaneIndex),
    /// Check out the integration branch for the final gate. Answer: `FinalOpened`.
    OpenFinal,
    /// Remove the pool's free slots. Answer: `PoolEmptied`.
    EmptyPool,
}

macro_rules! action_words {
    ($($action:pat => $word:literal,)*) => {
        impl Action {
            pub const WORDS: &[&str] = &[$($word),*];

            /// One word for logs and crash points.
            pub fn word(&self) -> &'static str {
                match self { $($action => $word,)* }
            }
        }
    };
}

action_words! {
    Action::CheckLane(_) => "check_lane",
    Action::OpenWorktree { .. } => "open_worktree",
    Action::RunJob(_) => "run_job",
    Action::StopJob { .. } => "stop_job",
    Action::CommitWork(..) => "commit_work",
    Action::Snapshot { .. } => "snapshot",
    Action::MergeAgent(..) => "merge_agent",
    Action::ReleaseAgent(..) => "release_agent",
    Action::ResetAgent(..) => "reset_agent",
    Action::ResetLane(_) => "reset_lane",
    Action::StageMerge(_) => "stage_merge",
    Action::PublishMerge(_) => "publish_merge",
    Action::PushBranch(_) => "push_branch",
    Action::OpenPullRequest(_) => "open_pull_request",
    Action::CheckPullRequests => "check_pull_requests",
    Action::MergePullRequest(_) => "merge_pull_request",
    Action::PlaceLane(_) => "place_lane",
    Action::FollowLane(_) => "follow_lane",
    Action::StopPlacement { .. } => "stop_placement",
    Action::CleanLane(_) => "clean_lane",
    Action::BisectMerges(_) => "bisect_merges",
    Action::CheckMustHaves(_) => "check_must_haves",
    Action::MeasureChanges(_) => "measure_changes",
    Action::OpenFinal => "open_final",
    Action::EmptyPool => "empty_pool",
}
