//! Crash points: places where a test build of the program can be made to die, to show that a resume recovers.
//!
//! `LANEWRIGHT_CRASH_POINT=NAME:N` makes a build with debug assertions die as by SIGKILL at the N-th time that it comes
//! to the point called NAME; `panic_NAME:N` makes it panic there. Release builds have none of this.

use lanewright_schedule::Action;

pub const CRASH_POINT_VARIABLE: &str = "LANEWRIGHT_CRASH_POINT";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoint {
    /// Records are appended and not yet durable.
    BeforeSync,
    /// Records are durable and nothing has followed from them.
    AfterSync,
    /// A task is about to be carried out; the word of its action.
    BeforeTask(&'static str),
    /// A task is done and has not answered.
    AfterTask(&'static str),
    /// A worktree is saved and that is not recorded.
    Kept,
    /// A step of giving an agent a git directory, or of taking it over, is done; its word.
    GitDirectory(&'static str),
    /// The pinned plan is replaced and that is not recorded.
    PlanReplaced,
    /// Lanes are about to be offered with one push.
    BeforeOffer,
    /// Lanes are offered, and no job was submitted for them.
    Offered,
    /// A job was submitted, and that is not recorded.
    Submitted,
    /// What a job pushed is copied, and not in the run log.
    Copied,
    /// The states of merged lanes are removed from the exchange; their jobs are not.
    RefsRemoved,
    /// A step of a rollback is done and is not written down; its word.
    RollbackStep(&'static str),
    /// The doctor has repaired something; the word of what was wrong.
    DoctorStep(&'static str),
    /// The terminal interface has drawn a screen that is not shown yet.
    Drawn,
}

impl CrashPoint {
    /// Every point that a run may come to; those of a retry, a rollback, the doctor, the terminal interface and lanes on
    /// a cluster are not among them.
    pub fn all() -> impl Iterator<Item = Self> {
        let of_word = |&word| [Self::BeforeTask(word), Self::AfterTask(word)];
        let of_run = [Self::BeforeSync, Self::AfterSync, Self::Kept];
        let of_git_directory = ["made", "taken_over", "led_back"].map(Self::GitDirectory);
        of_run.into_iter().chain(of_git_directory).chain(Action::WORDS.iter().flat_map(of_word))
    }

    pub(crate) fn before(action: &Action) -> Self {
        Self::BeforeTask(action.word())
    }

    pub(crate) fn after(action: &Action) -> Self {
        Self::AfterTask(action.word())
    }

    /// How the environment variable calls it.
    pub fn name(self) -> String {
        match self {
            Self::BeforeSync => "before_sync".to_owned(),
            Self::AfterSync => "after_sync".to_owned(),
            Self::BeforeTask(word) => format!("before_{word}"),
            Self::AfterTask(word) => format!("after_{word}"),
            Self::Kept => "kept".to_owned(),
            Self::GitDirectory(word) => format!("git_directory_{word}"),
            Self::PlanReplaced => "plan_replaced".to_owned(),
            Self::BeforeOffer => "before_offer".to_owned(),
            Self::Offered => "offered".to_owned(),
            Self::Submitted => "submitted".to_owned(),
            Self::Copied => "copied".to_owned(),
            Self::RefsRemoved => "refs_removed".to_owned(),
            Self::RollbackStep(word) => format!("rollback_{word}"),
            Self::DoctorStep(word) => format!("doctor_{word}"),
            Self::Drawn => "drawn".to_owned(),
        }
    }
}

/// What a name begins with where it chooses a panic.
const PANIC: &str = "panic_";

/// Dies here, in a debug build, if this is the chosen point and the chosen time.
pub fn crash_point(point: CrashPoint) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static CHOSEN: LazyLock<Option<(String, u32)>> = LazyLock::new(|| {
        let choice = std::env::var(CRASH_POINT_VARIABLE).ok()?;
        let (name, number) = choice.split_once(':')?;
        Some((name.to_owned(), number.parse().ok()?))
    });
    static PASSED: AtomicU32 = AtomicU32::new(0);

    if cfg!(debug_assertions)
        && let Some((name, number)) = &*CHOSEN
        && name.strip_prefix(PANIC).unwrap_or(name) == point.name()
        && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *number
    {
        assert!(!name.starts_with(PANIC), "the crash point {name} was chosen");
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}
