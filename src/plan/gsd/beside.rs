//! Which files of a directory are plans of a phase, and which of them are done.

use super::names;

/// A plan of a phase, as its name and the names beside it tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanBeside {
    /// The name of its file.
    pub name: String,
    /// The id of its lane where the whole directory is read.
    pub id: String,
    /// Whether a SUMMARY of it lies beside it.
    pub is_done: bool,
}

/// The plans among the names of a directory's files, in the order of their names.
pub fn plans_beside(names: &[String]) -> Vec<PlanBeside> {
    let mut plans: Vec<&str> = names.iter().map(String::as_str).filter(|name| names::is_plan_name(name)).collect();
    plans.sort_unstable();
    plans.dedup();
    let ids = names::lane_ids(&plans);
    let told = plans.into_iter().zip(ids).map(|(name, id)| {
        let is_done = summary_of(name, &id, names).is_some();
        PlanBeside { name: name.to_owned(), id, is_done }
    });
    told.collect()
}

/// Whether the plan called `name` has a SUMMARY among the files beside it, as a reader of the directory sees it.
pub fn plan_is_done(name: &str, beside: &[String]) -> bool {
    plans_beside(beside).iter().any(|plan| plan.name == name && plan.is_done)
}

/// The SUMMARY of the plan called `name` among the files beside it.
pub(super) fn summary_of<'a>(name: &str, id: &str, beside: &'a [String]) -> Option<&'a str> {
    let summary = |plan: &str| {
        let word = plan.to_ascii_uppercase().rfind("PLAN")?;
        Some(format!("{}SUMMARY{}", &plan[..word], &plan[word + 4..]))
    };
    let wanted = [summary(name), Some(format!("{id}-SUMMARY.md"))];
    let is_it = |file: &&String| wanted.iter().flatten().any(|wanted| wanted.eq_ignore_ascii_case(file));
    beside.iter().find(is_it).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_done_by_a_summary_under_its_name_or_its_id() {
        let cases: &[(&str, &[&str], bool)] = &[
            ("01-01-PLAN.md", &["01-01-SUMMARY.md"], true),
            ("01-01-plan.md", &[], false),
            ("01-01-plan.md", &["01-01-SUMMARY.md"], true),
            ("01-01-setup-PLAN.md", &["01-01-SUMMARY.md"], true),
            ("01-01-setup-PLAN.md", &["01-01-setup-SUMMARY.md"], true),
            ("PLAN.md", &["PLAN-SUMMARY.md"], true),
            ("PLAN.md", &["SUMMARY.md"], true),
            ("01-01-a-PLAN.md", &["01-01-b-PLAN.md", "01-01-SUMMARY.md"], false),
            ("01-01-PLAN.md", &["01-02-SUMMARY.md"], false),
        ];
        for (name, others, expected) in cases {
            let beside: Vec<String> = others.iter().chain([name]).map(|&name| name.to_owned()).collect();
            assert_eq!(plan_is_done(name, &beside), *expected, "{name} beside {others:?}");
        }
    }
}
