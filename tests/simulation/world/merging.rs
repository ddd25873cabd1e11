//! How lanes reach the integration branch or the forge of the simulated world.

use lanewright_model::event::Event;
use lanewright_model::{
    CommitId, Failure, FailureKind, LaneIndex, MergeMode, MustHavesRule, Outage, OutageKind, PullRequest, Stage,
};
use lanewright_schedule::RunState;

use super::super::bugs::Bug;
use super::super::run::BY_HAND;
use super::World;

impl World {
    pub(super) fn stage_merge(&mut self, lane: LaneIndex, state: &RunState) -> Vec<Event> {
        self.expect_checkpoint(lane, Stage::PrePr);
        self.expect_branch(lane, state);
        let id = self.id(lane);
        let (content, own) = (self.content(state.lane(lane).head().unwrap()), format!("{id}/"));
        let lacks = |commit: &CommitId| self.content(commit).difference(&content).any(|piece| piece.starts_with(&own));
        if state.lane(lane).accepted().iter().any(lacks) {
            self.complain(format!("{id} would be merged without work that was accepted"));
        }
        if self.fails_once(&format!("{lane:?} conflict"), self.script.lane_conflict(&id)) {
            let agent = state.lane(lane).last_worker(self.plan.lane(lane));
            let agent = agent.map(|agent| self.agent(lane, agent));
            let failure = Failure::new(FailureKind::Conflict, "conflict");
            return vec![Event::FailureNoted { lane: id, agent, task: None, failure }];
        }
        let mut onto = self.git.integration.clone();
        let theirs = self.lane_branch(lane);
        let commit = self.merge(&onto, &theirs);
        if self.bug == Some(Bug::RefusalForgotten) && self.git.user.rebasing {
            // Another name each time for the same branch, as if it had moved.
            onto = self.git.commit(&[&onto], self.integrated());
        }
        let protected = state.lane(lane).protected();
        let renamed = "renamed".to_owned();
        if let Some(changes) = state.lane(lane).changes().filter(|_| self.script.merge_touches_protected(&id))
            && !protected.contains(&renamed)
        {
            let (head, protected) = (state.lane(lane).head().unwrap().clone(), [protected, &[renamed]].concat());
            return vec![Event::ChangesMeasured { lane: id, head, changes, protected }];
        }
        let moved = state.lane(lane).base() != Some(&onto);
        self.moved.extend(moved.then(|| commit.clone()));
        vec![Event::MergeStaged { lane: id, onto, commit, moved }]
    }

    pub(super) fn publish(&mut self, lane: LaneIndex, state: &RunState) -> Vec<Event> {
        let id = self.id(lane);
        let has = self.looked_at.get(&lane).and_then(|heads| heads.last()).map(|(_, holds)| *holds);
        let needs = !self.plan.lane(lane).must_haves.is_empty();
        if needs && (has.is_none() || has == Some(false) && self.script.must_haves() != MustHavesRule::Report) {
            self.complain(format!("{id} was merged without what it must have"));
        }
        self.expect_branch(lane, state);
        let staged = state.lane(lane).staged().cloned().unwrap();
        let again = self.bug == Some(Bug::PublishTwice);
        if self.merges.contains(&lane) && !again {
            return vec![Event::LaneMerged {
                lane: id,
                commit: self.git.integration.clone(),
                onto: staged.onto,
                plan: None,
            }];
        }
        let has_moved = self.git.integration != staged.onto && self.bug != Some(Bug::MoveNotSeen);
        if (has_moved || self.git.user.rebasing) && !again {
            return vec![Event::MergeSuperseded { lane: id }];
        }
        let obstacle = self.git.user.obstacle().or_else(|| self.stale_checkout());
        if let Some(obstacle) = obstacle {
            return vec![Event::LaneBlocked { lane: id, reason: format!("{obstacle}; the user is in the way") }];
        }
        self.expect_tested(lane, state);
        let content = self.content(&staged.commit);
        if !content.is_superset(&self.pieces(lane)) {
            self.complain(format!("{id} was merged without all of its work"));
        }
        self.expect_chosen(lane, &content, state);
        if self.by_hand.get(&lane).is_some_and(|by_hand| !content.is_superset(by_hand)) {
            self.complain(format!("{id} was merged without what a person committed"));
        }
        if !content.is_superset(&self.integrated()) {
            self.complain(format!("the merge of {id} lost what was merged before"));
        }
        self.merges.push(lane);
        self.publish_beside_user(staged.commit.clone());
        vec![Event::LaneMerged { lane: id, commit: staged.commit, onto: staged.onto, plan: None }]
    }

