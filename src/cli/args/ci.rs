//! Arguments of the command for jobs of CI services. Each may come as a variable, so that a workflow never puts what
//! somebody typed into a line of shell.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Arg, Args};
use lanewright_model::{HumanGate, LaneId};
use lanewright_plan::settings::{environment, value};

use super::control::ControlArgs;
use super::flags::{LIMITS, Limit};

const ANSWERS: &str = "Answers to an earlier job";

/// Options of other commands that mean little or nothing in a job.
fn hide_rare(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "yes" => option.hide(true),
        "progress" | "max_cost" => option.hide_short_help(true),
        _ => option,
    }
}

#[derive(Debug, Args)]
#[command(mut_args(hide_rare))]
#[command(mut_arg("accept_plan_change", |accept| accept
    .env(environment::CI_ACCEPT_PLAN_CHANGE)
    .help("Continue with the plan as it is now")
    .hide_env(true)
    .value_parser(FalseyValueParser::new())
    .help_heading(ANSWERS)
    .hide_short_help(false)))]
pub(crate) struct Ci {
    /// The plan, a roadmap, or a directory with plans, such as `.`
    #[arg(env = environment::CI_PLAN, hide_env = true)]
    pub(crate) plan: PathBuf,
    /// Approve what these lanes wait for
    ///
    /// Names with commas or blanks between them. LANE:GATE names one of several gates that a lane waits at.
    #[arg(long, value_name = "LANES", env = environment::CI_APPROVE, hide_env = true, value_parser = lanes,
        default_value = "", hide_default_value = true, help_heading = ANSWERS)]
    pub(crate) approve: Lanes,
    /// Reject what these lanes wait for; needs --message
    #[arg(long, value_name = "LANES", env = environment::CI_REJECT, hide_env = true, value_parser = lanes,
        default_value = "", hide_default_value = true, help_heading = ANSWERS)]
    pub(crate) reject: Lanes,
    /// Run these failed or blocked lanes again, first
    ///
    /// Then what was cut off continues. Without answers, a job resumes all lanes that are left, as `resume` does.
    #[arg(long, value_name = "LANES", env = environment::CI_RETRY, hide_env = true, value_parser = lanes,
        default_value = "", hide_default_value = true, help_heading = ANSWERS)]
    pub(crate) retry: Lanes,
    /// Text for the agents, with an answer or without one
    #[arg(short, long, value_name = "TEXT", env = environment::CI_MESSAGE, hide_env = true, default_value = "",
        hide_default_value = true, help_heading = ANSWERS)]
    pub(crate) message: String,
    /// Time for this job, such as 5h; then exit code 75
    ///
    /// Agents are stopped, and their work is saved for the next job. Leave time for that below the limit of the service.
    #[arg(long, value_name = "DURATION", value_parser = value::limit, help_heading = LIMITS)]
    pub(crate) timeout: Option<Limit>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

/// Lanes, each with the gate that is meant.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lanes(pub(crate) Vec<(LaneId, Option<HumanGate>)>);

fn lanes(text: &str) -> Result<Lanes, String> {
    let words = text.split(|letter: char| letter == ',' || letter.is_whitespace()).filter(|word| !word.is_empty());
    let lane = |word: &str| {
        let (lane, gate) = word.split_once(':').map_or((word, None), |(lane, gate)| (lane, Some(gate)));
        let lane = LaneId::new(lane).map_err(|error| error.to_string())?;
        Ok((lane, gate.map(str::parse).transpose()?))
    };
    words.map(lane).collect::<Result<_, String>>().map(Lanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_have_commas_or_blanks_between_them() {
        let named = |text: &str| {
            lanes(text).map(|Lanes(lanes)| lanes.iter().map(|(lane, gate)| (lane.to_string(), gate.clone())).collect())
        };
        let plan: HumanGate = "plan".parse().unwrap();
        let [a, b] = ["A", "SL-B"].map(str::to_owned);
        assert_eq!(named(" A, SL-B\n"), Ok(vec![(a.clone(), None), (b, None)]));
        assert_eq!(named("A:plan"), Ok(vec![(a, Some(plan))]));
        assert_eq!(named(""), Ok(Vec::new()));
        for wrong in ["$(rm)", "A:", "--force", "../A"] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }
}
