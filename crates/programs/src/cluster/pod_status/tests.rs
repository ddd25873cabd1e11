use serde_json::{Value, json};

use super::*;

/// 2026-01-01T00:00:00Z.
const NOW: i64 = 1_767_225_600;

fn pod(status: Value) -> Value {
    json!({
        "metadata": { "name": "lw-a", "creationTimestamp": "2025-12-31T23:00:00Z" },
        "spec": { "nodeName": "n1", "activeDeadlineSeconds": 60, "terminationGracePeriodSeconds": 120, "containers": [] },
        "status": status,
    })
}

fn of(pod: Value) -> Sighting {
    sighting(&serde_json::from_value(pod).unwrap(), NOW)
}

fn status(phase: &str, container: Value) -> Value {
    json!({
        "phase": phase,
        "conditions": [{ "type": "PodScheduled", "status": "True", "lastTransitionTime": "2025-12-31T23:50:00Z" }],
        "containerStatuses": [
            { "name": "sidecar", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": { "running": {} } },
            { "name": "lanewright", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": container },
        ],
    })
}

fn terminated(code: i32, reason: &str) -> Value {
    json!({ "terminated": { "exitCode": code, "reason": reason, "message": "exec:\n not found" } })
}

fn failed(reason: &str) -> Value {
    json!({ "phase": "Failed", "reason": reason, "message": "why" })
}

fn deleted(mut pod: Value, at: &str) -> Value {
    pod["metadata"]["deletionTimestamp"] = json!(at);
    pod
}

fn over(status: Value) -> Ending {
    match of(pod(status)) {
        Sighting::Over(ending) => ending,
        other => panic!("{other:?}"),
    }
}

#[test]
fn order_ends_with_its_container() {
    for phase in ["Failed", "Running"] {
        assert_eq!(over(status(phase, terminated(7, "Error"))), Ending::Exited(7));
        assert_eq!(over(status(phase, terminated(137, "OOMKilled"))), Ending::OutOfMemory);
        assert_eq!(over(status(phase, terminated(137, "ContainerStatusUnknown"))), Ending::NodeLost);
        let never = Ending::NeverStarted("StartError: exec: not found".into());
        assert_eq!(over(status(phase, terminated(128, "StartError"))), never);
    }
    assert_eq!(over(status("Running", terminated(0, "Completed"))), Ending::Exited(0));
    assert_eq!(over(json!({ "phase": "Succeeded" })), Ending::Exited(0));
}

#[test]
fn pod_eviction_is_not_a_command_failure() {
    for (reason, ending) in [
        ("DeadlineExceeded", Ending::TimeLimit),
        ("Evicted", Ending::Preempted),
        ("Preempting", Ending::Preempted),
        ("NodeLost", Ending::NodeLost),
        ("NodeShutdown", Ending::NodeLost),
        ("OutOfcpu", Ending::NeverStarted("OutOfcpu: why".into())),
    ] {
        assert_eq!(over(failed(reason)), ending, "{reason}");
    }
    for (reason, ending) in [
        ("PreemptionByScheduler", Ending::Preempted),
        ("EvictionByEvictionAPI", Ending::Preempted),
        ("DeletionByTaintManager", Ending::NodeLost),
        ("DeletionByPodGC", Ending::NodeLost),
    ] {
        let mut status = status("Failed", terminated(143, "Error"));
        status["conditions"] = json!([{ "type": "DisruptionTarget", "status": "True", "reason": reason }]);
        assert_eq!(over(status), ending, "{reason}");
    }
    let cancelled = deleted(pod(status("Failed", terminated(143, "Error"))), "2026-01-01T00:01:00Z");
    assert_eq!(of(cancelled), Sighting::Over(Ending::Cancelled));
}

#[test]
fn container_within_grace_period_is_running() {
    let running = |start: &str| {
        let mut status = status("Failed", json!({ "running": {} }));
        status["reason"] = json!("DeadlineExceeded");
        status["startTime"] = json!(start);
        of(pod(status))
    };
    assert_eq!(running("2025-12-31T23:58:00Z"), Sighting::Running { node: "n1".into() });
    assert_eq!(running("2025-12-31T23:56:00Z"), Sighting::Over(Ending::TimeLimit));
}

#[test]
fn pod_overdue_after_deletion_is_node_lost() {
    let running = pod(status("Running", json!({ "running": {} })));
    assert_eq!(of(running.clone()), Sighting::Running { node: "n1".into() });
    assert_eq!(of(deleted(running.clone(), "2026-01-01T00:01:00Z")), Sighting::Running { node: "n1".into() });
    assert_eq!(of(deleted(running, "2025-12-31T23:59:00Z")), Sighting::Over(Ending::NodeLost));
    let waiting = pod(json!({ "phase": "Pending" }));
    assert_eq!(of(deleted(waiting, "2025-12-31T23:59:00Z")), Sighting::Over(Ending::NodeLost));
}

#[test]
fn pod_start_failure_times_out() {
    let waiting = |reason: &str, since: &str| {
        let mut status = status("Pending", json!({ "waiting": { "reason": reason, "message": "why" } }));
        status["conditions"][0]["lastTransitionTime"] = json!(since);
        of(pod(status))
    };
    for reason in ["ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError"] {
        let said = format!("{reason}: why");
        assert_eq!(waiting(reason, "2025-12-31T23:46:00Z"), Sighting::Waiting(said.clone()));
        assert_eq!(waiting(reason, "2025-12-31T23:44:00Z"), Sighting::Over(Ending::NeverStarted(said)));
    }
    let large = waiting("ContainerCreating", "2025-12-31T23:00:00Z");
    assert_eq!(large, Sighting::Waiting("its containers are created".into()));
}

#[test]
fn unschedulable_pod_fails_unless_cluster_is_full() {
    let unschedulable = |message: &str| {
        let condition =
            json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message });
        of(pod(json!({ "phase": "Pending", "conditions": [condition] })))
    };
    let full = "0/2 nodes are available: 2 Insufficient cpu.";
    assert_eq!(unschedulable(full), Sighting::Waiting(format!("Unschedulable: {full}")));
    let none = "0/2 nodes are available: 2 node(s) didn't match node selector.";
    assert_eq!(unschedulable(none), Sighting::Over(Ending::NeverStarted(format!("Unschedulable: {none}"))));
    assert_eq!(of(pod(json!({ "phase": "Pending" }))), Sighting::Waiting("it is to be scheduled".into()));
}
