//! What the doctor says.

use serde::Serialize;

use super::facts::RunFacts;
use super::repair::Repair;
use crate::model::{AgentName, LaneId, RunId};

crate::model::word_enum! {
    /// How bad a finding is.
    Severity {
        /// State is damaged.
        Error = "error",
        /// Something is not as it should be.
        Warning = "warning",
        /// Something is worth knowing.
        Note = "note",
    }
}

crate::model::word_enum! {
    /// What was found; the words never change.
    Kind {
        /// A live session works on the run, so it was not looked at.
        RunHeld = "run-held",
        /// The run log holds no record.
        LogEmpty = "log-empty",
        /// The run log cannot be read at all.
        LogUnreadable = "log-unreadable",
        /// A later Lanekeeper wrote the run log.
        LogNewerFormat = "log-newer-format",
        /// A write at the end of the run log was cut short.
        LogTorn = "log-torn",
        /// Lines of the run log are damaged.
        LogDamaged = "log-damaged",
        /// The run log is gone.
        LogMissing = "log-missing",
        /// A live session works on another run of the phase.
        PhaseHeld = "phase-held",
        /// No lane of the run had begun.
        RunNotBegun = "run-not-begun",
        /// A rollback was begun and not finished.
        RollbackUnfinished = "rollback-unfinished",
        /// A resume would be refused.
        ResumeRefused = "resume-refused",
        /// A rollback would be refused.
        RollbackRefused = "rollback-refused",
        /// Something outside of the run blocked a lane, or the whole phase.
        LaneBlocked = "lane-blocked",
        /// The integration branch is gone.
        BaseMissing = "base-missing",
        /// The file of the plan has changed since the run started.
        PlanChanged = "plan-changed",
        /// The run log contradicts itself or the plan.
        LogContradiction = "log-contradiction",
        /// The pinned plan is gone.
        PlanMissing = "plan-missing",
        /// The pinned plan cannot be read.
        PlanUnreadable = "plan-unreadable",
        /// The pinned plan is not the one that the run began with.
        PlanMismatch = "plan-mismatch",
        /// A lane's `task.json` is gone.
        TaskMissing = "task-missing",
        /// A lane's `task.json` cannot be read.
        TaskUnreadable = "task-unreadable",
        /// A lane's `task.json` says something else than the run log.
        TaskDisagrees = "task-disagrees",
        /// A lane's `task.json` names another session than the run log.
        SessionMismatch = "session-mismatch",
        /// The transition log of a lane's `task.json` is gone or empty.
        TransitionLogMissing = "transition-log-missing",
        /// The transition log of a lane's `task.json` has a step that no lane can make.
        TransitionImpossible = "transition-impossible",
        /// An agent's `status.json` cannot be read.
        StatusUnreadable = "status-unreadable",
        /// A worktree is gone.
        WorktreeMissing = "worktree-missing",
        /// A worktree was moved.
        WorktreeMoved = "worktree-moved",
        /// Git has forgotten a worktree whose files are there.
        WorktreeForgotten = "worktree-forgotten",
        /// Something else is where a worktree should be.
        WorktreeForeign = "worktree-foreign",
        /// A worktree is on another branch than its own.
        WorktreeWrongBranch = "worktree-wrong-branch",
        /// A person locked a worktree.
        WorktreeLocked = "worktree-locked",
        /// Git knows a worktree of the pool's that is gone and that nobody holds.
        WorktreePrunable = "worktree-prunable",
        /// A branch is gone.
        BranchMissing = "branch-missing",
        /// Nobody is noted as the holder of a slot that the run log says is held.
        ClaimMissing = "claim-missing",
        /// The file that says who holds a slot cannot be read.
        ClaimDamaged = "claim-damaged",
        /// A slot that nobody holds holds work.
        SlotHoldsWork = "slot-holds-work",
        /// A lock of a git that is dead.
        IndexLock = "index-lock",
        /// A lock on the packed refs or on an integration branch, and no git is at work.
        RefLock = "ref-lock",
        /// Git's index of a worktree cannot be read.
        IndexDamaged = "index-damaged",
        /// A private index, which is a cache, cannot be read.
        PrivateIndexDamaged = "private-index-damaged",
        /// `checkpoints.json` cannot be read.
        CheckpointsUnreadable = "checkpoints-unreadable",
        /// `checkpoints.json` lacks records, or holds old ones.
        CheckpointsBehind = "checkpoints-behind",
        /// A job's supervisor is gone.
        JobWithoutSupervisor = "job-without-supervisor",
        /// A file by which a job and its supervisor speak cannot be read.
        JobDamaged = "job-damaged",
        /// A supervisor works for no run that is known.
        SupervisorWithoutRun = "supervisor-without-run",
        /// A snapshot's ref belongs to no run that is known.
        RefWithoutRun = "ref-without-run",
        /// A disk is nearly full.
        DiskNearlyFull = "disk-nearly-full",
    }
}

