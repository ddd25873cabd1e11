//! Random phases of which the scheduler knows how long each task takes, and how long they take at least.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use lanewright_model::testing::empty_plan;
use lanewright_model::{Dag, Lane, LaneIndex, Plan, PlanParts, Task};

use super::dice::Dice;
use super::plans::plain_lane;

/// A graph of lanes, each with the time of its tasks in minutes.
pub struct Phase {
    pub dag: Dag,
    pub tasks: Vec<Vec<u64>>,
}

impl Phase {
    /// Between 10 and 60 lanes of one to four tasks of one to ten minutes, which is what seed 000 allows for a task; each
    /// lane depends on up to three of the ten before it.
    pub fn random(dice: &mut Dice) -> Self {
        let count = 10 + dice.roll(51);
        let mut dependencies = Vec::new();
        for lane in 0..count {
            let nearest = |dice: &mut Dice| LaneIndex(lane - 1 - dice.roll(lane.min(10)));
            let number = if lane == 0 { 0 } else { dice.roll(4) };
            dependencies.push((0..number).map(|_| nearest(dice)).collect());
        }
        let minutes = |dice: &mut Dice| 1 + u64::from(dice.roll(10));
        let tasks = (0..count).map(|_| (0..1 + dice.roll(4)).map(|_| minutes(dice)).collect()).collect();
        Self { dag: Dag::new(dependencies).unwrap(), tasks }
    }

    /// The plan that says so: each task's time limit is its time.
    pub fn plan(&self) -> Plan {
        let lanes = (0..self.dag.len()).map(|at| self.lane(at)).collect();
        Plan::new(PlanParts { lanes, ..empty_plan() }).unwrap()
    }

    fn lane(&self, at: usize) -> Lane {
        let index = LaneIndex(at as u32);
        let mut lane = plain_lane(index.0, self.dag.dependencies(index).to_vec(), self.tasks[at].len() as u32);
        let limited =
            |(task, minutes): (Task, &u64)| Task { max_time: Some(Duration::from_secs(60 * minutes)), ..task };
        let agent = &mut lane.agents[0];
        agent.tasks = std::mem::take(&mut agent.tasks).into_iter().zip(&self.tasks[at]).map(limited).collect();
        lane
    }

    pub fn minutes(&self, lane: LaneIndex) -> u64 {
        self.tasks[lane.at()].iter().sum()
    }

    /// No schedule is shorter than the longest path, or than the work shared evenly by `parallel`. In minutes.
    pub fn lower_bound(&self, parallel: u32) -> f64 {
        let longest = self.dag.remaining(|lane| self.minutes(lane)).into_iter().max().unwrap_or(0) as f64;
        let work = self.tasks.iter().flatten().sum::<u64>() as f64;
        longest.max(work / f64::from(parallel))
    }

    /// What people do who run a phase wave by wave: all lanes of one wave, the longest first, before any of the next.
    pub fn by_waves(&self, parallel: u32) -> u64 {
        let waves = self.dag.waves();
        let last = waves.iter().max().copied().unwrap_or(0);
        (1..=last).map(|wave| self.longest_first(parallel, |lane| waves[lane.at()] == wave)).sum()
    }

    fn longest_first(&self, parallel: u32, belongs: impl Fn(LaneIndex) -> bool) -> u64 {
        let mut lanes: Vec<u64> =
            self.dag.order().iter().filter(|lane| belongs(**lane)).map(|lane| self.minutes(*lane)).collect();
        lanes.sort_by_key(|minutes| Reverse(*minutes));
        let mut free: BinaryHeap<Reverse<u64>> = (0..parallel).map(|_| Reverse(0)).collect();
        let mut end = 0;
        for minutes in lanes {
            let Reverse(from) = free.pop().unwrap();
            end = end.max(from + minutes);
            free.push(Reverse(from + minutes));
        }
        end
    }
}
