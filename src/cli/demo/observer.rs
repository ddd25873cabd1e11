//! Reads the run log as it grows, and tells what it says.

use std::time::{Duration, Instant};

use super::interrupts::Interrupts;
use super::lanekeeper::Lanekeeper;
use super::scratch::Scratch;
use super::telling::{Telling, subject};
use super::{amiss, claims};
use crate::cli::error::CliError;
use crate::event::{Event, Record};
use crate::fs::regular_file;
use crate::model::{JobId, Plan};
use crate::store::Follower;
use crate::view::RunView;
use crate::view::line::narrate;

/// How long nothing may happen where something is bound to. Generous, for machines that are busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// What was seen of the run.
pub(super) struct Observer<'a> {
    /// Every record.
    pub(super) records: Vec<Record>,
    /// What they add up to.
    pub(super) view: RunView,
    follower: Follower,
    scratch: &'a Scratch,
    telling: &'a Telling,
    interrupts: &'a Interrupts,
}

impl<'a> Observer<'a> {
    /// Nothing was seen yet.
    pub(super) fn new(plan: &Plan, scratch: &'a Scratch, telling: &'a Telling, interrupts: &'a Interrupts) -> Self {
        let (records, view) = (Vec::new(), RunView::for_plan(plan));
        Self { records, view, follower: Follower::new(&scratch.run().log()), scratch, telling, interrupts }
    }

    /// Tells what happens until `reached`, which is `what`, holds of all that was seen.
    pub(super) fn follow(
        &mut self,
        what: &str,
        lanekeeper: &mut Lanekeeper,
        reached: impl Fn(&[Record]) -> Result<bool, CliError>,
    ) -> Result<(), CliError> {
        let mut deadline = Instant::now() + PATIENCE;
        loop {
            let ended = lanekeeper.ended()?;
            if self.look()? {
                deadline = Instant::now() + PATIENCE;
            }
            if reached(&self.records)? {
                return Ok(());
            }
            if let Some(status) = ended {
                let words = lanekeeper.last_words();
                return Err(amiss(format!("{lanekeeper} ended with {status} before {what}:\n{words}")));
            }
            self.pause(what, deadline)?;
        }
    }

    /// Waits until `reached`, which is `what`, holds.
    pub(super) fn wait_until(
        &self,
        what: &str,
        mut reached: impl FnMut() -> Result<bool, CliError>,
    ) -> Result<(), CliError> {
        let deadline = Instant::now() + PATIENCE;
        while !reached()? {
            self.pause(what, deadline)?;
        }
        Ok(())
    }

    fn pause(&self, what: &str, deadline: Instant) -> Result<(), CliError> {
        self.interrupts.check()?;
        if Instant::now() > deadline {
            return Err(amiss(format!("nothing happened for {} seconds before {what}", PATIENCE.as_secs())));
        }
        std::thread::sleep(PAUSE);
        Ok(())
    }

    /// Takes in what is new; whether anything is.
    fn look(&mut self) -> Result<bool, CliError> {
        let contents = self.follower.poll()?;
        if let Some(damage) = contents.damage.first() {
            return Err(amiss(format!("the run log is damaged: {damage}")));
        }
        let news = !contents.records.is_empty();
        for record in contents.records {
            self.view.apply(&record);
            self.tell(&record)?;
            self.records.push(record);
        }
        Ok(news)
    }

    fn tell(&self, record: &Record) -> Result<(), CliError> {
        let Some(line) = narrate(record, &self.view) else { return Ok(()) };
        match &record.event {
            // Told by the claim about who is watched again.
            Event::JobStarted { job, .. } if claims::started(&self.records).iter().any(|(other, _)| other == job) => {
                Ok(())
            }
            Event::JobStarted { job, .. } if job.is_attempt() => {
                self.telling.event(&line)?;
                self.tell_lessons(job)
            }
            Event::LaneMoved { .. } => self.telling.event(&line),
            _ if line.lasting => self.telling.event(&line),
            _ => Ok(()),
        }
    }

    /// What a retry's prompt says of the attempts before.
    fn tell_lessons(&self, job: &JobId) -> Result<(), CliError> {
        let prompt = regular_file::read_text(self.scratch.prompt(job)).unwrap_or_default();
        match claims::lessons(&prompt).as_slice() {
            [] => Ok(()),
            lessons => self.telling.step("prompt", &format!("{} is told: {}", subject(job), lessons.join(" | "))),
        }
    }
}
