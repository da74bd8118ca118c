use std::fmt::Debug;

use async_trait::async_trait;
use lkr_catalog::{Progress, SearchQuality};

use crate::Result;

/// Measures the quality of searches against a gold set, in the format that [`crate::Ingestor::evaluate`] accepted.
#[async_trait]
pub trait Evaluator: Debug + Send + Sync + 'static {
    /// Runs every query of the gold set in both modes. Calls `report` with the number of queries that are done.
    async fn evaluate(
        &self,
        gold: &[u8],
        report: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<SearchQualities>;
}

/// The quality of flat and of layered searches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchQualities {
    /// Searches of chunks alone.
    pub flat: SearchQuality,
    /// Searches of all layers.
    pub layered: SearchQuality,
}
