//! What the status of a pod says of its order.

use std::time::Duration;

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, Pod, PodCondition, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::pod::CONTAINER;
use super::{Ending, Sighting};

/// How long what keeps a pod from starting may last before the order is given up.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// How long after its last moment a pod may still be listed before its node counts as lost.
const OVERDUE: Duration = Duration::from_secs(30);

/// Reasons of a container that does not start which may go away by themselves, or last for ever.
const FAULTS: &[&str] = &[
    "ImagePullBackOff",
    "ErrImagePull",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];

/// `now` in seconds since 1970, by this machine's clock.
pub(super) fn sighting(pod: &Pod, now: i64) -> Sighting {
    let view = View { pod, now };
    let no_status = PodStatus::default();
    let status = pod.status.as_ref().unwrap_or(&no_status);
    let container = status.container_statuses.iter().flatten().find(|container| container.name == CONTAINER);
    let state = container.and_then(|container| container.state.as_ref());
    match status.phase.as_deref() {
        Some("Failed" | "Succeeded") => view.after_the_end(status, state),
        Some("Running" | "Unknown") => match state.and_then(|state| state.terminated.as_ref()) {
            // Containers that the cluster added may run on.
            Some(terminated) => Sighting::Over(view.ended(status, Some(terminated))),
            None => view.unless_overdue(Sighting::Running { node: view.node() }),
        },
        _ => view.unless_overdue(view.waiting(status)),
    }
}

struct View<'a> {
    pod: &'a Pod,
    now: i64,
}

impl View<'_> {
    fn node(&self) -> String {
        self.pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()
    }

    fn has_passed(&self, since: Option<&Time>, limit: Duration) -> bool {
        let limit = i64::try_from(limit.as_secs()).unwrap_or(i64::MAX);
        since.is_some_and(|since| self.now - since.0.as_second() > limit)
    }

    /// A kubelet that lives removes a pod by the time of its deletion, which is in the future at first.
    fn unless_overdue(&self, sighting: Sighting) -> Sighting {
        match self.has_passed(self.pod.metadata.deletion_timestamp.as_ref(), OVERDUE) {
            true => Sighting::Over(Ending::NodeLost),
            false => sighting,
        }
    }

    /// A pod that is out of time fails at once, while its container still has time to end.
    fn after_the_end(&self, status: &PodStatus, state: Option<&ContainerState>) -> Sighting {
        let spec = self.pod.spec.as_ref();
        let is_ending = state.is_some_and(|state| state.running.is_some())
            && status.reason.as_deref() == Some("DeadlineExceeded")
            && !self.has_passed(
                status.start_time.as_ref(),
                seconds(spec.and_then(|spec| spec.active_deadline_seconds))
                    + seconds(spec.and_then(|spec| spec.termination_grace_period_seconds))
                    + OVERDUE,
            );
        match is_ending {
            true => Sighting::Running { node: self.node() },
            false => Sighting::Over(self.ended(status, state.and_then(|state| state.terminated.as_ref()))),
        }
    }

    fn ended(&self, status: &PodStatus, terminated: Option<&ContainerStateTerminated>) -> Ending {
        let said = |message: Option<&String>, reason: &str| words(reason, message.map(String::as_str));
        if status.phase.as_deref() == Some("Succeeded") {
            return Ending::Exited(0);
        }
        if let Some(ending) = disrupted(status) {
            return ending;
        }
        let exit_code = terminated.map(|terminated| terminated.exit_code);
        match terminated.and_then(|terminated| terminated.reason.as_deref()) {
            Some("OOMKilled") => return Ending::OutOfMemory,
            Some("ContainerStatusUnknown") => return Ending::NodeLost,
            Some(reason @ ("StartError" | "ContainerCannotRun")) => {
                return Ending::NeverStarted(said(terminated.and_then(|it| it.message.as_ref()), reason));
            }
            _ => {}
        }
        match exit_code {
            Some(_) if self.pod.metadata.deletion_timestamp.is_some() => Ending::Cancelled,
            Some(code) => Ending::Exited(code),
            None => refused(status, self.pod),
        }
    }

    fn waiting(&self, status: &PodStatus) -> Sighting {
        let scheduled = condition(status, "PodScheduled");
        if let Some(condition) = scheduled.filter(|condition| condition.status == "False") {
            let reason = words(condition.reason.as_deref().unwrap_or("Unschedulable"), condition.message.as_deref());
            // A cluster that is full is a queue.
            let is_full = reason.contains("Insufficient") || reason.contains("Too many pods");
            let since = self.pod.metadata.creation_timestamp.as_ref();
            return self.unless_too_long(reason, since.filter(|_| !is_full));
        }
        let containers = [&status.init_container_statuses, &status.container_statuses].into_iter().flatten().flatten();
        let waiting = |container: &ContainerStatus| container.state.as_ref()?.waiting.clone();
        let reason = containers.filter_map(waiting).find_map(|waiting| fault(&waiting));
        let since = scheduled.and_then(|condition| condition.last_transition_time.as_ref());
        match reason {
            Some(reason) => self.unless_too_long(reason, since),
            None if scheduled.is_some() => Sighting::Waiting("its containers are created".into()),
            None => Sighting::Waiting("it is to be scheduled".into()),
        }
    }

    fn unless_too_long(&self, reason: String, since: Option<&Time>) -> Sighting {
        match self.has_passed(since, PATIENCE) {
            true => Sighting::Over(Ending::NeverStarted(reason)),
            false => Sighting::Waiting(reason),
        }
    }
}

fn condition<'a>(status: &'a PodStatus, name: &str) -> Option<&'a PodCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == name)
}

/// What ended a pod from outside.
fn disrupted(status: &PodStatus) -> Option<Ending> {
    match status.reason.as_deref() {
        Some("DeadlineExceeded") => return Some(Ending::TimeLimit),
        Some("Evicted" | "Preempting") => return Some(Ending::Preempted),
        Some("NodeLost" | "NodeShutdown" | "Shutdown" | "Terminated") => return Some(Ending::NodeLost),
        _ => {}
    }
    let target = condition(status, "DisruptionTarget").filter(|condition| condition.status == "True")?;
    Some(match target.reason.as_deref() {
        Some("DeletionByTaintManager" | "DeletionByPodGC") => Ending::NodeLost,
        _ => Ending::Preempted,
    })
}

/// A pod that failed without a container that ended: its node did not take it, or its kubelet forgot it.
fn refused(status: &PodStatus, pod: &Pod) -> Ending {
    match (&status.reason, pod.metadata.deletion_timestamp.is_some()) {
        (Some(reason), _) => Ending::NeverStarted(words(reason, status.message.as_deref())),
        (None, true) => Ending::Cancelled,
        (None, false) => Ending::NodeLost,
    }
}

fn fault(waiting: &ContainerStateWaiting) -> Option<String> {
    let reason = waiting.reason.as_deref().filter(|reason| FAULTS.contains(reason))?;
    Some(words(reason, waiting.message.as_deref()))
}

/// One line.
fn words(reason: &str, message: Option<&str>) -> String {
    match message.map(|message| message.split_whitespace().collect::<Vec<_>>().join(" ")) {
        Some(message) if !message.is_empty() => format!("{reason}: {message}"),
        _ => reason.to_owned(),
    }
}

fn seconds(number: Option<i64>) -> Duration {
    Duration::from_secs(number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests;
