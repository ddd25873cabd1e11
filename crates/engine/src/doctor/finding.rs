//! What the doctor reports.

use lanewright_model::{AgentName, LaneId, RunId};
use serde::Serialize;

use crate::doctor::{Repair, RunFacts};

lanewright_model::word_enum! {
    Severity {
        Error = "error",
        Warning = "warning",
        Note = "note",
    }
}

lanewright_model::word_enum! {
    Kind {
        RunHeld = "run-held",
        LogEmpty = "log-empty",
        LogUnreadable = "log-unreadable",
        LogNewerFormat = "log-newer-format",
        LogTorn = "log-torn",
        LogDamaged = "log-damaged",
        LogMissing = "log-missing",
        PhaseHeld = "phase-held",
        RunNotBegun = "run-not-begun",
        RollbackUnfinished = "rollback-unfinished",
        ResumeRefused = "resume-refused",
        RollbackRefused = "rollback-refused",
        LaneBlocked = "lane-blocked",
        BaseMissing = "base-missing",
        PlanChanged = "plan-changed",
        LogContradiction = "log-contradiction",
        PlanMissing = "plan-missing",
        PlanUnreadable = "plan-unreadable",
        PlanMismatch = "plan-mismatch",
        TaskMissing = "task-missing",
        TaskUnreadable = "task-unreadable",
        TaskDisagrees = "task-disagrees",
        SessionMismatch = "session-mismatch",
        TransitionLogMissing = "transition-log-missing",
        /// The transition log of a lane's `task.json` has a step that no lane can make.
        TransitionImpossible = "transition-impossible",
        StatusUnreadable = "status-unreadable",
        WorktreeMissing = "worktree-missing",
        WorktreeMoved = "worktree-moved",
        WorktreeForgotten = "worktree-forgotten",
        WorktreeForeign = "worktree-foreign",
        WorktreeWrongBranch = "worktree-wrong-branch",
        WorktreeLocked = "worktree-locked",
        WorktreePrunable = "worktree-prunable",
        BranchMissing = "branch-missing",
        /// A slot that is held according to the run log has no recorded holder.
        ClaimMissing = "claim-missing",
        ClaimDamaged = "claim-damaged",
        SlotHoldsWork = "slot-holds-work",
        IndexLock = "index-lock",
        /// A lock on the packed refs or on an integration branch, and no git is at work.
        RefLock = "ref-lock",
        IndexDamaged = "index-damaged",
        /// A commit that unfinished work needs, or something in it, cannot be read.
        ObjectsDamaged = "objects-damaged",
        CheckpointsUnreadable = "checkpoints-unreadable",
        CheckpointsBehind = "checkpoints-behind",
        JobWithoutSupervisor = "job-without-supervisor",
        JobDamaged = "job-damaged",
        SupervisorWithoutRun = "supervisor-without-run",
        RefWithoutRun = "ref-without-run",
        /// Work of an agent whose worktree was removed is kept until a person deletes it.
        WorkKept = "work-kept",
        /// Slots that were removed and are not deleted.
        TrashLeft = "trash-left",
        /// The exchange of lanes on a cluster does not answer, or not in time.
        ExchangeUnreachable = "exchange-unreachable",
        LaneStateLeft = "lane-state-left",
        LaneStateMissing = "lane-state-missing",
        LaneClaimSilent = "lane-claim-silent",
        RunTaken = "run-taken",
        DiskNearlyFull = "disk-nearly-full",
    }
}

#[derive(Debug, Clone)]
pub struct Finding {
    pub kind: Kind,
    pub severity: Severity,
    /// In which run; `None`: in what all runs share.
    pub run: Option<RunId>,
    pub lane: Option<LaneId>,
    pub agent: Option<AgentName>,
    pub place: String,
    pub evidence: String,
    pub remedy: String,
    pub cure: Cure,
}

#[derive(Debug, Clone)]
pub enum Cure {
    Needless,
    /// Nothing has to be done: the next resume repairs it, or only a rollback needs it. `--fix` repairs it, too.
    Optional(Repair),
    Repair(Repair),
    Person,
    Escalation(Box<Escalation>),
}

/// What is shown to the user, who must choose (seed 003, Recovery Escalation Policy).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Escalation {
    pub issue: String,
    /// The known state, a line each.
    pub current_state: Vec<String>,
    pub recovery_attempts: String,
    pub impact: String,
    pub options: [RecoveryOption; 3],
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecoveryOption {
    pub what: String,
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

    pub(super) fn at(kind: Kind, severity: Severity, place: &std::path::Path, evidence: impl Into<String>) -> Self {
        Self::new(kind, severity, place.display(), evidence)
    }

    pub(super) fn of_run(mut self, run: &RunId) -> Self {
        self.run = Some(run.clone());
        self
    }

    /// The same in a lane and, where it is an agent's, of that agent.
    pub(super) fn of(mut self, (lane, agent): &super::expected::Owned) -> Self {
        (self.lane, self.agent) = (lane.clone(), agent.clone());
        self
    }

    pub(super) fn repaired_by(mut self, repair: Repair) -> Self {
        self.remedy = repair.description();
        self.cure = Cure::Repair(repair);
        self
    }

    /// The same, which `--fix` repairs and the next resume does, too: a Lanewright that was killed leaves it.
    pub(super) fn repaired_by_resume(self, repair: Repair) -> Self {
        self.optional("the next resume repairs it", repair)
    }

    /// The same in a run that is complete, which `--fix` repairs.
    pub(super) fn needed_for_rollback(self, repair: Repair) -> Self {
        self.optional("only a rollback needs it", repair)
    }

    fn optional(mut self, why: &str, repair: Repair) -> Self {
        self.severity = Severity::Note;
        self.remedy = format!("{why}; {}", repair.description());
        self.cure = Cure::Optional(repair);
        self
    }

    pub(super) fn hint(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    pub(super) fn needs_user(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self.cure = Cure::Person;
        self
    }

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
        if wanted { finding.needs_user(remedy) } else { finding.hint(remedy) }
    }

    /// What is on the exchange of a run with lanes on a cluster, which a resume deals with.
    pub fn of_exchange(kind: Kind, run: &RunId, exchange: &str, evidence: String, remedy: &str) -> Self {
        Self::new(kind, Severity::Note, exchange, evidence).of_run(run).hint(remedy)
    }

    #[must_use]
    pub fn of_lane(self, lane: &LaneId) -> Self {
        self.of(&(Some(lane.clone()), None))
    }

    pub fn needs_action(&self) -> bool {
        !matches!(self.cure, Cure::Needless | Cure::Optional(_))
    }

    pub fn repair(&self) -> Option<&Repair> {
        match &self.cure {
            Cure::Repair(repair) | Cure::Optional(repair) => Some(repair),
            Cure::Needless | Cure::Person | Cure::Escalation(_) => None,
        }
    }

    pub fn is_same(&self, other: &Self) -> bool {
        (self.kind, &self.run, &self.place) == (other.kind, &other.run, &other.place)
    }
}