/// Something that was found.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What.
    pub kind: Kind,
    /// How bad it is.
    pub severity: Severity,
    /// In which run; `None`: in what all runs share.
    pub run: Option<RunId>,
    /// In which lane.
    pub lane: Option<LaneId>,
    /// Of which agent.
    pub agent: Option<AgentName>,
    /// A path, a branch or a ref.
    pub place: String,
    /// What was seen.
    pub evidence: String,
    /// What to type, or to do.
    pub remedy: String,
    /// What becomes of it.
    pub cure: Cure,
}

/// What can be done about a finding.
#[derive(Debug, Clone)]
pub enum Cure {
    /// Nothing has to be done.
    Needless,
    /// Nothing has to be done: the next resume repairs it, or only a rollback needs it. `--fix` repairs it, too.
    Optional(Repair),
    /// It can be repaired.
    Repair(Repair),
    /// A person must act.
    Person,
    /// A person must choose.
    Escalation(Box<Escalation>),
}

/// What a person is told who must choose (seed 003, Recovery Escalation Policy).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Escalation {
    /// What is wrong.
    pub issue: String,
    /// What is known of where things stand, a line each.
    pub current_state: Vec<String>,
    /// What was tried.
    pub recovery_attempts: String,
    /// What work is at risk.
    pub impact: String,
    /// The three ways out.
    pub options: [WayOut; 3],
}

/// One way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WayOut {
    /// What it does.
    pub what: String,
    /// What speaks for it and against it.
    pub judgement: String,
    /// What to type, in this order.
    pub commands: Vec<String>,
}

impl Finding {
    /// A finding about what all runs share, about which nothing has to be done.
    pub(super) fn new(kind: Kind, severity: Severity, place: impl ToString, evidence: impl Into<String>) -> Self {
        Self {
            kind,
            severity,
            run: None,
            lane: None,
            agent: None,
            place: place.to_string(),
            evidence: evidence.into(),
            remedy: "nothing has to be done".to_owned(),
            cure: Cure::Needless,
        }
    }

    /// The same in a file or directory.
    pub(super) fn at(kind: Kind, severity: Severity, place: &std::path::Path, evidence: impl Into<String>) -> Self {
        Self::new(kind, severity, place.display(), evidence)
    }

    /// The same in a run.
    pub(super) fn of_run(mut self, run: &RunId) -> Self {
        self.run = Some(run.clone());
        self
    }

    /// The same in a lane and, where it is an agent's, of that agent.
    pub(super) fn of(mut self, (lane, agent): &super::expected::Owned) -> Self {
        (self.lane, self.agent) = (lane.clone(), agent.clone());
        self
    }

    /// The same, which `--fix` repairs.
    pub(super) fn repaired_by(mut self, repair: Repair) -> Self {
        self.remedy = repair.told();
        self.cure = Cure::Repair(repair);
        self
    }

    /// The same, which `--fix` repairs and the next resume does, too: a Lanekeeper that was killed leaves it.
    pub(super) fn repaired_by_resume(mut self, repair: Repair) -> Self {
        self.severity = Severity::Note;
        self.remedy = format!("the next resume repairs it; {}", repair.told());
        self.cure = Cure::Optional(repair);
        self
    }

    /// The same in a run that is complete, which `--fix` repairs.
    pub(super) fn needed_for_a_rollback(mut self, repair: Repair) -> Self {
        self.severity = Severity::Note;
        self.remedy = format!("only a rollback needs it; {}", repair.told());
        self.cure = Cure::Optional(repair);
        self
    }

    /// The same with what a person can do, who need not.
    pub(super) fn hint(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    /// The same with what a person has to do.
    pub(super) fn for_a_person(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self.cure = Cure::Person;
        self
    }

    /// The same with what a person can choose from.
    pub(super) fn escalated(mut self, escalation: Escalation) -> Self {
        self.remedy = "choose one of the options below".to_owned();
        self.cure = Cure::Escalation(Box::new(escalation));
        self
    }

    /// That a command about `run` would be refused, with the remedies. Only a resume is expected of a run.
    pub fn refused(kind: Kind, run: &RunFacts, reason: String, remedies: &[String]) -> Self {
        let wanted = kind == Kind::ResumeRefused;
        let severity = if wanted { Severity::Warning } else { Severity::Note };
        let finding = Self::at(kind, severity, &run.log_path, reason).of_run(&run.run);
        let remedy = remedies.join("; ");
        if wanted { finding.for_a_person(remedy) } else { finding.hint(remedy) }
    }

    /// Whether something has to be done.
    pub fn needs_action(&self) -> bool {
        !matches!(self.cure, Cure::Needless | Cure::Optional(_))
    }

    /// What repairs it, if that can be done without a person.
    pub fn repair(&self) -> Option<&Repair> {
        match &self.cure {
            Cure::Repair(repair) | Cure::Optional(repair) => Some(repair),
            Cure::Needless | Cure::Person | Cure::Escalation(_) => None,
        }
    }

    /// Whether two findings are about the same thing.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.kind, &self.run, &self.place) == (other.kind, &other.run, &other.place)
    }
}
