//! The pod of an order.

use std::path::Path;

use lanewright_model::ExecutorSettings;
use serde_json::{Map, Value, json};

use super::Order;

/// Our container; a cluster may add others.
pub(super) const CONTAINER: &str = "lanewright";

/// The label of all pods of Lanewright, and its value.
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "lanewright");

/// From SIGTERM to SIGKILL: long enough to stop agents and to push with some retries.
pub(super) const GRACE_SECONDS: u64 = 120;

const CACHE: &str = "cache";

/// What most clusters call their GPUs; `pod_patch` can ask for others.
const GPU: &str = "nvidia.com/gpu";

/// As JSON, because `pod_patch` may have fields of a newer API than this program knows.
pub(super) fn pod(settings: &ExecutorSettings, variables: &[(String, String)], order: &Order) -> Value {
    let mut pod = json!({
        "metadata": { "annotations": { "lanewright.dev/order": order.comment } },
        "spec": {
            "activeDeadlineSeconds": order.resources.minutes() * 60,
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            // The pause container reaps what supervisors and agents leave; `lanewright work` does not as process 1.
            "shareProcessNamespace": true,
            "enableServiceLinks": false,
            "containers": [container(settings, variables, order)],
        },
    });
    if let Some(path) = settings.node_cache() {
        pod["spec"]["containers"][0]["volumeMounts"] = json!([{ "name": CACHE, "mountPath": path }]);
        pod["spec"]["volumes"] = json!([cache(settings.cache.as_deref())]);
    }
    match &settings.service_account {
        Some(name) => pod["spec"]["serviceAccountName"] = json!(name),
        None => pod["spec"]["automountServiceAccountToken"] = json!(false),
    }
    merge(&mut pod, Value::Object(settings.pod_patch.clone()));
    merge(&mut pod, what_repetition_depends_on(order));
    pod
}

fn container(settings: &ExecutorSettings, variables: &[(String, String)], order: &Order) -> Value {
    let variable = |(name, value): &(String, String)| json!({ "name": name, "value": literal(value) });
    let variables: Vec<Value> = variables.iter().map(variable).collect();
    let secrets: Vec<Value> = settings.secret.iter().map(|name| json!({ "secretRef": { "name": name } })).collect();
    let command: Vec<String> = order.command.iter().map(|word| literal(word)).collect();
    let asked = &order.resources;
    let memory = format!("{}Mi", asked.memory_mib());
    let mut limits = json!({ "memory": memory });
    if let Some(gpus) = asked.gpus {
        limits[GPU] = json!(gpus.to_string());
    }
    json!({
        "name": CONTAINER,
        "image": asked.image.as_ref().or(settings.image.as_ref()),
        "command": command,
        "env": variables,
        "envFrom": secrets,
        "resources": {
            "requests": { "cpu": asked.cpus().to_string(), "memory": memory },
            "limits": limits,
        },
    })
}

/// Kubernetes replaces `$(NAME)` in commands and variables.
fn literal(text: &str) -> String {
    text.replace("$(", "$$(")
}

fn cache(directory: Option<&Path>) -> Value {
    match directory {
        Some(path) => json!({ "name": CACHE, "hostPath": { "path": path, "type": "DirectoryOrCreate" } }),
        None => json!({ "name": CACHE, "emptyDir": {} }),
    }
}

/// Comes after the user's patch.
fn what_repetition_depends_on(order: &Order) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": order.name.to_string(), "labels": { MANAGED_BY.0: MANAGED_BY.1 } },
        "spec": { "restartPolicy": "Never" },
    })
}

/// As a JSON merge patch (RFC 7386), but lists of named objects are merged by name, as `kubectl patch` does it.
fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge_objects(target, patch),
        (Value::Array(target), Value::Array(patch)) => match list_key(target, &patch) {
            Some(key) => merge_lists(target, patch, key),
            None => *target = patch,
        },
        (target, patch) => *target = patch,
    }
}

fn merge_objects(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, value) in patch {
        match target.get_mut(&name) {
            Some(present) => merge(present, value),
            None => drop(target.insert(name, value)),
        }
    }
}

/// The key that distinguishes the objects of both lists: several mounts may be of one volume.
fn list_key(target: &[Value], patch: &[Value]) -> Option<&'static str> {
    let have = |key: &str| target.iter().chain(patch).all(|item| item.get(key).is_some_and(Value::is_string));
    ["mountPath", "name"].into_iter().find(|key| have(key))
}

