//! Whether and how finished lanes are merged.

use super::word_enum;

word_enum! {
    /// How a lane that is merged here reaches the integration branch.
    #[derive(Default)]
    MergeStyle {
        /// A merge commit.
        #[default]
        Merge = "merge",
        /// One commit with the lane's change.
        Squash = "squash",
        /// The lane's own commits, one after the other.
        Rebase = "rebase",
        /// A fast-forward to the lane's commits where that is possible; else as with rebase.
        Ff = "ff",
    }
}

word_enum! {
    /// What plans and settings say about merging: whether it is done here, and how.
    MergeChoice {
        /// Not merged.
        None = "none",
        /// Merged here, with a merge commit.
        Local = "local",
        /// Proposed in a pull request.
        Pr = "pr",
        /// Merged here, with a merge commit.
        Merge = "merge",
        /// Merged here as one commit.
        Squash = "squash",
        /// Merged here, as the lane's own commits.
        Rebase = "rebase",
        /// Merged here, by a fast-forward where that is possible.
        Ff = "ff",
    }
}

impl MergeStyle {
    pub fn is_merge(&self) -> bool {
        *self == Self::Merge
    }
}

impl MergeChoice {
    pub fn mode(self) -> MergeMode {
        match self {
            Self::None => MergeMode::None,
            Self::Pr => MergeMode::Pr,
            _ => MergeMode::Local,
        }
    }

    /// The style; `None`: nothing is merged here.
    pub fn style(self) -> Option<MergeStyle> {
        match self {
            Self::None | Self::Pr => None,
            Self::Local | Self::Merge => Some(MergeStyle::Merge),
            Self::Squash => Some(MergeStyle::Squash),
            Self::Rebase => Some(MergeStyle::Rebase),
            Self::Ff => Some(MergeStyle::Ff),
        }
    }

    /// The choice that a run recorded.
    pub fn of(mode: MergeMode, style: MergeStyle) -> Self {
        match (mode, style) {
            (MergeMode::None, _) => Self::None,
            (MergeMode::Pr, _) => Self::Pr,
            (MergeMode::Local, MergeStyle::Merge) => Self::Local,
            (MergeMode::Local, MergeStyle::Squash) => Self::Squash,
            (MergeMode::Local, MergeStyle::Rebase) => Self::Rebase,
            (MergeMode::Local, MergeStyle::Ff) => Self::Ff,
        }
    }
}

word_enum! {
    /// How `publish` brings the work of a run to the remote's branch.
    PublishMode {
        /// Pushed; where a rule of the forge refuses that, in a pull request.
        Auto = "auto",
        /// Pushed.
        Push = "push",
        /// In a pull request.
        Pr = "pr",
    }
}

word_enum! {
    /// Whether commits are signed.
    #[derive(Default)]
    Sign {
        /// Where git signs commits in the repository (`commit.gpgSign`).
        #[default]
        Auto = "auto",
        /// Never.
        Off = "off",
    }
}

word_enum! {
    /// Whether commits end with the user's sign-off.
    #[derive(Default)]
    SignOff {
        /// Where git's setting `format.signOff` is true.
        #[default]
        Auto = "auto",
        /// Always.
        On = "on",
        /// Never.
        Off = "off",
    }
}

word_enum! {
    /// How a finished lane reaches the integration branch.
    MergeMode {
        /// The lane branch is left for a person.
        None = "none",
        /// Merged here.
        Local = "local",
        /// Pushed, and proposed in a pull request.
        Pr = "pr",
    }
}