    /// The branch was moved under the checkout that has it: to move it again would mix up what is there.
    pub(super) fn stale_checkout(&self) -> Option<&'static str> {
        let user = &self.git.user;
        let is_stale = user.on_branch && user.index != self.git.integration && self.bug != Some(Bug::PlumbingNotSeen);
        is_stale.then_some("the checkout is not where the branch is")
    }

    /// Where nothing is merged, a lane starts from the merge of what it depends on.
    pub(super) fn base(&mut self, lane: LaneIndex, state: &RunState) -> CommitId {
        if self.script.merge() == MergeMode::Local {
            return self.git.integration.clone();
        }
        let mut base = state.started().unwrap().base_commit.clone();
        for dependency in self.plan.clone().dag().dependencies(lane) {
            if let Some(head) = state.lane(*dependency).delivered() {
                base = self.merge(&base, head);
            }
        }
        base
    }

    pub(super) fn push_branch(&mut self, lane: LaneIndex, state: &RunState) -> Event {
        self.expect_checkpoint(lane, Stage::PrePr);
        let (id, head) = (self.id(lane), state.lane(lane).head().cloned().unwrap());
        if let Some(event) = self.forge_out(lane, "push") {
            return event;
        }
        if !self.announced.contains(&(id.clone(), head.clone())) {
            self.complain(format!("{id} was pushed at a head that no checkpoint on disk names"));
        }
        let there = self.remote.get(&lane).map(|there| self.content(there));
        let is_kept = |piece: &String| !piece.contains(BY_HAND) || self.content(&head).contains(piece);
        if there
            .is_some_and(|there| self.by_hand.get(&lane).is_some_and(|known| !there.intersection(known).all(is_kept)))
        {
            self.complain(format!("what a person pushed to the branch of {id} was overwritten"));
        }
        if self.bug != Some(Bug::PushForgotten) {
            self.remote.insert(lane, head.clone());
        }
        Event::BranchPushed { lane: id, remote: "origin".into(), branch: "b".into(), head }
    }

    pub(super) fn open_pull_request(&mut self, lane: LaneIndex, state: &RunState) -> Event {
        let (id, head) = (self.id(lane), state.lane(lane).head().cloned().unwrap());
        if let Some(event) = self.forge_out(lane, "open") {
            return event;
        }
        if self.remote.get(&lane) != Some(&head) {
            self.complain(format!("the pull request of {id} was opened before its branch was pushed"));
        }
        if !self.content(&head).is_superset(&self.pieces(lane)) {
            self.complain(format!("the pull request of {id} was opened without all of its work"));
        }
        self.expect_chosen(lane, &self.content(&head), state);
        let target = state.proposal_target(lane);
        let opened = |of: &LaneIndex| self.pulls.contains_key(of);
        if target != "main"
            && !self.plan.indices().any(|of| target.ends_with(&format!("/{}", self.id(of))) && opened(&of))
        {
            self.complain(format!("the pull request of {id} builds on {target}, which has none"));
        }
        let again = self.bug == Some(Bug::OpenTwice);
        let known = self.pulls.entry(lane).or_insert((0, head.clone()));
        let updated = known.0 > 0;
        *known = (if again { known.0 + 1 } else { 1 }, head.clone());
        let pull_request = PullRequest { url: "https://f/1".into(), number: Some(1), base: target };
        Event::PullRequestOpened { lane: id, pull_request, head, updated }
    }

    /// The forge is out at first, for fewer tries than there are.
    pub(super) fn forge_out(&mut self, lane: LaneIndex, what: &str) -> Option<Event> {
        let key = format!("{:?} {what}", self.name_of(lane));
        let out = self.script.forge_outages(&key);
        let tries = self.tries.entry(key).or_default();
        *tries += 1;
        let outage = Outage::new(OutageKind::Network, "connection refused");
        (*tries <= out).then(|| Event::ForgeUnavailable { lane: self.id(lane), outage })
    }

    /// The lane's tests passed at its head, and at the merge if that holds more.
    pub(super) fn expect_tested(&mut self, lane: LaneIndex, state: &RunState) {
        let merge = state.lane(lane).staged().map(|staged| &staged.commit).filter(|merge| self.moved.contains(*merge));
        let untested = state.lane(lane).head().into_iter().chain(merge).any(|commit| !self.tested.contains(commit));
        if untested && !self.plan.lane(lane).tests.is_empty() {
            self.complain(format!("{} was merged without its tests", self.id(lane)));
        }
    }
}
