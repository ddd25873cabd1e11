//! How the end of a run is reported.

use super::word_enum;

word_enum! {
    /// What `report --format` writes.
    ReportFormat {
        /// For people, at a terminal.
        Text = "text",
        /// For programs: everything that is known.
        Json = "json",
        /// Markdown, as a CI job summary shows it.
        Markdown = "md",
        /// One HTML page, for a browser and on paper.
        Html = "html",
        /// JUnit XML, as CI services read test results.
        Junit = "junit",
        /// Code Quality JSON, as GitLab shows it beside a merge request.
        CodeQuality = "codequality",
    }
}

word_enum! {
    /// The CI service that a run tells of itself.
    Ci {
        /// The one that the environment names, if it names one.
        Auto = "auto",
        /// GitHub Actions: a job summary and annotations.
        Github = "github",
        /// GitLab CI: a Code Quality report beside the others.
        Gitlab = "gitlab",
        /// None.
        None = "none",
    }
}