fn merge_lists(target: &mut Vec<Value>, patch: Vec<Value>, key: &str) {
    for item in patch {
        match target.iter_mut().find(|present| present[key] == item[key]) {
            // A volume of another kind takes the place of ours.
            Some(present) if present.get("emptyDir").or(present.get("hostPath")).is_some() => *present = item,
            Some(present) => merge(present, item),
            None => target.push(item),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::OrderName;

    fn settings(more: Value) -> ExecutorSettings {
        let mut settings = json!({ "kind": "kubernetes", "image": "node:1" });
        merge(&mut settings, more);
        serde_json::from_value(settings).unwrap()
    }

    fn order() -> Order {
        let command = ["lanewright", "work", "/x", "$(HOME)"].map(str::to_owned).to_vec();
        let name = OrderName::of(&["a"]);
        let resources = json!({ "cpus": 2, "memory_mib": 512, "time": 180_000 });
        Order { name, comment: "c".into(), command, resources: serde_json::from_value(resources).unwrap() }
    }

    #[test]
    fn the_lane_has_its_own_image_and_gpus() {
        let mut order = order();
        order.resources.image = Some("node:2".into());
        order.resources.gpus = std::num::NonZeroU32::new(2);
        let made = pod(&settings(json!({})), &[], &order);
        let container = &made["spec"]["containers"][0];
        assert_eq!(container["image"], "node:2");
        assert_eq!(container["resources"]["limits"], json!({ "memory": "512Mi", GPU: "2" }));
    }

    #[test]
    fn a_pod_runs_the_command_once_with_what_it_needs() {
        let settings = settings(json!({ "secret": "s", "service_account": "lane" }));
        let pod = pod(&settings, &[("A".into(), "$(B)".into())], &order());
        let (spec, container) = (&pod["spec"], &pod["spec"]["containers"][0]);
        assert_eq!(pod["metadata"]["name"], order().name.to_string());
        assert_eq!(
            [&spec["restartPolicy"], &spec["activeDeadlineSeconds"], &spec["serviceAccountName"]],
            [&json!("Never"), &json!(180), &json!("lane")]
        );
        assert_eq!(container["command"], json!(["lanewright", "work", "/x", "$$(HOME)"]));
        assert_eq!(container["env"], json!([{ "name": "A", "value": "$$(B)" }]));
        assert_eq!(container["envFrom"], json!([{ "secretRef": { "name": "s" } }]));
        assert_eq!(container["resources"]["limits"], json!({ "memory": "512Mi" }));
        assert_eq!(container["volumeMounts"], json!([{ "name": "cache", "mountPath": "/var/cache/lanewright" }]));
        assert_eq!(spec["volumes"], json!([{ "name": "cache", "emptyDir": {} }]));
        assert!(spec.get("automountServiceAccountToken").is_none());
    }

    #[test]
    fn pod_patch_merges_lists_by_name() {
        let patch = json!({
            "metadata": { "name": "x", "labels": { "team": "a", "app.kubernetes.io/managed-by": "helm" } },
            "spec": {
                "restartPolicy": "Always",
                "volumes": [{ "name": "cache", "persistentVolumeClaim": { "claimName": "c" } }, { "name": "keys" }],
                "containers": [{
                    "name": "lanewright",
                    "resources": { "limits": { "nvidia.com/gpu": 1 } },
                    "volumeMounts": [{ "name": "keys", "mountPath": "/keys" }],
                }],
            },
        });
        let pod = pod(&settings(json!({ "pod_patch": patch, "cache": "/scratch" })), &[], &order());
        let (spec, container) = (&pod["spec"], &pod["spec"]["containers"][0]);
        assert_eq!(
            (&pod["metadata"]["name"], &spec["restartPolicy"]),
            (&json!(order().name.to_string()), &json!("Never"))
        );
        assert_eq!(pod["metadata"]["labels"], json!({ "team": "a", "app.kubernetes.io/managed-by": "lanewright" }));
        assert_eq!(container["image"], "node:1");
        assert_eq!(container["resources"]["limits"], json!({ "memory": "512Mi", "nvidia.com/gpu": 1 }));
        assert_eq!(container["volumeMounts"].as_array().unwrap().len(), 2);
        let claim = json!({ "name": "cache", "persistentVolumeClaim": { "claimName": "c" } });
        assert_eq!(spec["volumes"], json!([claim, { "name": "keys" }]));
    }
}
