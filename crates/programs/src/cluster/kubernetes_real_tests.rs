//! With a real cluster, whose nodes run the programs of this machine: see `tests/kubernetes/run`.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use lanewright_model::Resources;
use serde_json::json;

use super::*;

fn kubernetes(namespace: &str) -> Kubernetes {
    let mount = |path: &str| json!({ "name": path.replace('/', ""), "mountPath": path });
    let volume = |path: &str| json!({ "name": path.replace('/', ""), "hostPath": { "path": path } });
    let spec = json!({
        "hostNetwork": true,
        "dnsPolicy": "Default",
        "terminationGracePeriodSeconds": 10,
        "volumes": [volume("/usr"), volume("/etc")],
        "containers": [{ "name": "lanewright", "volumeMounts": [mount("/usr"), mount("/etc")] }],
    });
    let settings = json!({
        "kind": "kubernetes",
        "image": "localhost/hostfs:1",
        "namespace": namespace,
        "pod_patch": { "spec": spec },
    });
    Kubernetes::new(serde_json::from_value(settings).unwrap(), vec![("MODE".into(), "a $(b)".into())])
}

fn order(kubernetes: &Kubernetes, script: &str, memory_mib: u32) -> Order {
    let name = OrderName::of(&[script]);
    kubernetes.forget(std::slice::from_ref(&name)).unwrap();
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    let resources = Resources {
        memory_mib: NonZeroU32::new(memory_mib),
        time: Some(Duration::from_secs(60)),
        ..Resources::default()
    };
    Order { name, comment: script.into(), command, resources }
}

