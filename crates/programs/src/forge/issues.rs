//! The open issues of a forge, with what each waits for.
//!
//! All are asked for, also where a few are wanted: what one of these waits for may be open without their label.

use serde_json::{Value, json};

use super::choose::ForgeProgram;
use super::error::ForgeError;
use super::program::run;
use super::{Forge, gh, glab};

/// Which issues are wanted: those with all of these labels, and of the milestone.
#[derive(Debug, Clone, Copy, Default)]
pub struct IssueFilter<'a> {
    pub labels: &'a [String],
    pub milestone: Option<&'a str>,
}

impl Forge {
    /// The issues that are open, as a list in JSON; `wanted` is false in others than those wanted, and `blocked_by` of those has the
    /// numbers of the issues that the forge says they wait for.
    ///
    /// # Errors
    /// The forge's program fails, or says what is no list of issues; a command of the user's knows no issues.
    pub fn issues(&self, filter: IssueFilter<'_>) -> Result<String, ForgeError> {
        let is_gitlab = match &self.program {
            ForgeProgram::Gh => false,
            ForgeProgram::Glab => true,
            ForgeProgram::Command(_) => return Err(ForgeError::NoIssues),
        };
        let state = if is_gitlab { "opened" } else { "open" };
        let mut issues = self.lists(&format!("issues?state={state}&per_page=100"))?;
        if let Some(other) = issues.iter().find(|issue| !issue.is_object()) {
            let call = [self.name().to_owned(), "api".to_owned()];
            return Err(ForgeError::answer(&call, "must print a list of issues", &other.to_string()));
        }
        issues.retain(|issue| issue.get("pull_request").is_none());
        for issue in issues.iter_mut().filter(|issue| !filter.wants(issue)) {
            issue["wanted"] = false.into();
        }
        // Few issues have any, and each costs a request.
        if is_gitlab {
            self.add_links(&mut issues)?;
        } else {
            self.add_dependencies(&mut issues)?;
        }
        Ok(Value::Array(issues).to_string())
    }

    /// GitHub says of each issue how many it waits for.
    fn add_dependencies(&self, issues: &mut [Value]) -> Result<(), ForgeError> {
        for issue in issues.iter_mut().filter(|issue| issue.get("wanted").is_none()) {
            let count = issue.pointer("/issue_dependencies_summary/blocked_by").and_then(Value::as_u64);
            if let (Some(1..), Some(number)) = (count, number_of(issue)) {
                let before = self.lists(&format!("issues/{number}/dependencies/blocked_by?per_page=100"))?;
                let open = before.iter().filter(|other| other["state"] == "open");
                let (own, others): (Vec<_>, Vec<_>) = open.partition(|other| {
                    other["repository_url"].is_null() || other["repository_url"] == issue["repository_url"]
                });
                issue["blocked_by"] = own.into_iter().filter_map(number_of).collect();
                issue["blocked_elsewhere"] = others.into_iter().map(|other| other["html_url"].clone()).collect();
            }
        }
        Ok(())
    }

    /// GitLab says of each issue how many wait for it.
    fn add_links(&self, issues: &mut [Value]) -> Result<(), ForgeError> {
        let blocks = |issue: &&Value| issue["blocking_issues_count"].as_u64() > Some(0);
        for before in issues.iter().filter(blocks).filter_map(number_of).collect::<Vec<u64>>() {
            let links = self.lists(&format!("issues/{before}/links"))?;
            let project =
                issues.iter().find(|issue| number_of(issue) == Some(before)).map(|it| it["project_id"].clone());
            let is_own = |link: &&Value| link["project_id"].is_null() || Some(&link["project_id"]) == project.as_ref();
            let blocked =
                links.iter().filter(|link| link["link_type"] == "blocks").filter(is_own).filter_map(number_of);
            for after in blocked {
                if let Some(issue) = issues.iter_mut().find(|issue| number_of(issue) == Some(after)) {
                    let mut known = issue["blocked_by"].as_array().cloned().unwrap_or_default();
                    known.push(json!(before));
                    issue["blocked_by"] = known.into();
                }
            }
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        if self.program == ForgeProgram::Glab { "glab" } else { "gh" }
    }

    /// All pages of the list at `path` below the repository.
    fn lists(&self, path: &str) -> Result<Vec<Value>, ForgeError> {
        let is_gitlab = self.program == ForgeProgram::Glab;
        let call = if is_gitlab { glab::call(self, path) } else { gh::call(self, path) };
        let said = run(&self.directory, &call, &[])?;
        // Pages come one after another, each a list of its own.
        let pages: Result<Vec<Vec<Value>>, _> = serde_json::Deserializer::from_str(&said).into_iter().collect();
        pages.map(|pages| pages.concat()).map_err(|_| ForgeError::answer(&call, "must print a list of issues", &said))
    }
}

impl IssueFilter<'_> {
    fn wants(&self, issue: &Value) -> bool {
        let labels: Vec<&Value> = issue["labels"].as_array().into_iter().flatten().collect();
        let is_called = |label: &&Value, name: &String| {
            let own = label.get("name").unwrap_or(label).as_str();
            own.is_some_and(|own| own.eq_ignore_ascii_case(name))
        };
        let has_label = |name: &String| labels.iter().any(|label| is_called(label, name));
        let milestone = issue.pointer("/milestone/title").and_then(Value::as_str);
        self.labels.iter().all(has_label) && self.milestone.is_none_or(|title| milestone == Some(title))
    }
}

fn number_of(issue: &Value) -> Option<u64> {
    issue.get("number").or_else(|| issue.get("iid"))?.as_u64()
}
