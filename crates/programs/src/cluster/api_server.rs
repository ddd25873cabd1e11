//! The API server: how it is found, and what its errors mean.

use std::future::Future;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error};
use lanewright_files::timing::{TARGET, outside};
use lanewright_model::ExecutorSettings;
use lanewright_model::text::shell_line;
use lanewright_model::time::exact;
use tokio::runtime::{Builder, Runtime};

use super::ClusterError;

/// Of one question.
const LIMIT: Duration = Duration::from_secs(60);

const CONNECT: Duration = Duration::from_secs(10);

pub(super) struct Connection {
    runtime: Runtime,
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) server: String,
    kubectl: String,
}

impl Connection {
    /// Nothing is asked of the server yet.
    pub fn open(settings: &ExecutorSettings) -> Result<Self, ClusterError> {
        let broken = |said: String| ClusterError::Refused { said, remedy: remedy_of_config(settings) };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| broken(error.to_string()))?;
        let mut config = runtime.block_on(config(settings)).map_err(broken)?;
        config.connect_timeout = Some(CONNECT);
        config.read_timeout = Some(LIMIT);
        let namespace = settings.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let server = config.cluster_url.to_string();
        let client = runtime.block_on(async { Client::try_from(config) }).map_err(|error| broken(chain(&error)))?;
        let kubectl = kubectl(settings, &["get", "pods"]);
        Ok(Self { runtime, client, namespace, server, kubectl })
    }

    pub(super) fn ask<T>(&self, question: impl Future<Output = Result<T, Error>>) -> Result<T, ClusterError> {
        self.run(async { self.within_limit(question).await })
    }

    /// For several questions at once.
    pub(super) fn run<T>(&self, questions: impl Future<Output = T>) -> T {
        let _span = tracing::debug_span!(target: TARGET, "cluster", title = "kubernetes").entered();
        outside(|| self.runtime.block_on(questions))
    }

    pub(super) async fn within_limit<T>(
        &self,
        question: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, ClusterError> {
        match tokio::time::timeout(LIMIT, question).await {
            Ok(answer) => answer.map_err(|error| self.refused(&error)),
            Err(_) => Err(self.unreachable(&format!("no answer within {}", exact(LIMIT)))),
        }
    }

    fn refused(&self, error: &Error) -> ClusterError {
        let status = match error {
            Error::Api(status) => status,
            // Its own words are only "ServiceError".
            Error::Service(cause) => return self.unreachable(&chain(cause.as_ref())),
            other => return self.unreachable(&chain(other)),
        };
        let namespace = &self.namespace;
        let is_about_namespace = status.details.as_ref().is_some_and(|details| details.kind == "namespaces");
        let remedy = match status.code {
            401 => format!("log in again, so that this works: {}", self.kubectl),
            // Admission plugins refuse with 403, too: quotas, pod security, a service account that is missing.
            403 if status.message.contains("cannot") => {
                format!("ask for the Role of docs/clusters.md in the namespace {namespace}")
            }
            404 if is_about_namespace => {
                format!("set `namespace` to one that there is, or create it: kubectl create namespace {namespace}")
            }
            500.. | 429 => {
                let remedy = format!("repeat it; the API server is overloaded or starting: {}", self.kubectl);
                return ClusterError::Unavailable { said: status.message.clone(), remedy };
            }
            _ => "correct what it names in `[executors.NAME]`".to_owned(),
        };
        ClusterError::Refused { said: status.message.clone(), remedy }
    }

    fn unreachable(&self, why: &str) -> ClusterError {
        let said = format!("the API server {} cannot be reached: {why}", self.server);
        ClusterError::Unavailable { said, remedy: format!("check the address and the login: {}", self.kubectl) }
    }
}

async fn config(settings: &ExecutorSettings) -> Result<Config, String> {
    match &settings.context {
        None => Config::infer().await.map_err(|error| chain(&error)),
        Some(context) => {
            let options = KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
            Config::from_kubeconfig(&options).await.map_err(|error| chain(&error))
        }
    }
}

fn remedy_of_config(settings: &ExecutorSettings) -> String {
    let contexts = Kubeconfig::read().map(|config| config.contexts).unwrap_or_default();
    let known: Vec<&str> = contexts.iter().map(|context| context.name.as_str()).collect();
    match &settings.context {
        Some(context) if !known.is_empty() && !known.contains(&context.as_str()) => {
            format!("set `context` to one of the kubeconfig: {}", known.join(", "))
        }
        _ => "check the kubeconfig (KUBECONFIG, else ~/.kube/config): kubectl config get-contexts".to_owned(),
    }
}

/// A line for people.
pub(super) fn kubectl(settings: &ExecutorSettings, words: &[&str]) -> String {
    let flag = |name: &str, value: &Option<String>| Some([name.to_owned(), value.clone()?]);
    let flags = [flag("--context", &settings.context), flag("--namespace", &settings.namespace)];
    let words = words.iter().map(|word| (*word).to_owned());
    shell_line(["kubectl".to_owned()].into_iter().chain(flags.into_iter().flatten().flatten()).chain(words))
}

/// The error and its causes, which its own words often leave out.
fn chain(error: &dyn std::error::Error) -> String {
    let (mut said, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        let text = error.to_string();
        if !said.contains(&text) {
            said = format!("{said}: {text}");
        }
        cause = error.source();
    }
    said
}
