//! What a tool's work came to, as the protocol's answer.

use rmcp::model::CallToolResult;
use serde_json::json;

use crate::cli::CliError;
use crate::cli::child::Outcome;

/// The outcome in the protocol's terms. An error names its code as exit codes are named, in capitals (SPEC §2).
pub(crate) fn answer(outcome: Outcome) -> CallToolResult {
    match outcome {
        Ok(value) => CallToolResult::structured(value),
        Err(error) => {
            let CliError { status, message, hints } = CliError::from(error);
            let code = status.kind().to_uppercase();
            CallToolResult::structured_error(
                json!({"code": code, "exitCode": status.code(), "message": message, "hints": hints}),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::ExitStatus;

    #[test]
    fn error_codes_are_names_of_exit_codes() {
        let code = |status: ExitStatus| answer(Err(status.error("x"))).structured_content.unwrap()["code"].clone();
        assert_eq!(code(ExitStatus::InvalidOperation), "INVALID_OPERATION");
        assert_eq!(code(ExitStatus::Held), "HELD");
        assert_eq!(code(ExitStatus::ExternalChanges), "EXTERNAL_CHANGES");
    }
}