/// Looks until `wanted`.
fn until(
    kubernetes: &Kubernetes,
    order: &Order,
    mut wanted: impl FnMut(Option<&Sighting>) -> bool,
) -> Option<Sighting> {
    let began = Instant::now();
    loop {
        let seen = kubernetes.survey(std::slice::from_ref(&order.name)).unwrap().remove(&order.name);
        let seen = seen.map(|job| job.sighting);
        if wanted(seen.as_ref()) {
            return seen;
        }
        assert!(began.elapsed() < Duration::from_secs(150), "{}: {seen:?}", order.comment);
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn is_over(sighting: Option<&Sighting>) -> bool {
    matches!(sighting, Some(Sighting::Over(_)))
}

fn is_running(sighting: Option<&Sighting>) -> bool {
    matches!(sighting, Some(Sighting::Running { .. }))
}

fn ending(script: &str, memory_mib: u32) -> Ending {
    let kubernetes = kubernetes("default");
    let order = order(&kubernetes, script, memory_mib);
    kubernetes.submit(std::slice::from_ref(&order)).remove(0).unwrap();
    let Some(Sighting::Over(ending)) = until(&kubernetes, &order, is_over) else { panic!("not over") };
    kubernetes.forget(&[order.name]).unwrap();
    ending
}

#[test]
fn order_is_submitted_once() {
    let kubernetes = kubernetes("default");
    let order = order(&kubernetes, "echo \"first $MODE\"; exit 7", 64);
    let twice = kubernetes.submit(&[order.clone(), order.clone()]);
    assert!(twice.iter().all(Result::is_ok), "{twice:?}");
    let seen = until(&kubernetes, &order, is_over);
    assert_eq!(seen, Some(Sighting::Over(Ending::Exited(7))));
    assert_eq!(kubernetes.output(&order.name, 0).unwrap().unwrap(), b"first a $(b)\n");
    assert_eq!(kubernetes.output(&order.name, 6).unwrap().unwrap(), b"a $(b)\n");
    let other = OrderName::of(&["other"]);
    let both = kubernetes.survey(&[order.name.clone(), other.clone()]).unwrap();
    assert_eq!(both.into_keys().collect::<Vec<_>>(), std::slice::from_ref(&order.name));
    assert_eq!(kubernetes.output(&other, 0).unwrap(), None);
    kubernetes.forget(&[order.name.clone(), other]).unwrap();
    until(&kubernetes, &order, |seen| seen.is_none());
}

#[test]
fn cancelled_pod_gets_grace_period() {
    let kubernetes = kubernetes("default");
    let order = order(&kubernetes, "trap 'sleep 4; echo pushed; exit 3' TERM; echo ready; sleep 99 & wait", 64);
    let ticket = kubernetes.submit(std::slice::from_ref(&order)).remove(0).unwrap();
    until(&kubernetes, &order, is_running);
    while kubernetes.output(&order.name, 0).unwrap().unwrap_or_default() != b"ready\n" {
        std::thread::sleep(Duration::from_millis(200));
    }
    kubernetes.cancel(std::slice::from_ref(&ticket), Cancel::Ask).unwrap();
    kubernetes.cancel(&[ticket], Cancel::Ask).unwrap();
    let mut printed = Vec::new();
    until(&kubernetes, &order, |seen| {
        printed = kubernetes.output(&order.name, 0).unwrap().unwrap_or(std::mem::take(&mut printed));
        printed.ends_with(b"pushed\n") || seen.is_none()
    });
    assert_eq!(String::from_utf8_lossy(&printed), "ready\npushed\n");
    until(&kubernetes, &order, |seen| seen.is_none());
}

#[test]
fn a_killed_order_is_gone_at_once() {
    let kubernetes = kubernetes("default");
    let order = order(&kubernetes, "trap '' TERM; sleep 99", 64);
    let ticket = kubernetes.submit(std::slice::from_ref(&order)).remove(0).unwrap();
    until(&kubernetes, &order, is_running);
    kubernetes.cancel(&[ticket], Cancel::Kill).unwrap();
    assert_eq!(until(&kubernetes, &order, |seen| seen.is_none()), None);
}

#[test]
fn too_much_memory_is_seen() {
    assert_eq!(ending("exec tail /dev/zero", 32), Ending::OutOfMemory);
}

#[test]
fn pod_deadline_is_a_time_limit() {
    let began = Instant::now();
    assert_eq!(ending("trap 'sleep 5; exit 3' TERM; sleep 99 & wait", 64), Ending::TimeLimit);
    assert!(began.elapsed() > Duration::from_secs(63), "{:?}", began.elapsed());
}

#[test]
fn processes_without_a_parent_are_reaped() {
    let script = "(sh -c 'sleep 1 & exec true' &); sleep 4; \
                  grep -l '^State:.*zombie' /proc/[0-9]*/status | wc -l; exit 5";
    let kubernetes = kubernetes("default");
    let order = order(&kubernetes, script, 64);
    kubernetes.submit(std::slice::from_ref(&order)).remove(0).unwrap();
    assert_eq!(until(&kubernetes, &order, is_over), Some(Sighting::Over(Ending::Exited(5))));
    assert_eq!(kubernetes.output(&order.name, 0).unwrap().unwrap(), b"0\n");
    kubernetes.forget(&[order.name]).unwrap();
}

/// Starts or kills a machine of the cluster.
fn control(action: &str, node: &str) {
    let variable = |name: &str| std::env::var(name).unwrap();
    let program = format!("{}/ctl.sh", variable("KUBERNETES_TOOLS"));
    let machine = node.replace('n', "node");
    let status = std::process::Command::new(program)
        .args([&format!("{}/c", variable("CLUSTER")), action, &machine])
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn an_order_is_lost_with_its_node() {
    let kubernetes = kubernetes("default");
    let order = order(&kubernetes, "sleep 50", 64);
    let ticket = kubernetes.submit(std::slice::from_ref(&order)).remove(0).unwrap();
    let Some(Sighting::Running { node }) = until(&kubernetes, &order, is_running) else { panic!("not running") };
    control("kill", &node);
    let seen = until(&kubernetes, &order, is_over);
    kubernetes.cancel(&[ticket], Cancel::Kill).unwrap();
    until(&kubernetes, &order, |seen| seen.is_none());
    control("start", &node);
    assert_eq!(seen, Some(Sighting::Over(Ending::NodeLost)));
}
