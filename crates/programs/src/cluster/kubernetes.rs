//! Kubernetes, through its API: a pod for each order.
//!
//! Bare pods, since a Job starts a second pod beside a first one that still runs.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::OnceLock;

use chrono::Utc;
use futures::{AsyncReadExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, LogParams, PostParams};
use kube::{Api, Error, ResourceExt};
use lanewright_model::ExecutorSettings;

use super::api_server::{Connection, kubectl};
use super::{
    ByHand, Cancel, Check, Cluster, ClusterError, Ending, Job, Order, OrderName, Sighting, Ticket, kubernetes_checks,
    pod, pod_status,
};

/// Questions that wait for their answers.
const AT_ONCE: usize = 16;

/// Pods of one answer.
const PAGE: u32 = 500;

pub(super) struct Kubernetes {
    pub(super) settings: ExecutorSettings,
    variables: Vec<(String, String)>,
    connection: OnceLock<Connection>,
}

impl Kubernetes {
    pub(super) fn new(settings: ExecutorSettings, variables: Vec<(String, String)>) -> Self {
        Self { settings, variables, connection: OnceLock::new() }
    }

    pub(super) fn connection(&self) -> Result<&Connection, ClusterError> {
        if let Some(connection) = self.connection.get() {
            return Ok(connection);
        }
        let connection = Connection::open(&self.settings)?;
        Ok(self.connection.get_or_init(|| connection))
    }

    pub(super) fn create(
        &self,
        connection: &Connection,
        parameters: &PostParams,
        order: &Order,
    ) -> impl Future<Output = Result<(), Error>> + use<> {
        let (client, namespace, parameters) =
            (connection.client.clone(), connection.namespace.clone(), parameters.clone());
        let pod = pod::pod(&self.settings, &self.variables, order);
        async move {
            let pod: DynamicObject = serde_json::from_value(pod).map_err(Error::SerdeError)?;
            let api = Api::namespaced_with(client, &namespace, &ApiResource::erase::<Pod>(&()));
            api.create(&parameters, &pod).await.map(drop)
        }
    }

    async fn submit_once(&self, connection: &Connection, order: &Order) -> Result<Ticket, ClusterError> {
        let create = self.create(connection, &PostParams::default(), order);
        let create = async {
            match create.await {
                Err(Error::Api(status)) if status.is_already_exists() => Ok(()),
                other => other,
            }
        };
        connection.within_limit(create).await.map(|()| Ticket(order.name.to_string()))
    }

    fn delete<'a>(&self, names: impl Iterator<Item = &'a str>, parameters: &DeleteParams) -> Result<(), ClusterError> {
        let connection = self.connection()?;
        let api = pods(connection);
        let delete = |name| connection.within_limit(delete_one(&api, name, parameters));
        let answers = stream::iter(names).map(delete).buffer_unordered(AT_ONCE).collect::<Vec<_>>();
        connection.run(answers).into_iter().collect()
    }
}

impl Cluster for Kubernetes {
    fn submit(&self, orders: &[Order]) -> Vec<Result<Ticket, ClusterError>> {
        let connection = match self.connection() {
            Ok(connection) => connection,
            Err(error) => return orders.iter().map(|_| Err(error.again())).collect(),
        };
        let submit = |order| self.submit_once(connection, order);
        connection.run(stream::iter(orders).map(submit).buffered(AT_ONCE).collect())
    }

    fn survey(&self, names: &[OrderName]) -> Result<HashMap<OrderName, Job>, ClusterError> {
        let connection = self.connection()?;
        let filter = match names {
            [name] => ListParams::default().fields(&format!("metadata.name={name}")),
            _ => ListParams::default().labels(&format!("{}={}", pod::MANAGED_BY.0, pod::MANAGED_BY.1)),
        };
        let names: HashSet<&OrderName> = names.iter().collect();
        let now = Utc::now().timestamp();
        let found = connection.ask(list(&pods(connection), filter.limit(PAGE)))?.into_iter().map(|pod| {
            let name = pod.name_any();
            let job = Job { ticket: Ticket(name.clone()), sighting: pod_status::sighting(&pod, now) };
            (OrderName(name), job)
        });
        Ok(found.filter(|(name, _)| names.contains(name)).collect())
    }

