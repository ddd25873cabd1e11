//! Which engine an executor of the settings is.

use lanewright_model::{ExecutorKind, ExecutorSettings};

#[cfg(feature = "kubernetes")]
use super::kubernetes;
use super::{Cluster, ClusterError, slurm};

/// The engine that `settings` describe; its jobs get `variables`. Nothing is asked of it yet. An error where this program
/// was built without it.
pub fn open(settings: &ExecutorSettings, variables: Vec<(String, String)>) -> Result<Box<dyn Cluster>, ClusterError> {
    match settings.kind {
        ExecutorKind::Slurm => Ok(Box::new(slurm::Slurm::new(settings.clone(), variables))),
        #[cfg(feature = "kubernetes")]
        ExecutorKind::Kubernetes => Ok(Box::new(kubernetes::Kubernetes::new(settings.clone(), variables))),
        #[cfg(not(feature = "kubernetes"))]
        ExecutorKind::Kubernetes => Err(ClusterError::Refused {
            said: "this Lanewright was built without Kubernetes".to_owned(),
            remedy: "use a released program, or build it with `cargo build --release --features kubernetes`".to_owned(),
        }),
    }
}
