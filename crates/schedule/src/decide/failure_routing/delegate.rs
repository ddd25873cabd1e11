//! Which agent fixes a failed gate: the table of SPEC §8.

use lanewright_model::FailureClass;

/// How many violations of style the agent that made them fixes itself; more go to `style` (seed 003).
pub const MAX_VIOLATIONS_OF_SAME_AGENT: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delegate {
    /// The agent that last touched the files that the findings name; where there is none, the agent of this name.
    LastToTouchElse(&'static str),
    /// The agent whose work was merged last.
    SameAgent,
    Named(&'static str),
    /// The user, with the log kept.
    Escalate,
}

/// The agent that fixes a failure of `class` with `count` complaints (SPEC §8).
pub fn re_delegation(class: FailureClass, count: usize) -> Delegate {
    match class {
        FailureClass::Compilation => Delegate::LastToTouchElse("architect"),
        FailureClass::Test => Delegate::Named("test"),
        FailureClass::Style if count <= MAX_VIOLATIONS_OF_SAME_AGENT => Delegate::SameAgent,
        FailureClass::Style => Delegate::Named("style"),
        FailureClass::Unknown => Delegate::Escalate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_delegate() {
        let table = [
            (FailureClass::Compilation, 900, Delegate::LastToTouchElse("architect")),
            (FailureClass::Test, 1, Delegate::Named("test")),
            (FailureClass::Style, 5, Delegate::SameAgent),
            (FailureClass::Style, 6, Delegate::Named("style")),
            (FailureClass::Unknown, 0, Delegate::Escalate),
        ];
        for (class, count, delegate) in table {
            assert_eq!(re_delegation(class, count), delegate, "{class} with {count}");
        }
    }
}