    fn cancel(&self, tickets: &[Ticket], how: Cancel) -> Result<(), ClusterError> {
        let parameters = match how {
            Cancel::Ask => DeleteParams::default(),
            Cancel::Kill => DeleteParams::default().grace_period(0),
        };
        self.delete(tickets.iter().map(|ticket| ticket.0.as_str()), &parameters)
    }

    fn output(&self, name: &OrderName, from: u64) -> Result<Option<Vec<u8>>, ClusterError> {
        let connection = self.connection()?;
        let parameters = LogParams { container: Some(pod::CONTAINER.to_owned()), ..LogParams::default() };
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let printed = connection.ask(log(&pods(connection), &name.0, &parameters))?;
        Ok(printed.map(|bytes| bytes.get(from..).unwrap_or_default().to_vec()))
    }

    fn forget(&self, names: &[OrderName]) -> Result<(), ClusterError> {
        self.delete(names.iter().map(|name| name.0.as_str()), &DeleteParams::default())
    }

    fn by_hand(&self, name: &OrderName) -> ByHand {
        ByHand {
            output: kubectl(&self.settings, &["logs", &name.0]),
            end: kubectl(&self.settings, &["delete", "pod", &name.0]),
        }
    }

    fn remedy(&self, _: &OrderName, sighting: Option<&Sighting>) -> String {
        let events = || format!("see why: {}", kubectl(&self.settings, &["get", "events"]));
        match sighting {
            Some(Sighting::Waiting(reason) | Sighting::Over(Ending::NeverStarted(reason))) => {
                remedy(reason).map_or_else(events, str::to_owned)
            }
            _ => events(),
        }
    }

    fn check(&self, order: &Order) -> Vec<Check> {
        kubernetes_checks::checks(self, order)
    }
}

/// What to do about a pod that does not start.
fn remedy(reason: &str) -> Option<&'static str> {
    let word = reason.split(':').next().unwrap_or_default();
    Some(match word {
        "StartError" | "ContainerCannotRun" | "RunContainerError" => {
            "install Lanewright and git in the image, or set `program` to its path there"
        }
        "CreateContainerConfigError" | "CreateContainerError" => {
            "check `secret`, and what else `pod_patch` refers to, in the namespace"
        }
        "Unschedulable" => "no node can take it now: see nodeSelector, tolerations and resources in `pod_patch`",
        _ if word.contains("Image") => {
            "check `image`, and that nodes may pull it: imagePullSecrets in `pod_patch` or of the service account"
        }
        _ => return None,
    })
}

fn pods(connection: &Connection) -> Api<Pod> {
    Api::namespaced(connection.client.clone(), &connection.namespace)
}

async fn list(api: &Api<Pod>, mut filter: ListParams) -> Result<Vec<Pod>, Error> {
    let mut pods = Vec::new();
    loop {
        let page = api.list(&filter).await?;
        pods.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => filter = filter.continue_token(&token),
            None => return Ok(pods),
        }
    }
}

/// One that is gone is no error.
async fn delete_one(api: &Api<Pod>, name: &str, parameters: &DeleteParams) -> Result<(), Error> {
    match api.delete(name, parameters).await {
        Err(Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}

/// `None`: the container has not started, or the pod is gone.
async fn log(api: &Api<Pod>, name: &str, parameters: &LogParams) -> Result<Option<Vec<u8>>, Error> {
    let mut stream = match api.log_stream(name, parameters).await {
        Err(Error::Api(status)) if [400, 404].contains(&status.code) => return Ok(None),
        other => other?,
    };
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.map_err(Error::ReadEvents)?;
    Ok(Some(bytes))
}

#[cfg(test)]
#[cfg(feature = "real-kubernetes")]
#[path = "kubernetes_real_tests.rs"]
mod tests;
