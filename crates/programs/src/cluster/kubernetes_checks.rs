//! What must be right before a pod is created.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, Error};

use super::api_server::Connection;
use super::kubernetes::Kubernetes;
use super::{Check, ClusterError, Order};

/// Verb, resource and subresource of everything that is asked of the API.
const RIGHTS: &[(&str, &str, &str)] = &[
    ("create", "pods", ""),
    ("get", "pods", ""),
    ("list", "pods", ""),
    ("delete", "pods", ""),
    ("get", "pods", "log"),
];

pub(super) fn checks(kubernetes: &Kubernetes, order: &Order) -> Vec<Check> {
    let connected = kubernetes.connection().and_then(|connection| Ok((connection, version(connection)?)));
    let (connection, seen) = match connected {
        Ok(connected) => connected,
        Err(error) => return vec![Check { name: "api", outcome: Err(error) }],
    };
    let mut checks = vec![Check { name: "api", outcome: Ok(seen) }];
    checks.push(Check { name: "rights", outcome: rights(connection) });
    if checks.iter().all(|check| check.outcome.is_ok()) {
        let secret = kubernetes.settings.secret.as_deref();
        checks.extend(secret.map(|name| Check { name: "secret", outcome: secret_is_there(connection, name) }));
        checks.push(Check { name: "submission", outcome: submission(kubernetes, connection, order) });
    }
    checks
}

fn version(connection: &Connection) -> Result<String, ClusterError> {
    let version = connection.ask(connection.client.apiserver_version())?;
    Ok(format!("Kubernetes {} at {}", version.git_version, connection.server))
}

fn rights(connection: &Connection) -> Result<String, ClusterError> {
    let mut missing = Vec::new();
    for (verb, resource, subresource) in RIGHTS {
        let answer = may(connection, verb, resource, subresource)?;
        if !answer.allowed {
            let slash = if subresource.is_empty() { "" } else { "/" };
            missing.push(format!("{verb} {resource}{slash}{subresource}"));
        }
    }
    let namespace = &connection.namespace;
    if missing.is_empty() {
        return Ok(format!("create, list and delete pods in the namespace {namespace}"));
    }
    Err(ClusterError::Refused {
        said: format!("in the namespace {namespace} you may not: {}", missing.join(", ")),
        remedy: "ask for the Role of docs/clusters.md there".to_owned(),
    })
}

fn may(
    connection: &Connection,
    verb: &str,
    resource: &str,
    subresource: &str,
) -> Result<SubjectAccessReviewStatus, ClusterError> {
    let attributes = ResourceAttributes {
        namespace: Some(connection.namespace.clone()),
        verb: Some(verb.to_owned()),
        resource: Some(resource.to_owned()),
        subresource: Some(subresource.to_owned()).filter(|name| !name.is_empty()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..Default::default() };
    let api: Api<SelfSubjectAccessReview> = Api::all(connection.client.clone());
    let answer = connection.ask(api.create(&PostParams::default(), &review))?;
    Ok(answer.status.unwrap_or_default())
}

/// Its values are not asked for. To look at Secrets is not a right that jobs need.
fn secret_is_there(connection: &Connection, name: &str) -> Result<String, ClusterError> {
    let api: Api<Secret> = Api::namespaced(connection.client.clone(), &connection.namespace);
    let found = connection.ask(async {
        match api.get_metadata_opt(name).await {
            Ok(found) => Ok(Some(found.is_some())),
            Err(Error::Api(status)) if status.code == 403 => Ok(None),
            Err(error) => Err(error),
        }
    })?;
    let namespace = &connection.namespace;
    match found {
        Some(true) => Ok(format!("{name} is in the namespace {namespace}")),
        None => Ok(format!("{name} was not looked for: you may not read Secrets there")),
        Some(false) => Err(ClusterError::Refused {
            said: format!("the namespace {namespace} has no Secret {name}"),
            remedy: format!("create it: kubectl -n {namespace} create secret generic {name} --from-env-file=FILE"),
        }),
    }
}

fn submission(kubernetes: &Kubernetes, connection: &Connection, order: &Order) -> Result<String, ClusterError> {
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    connection.ask(kubernetes.create(connection, &parameters, order))?;
    let image = order.resources.image.as_ref().or(kubernetes.settings.image.as_ref());
    let image = image.map_or("", String::as_str);
    Ok(format!("a pod with the image {image} would be taken"))
}
