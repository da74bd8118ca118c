use lkr::FilterExpr;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{filter_expr::FilterExprJson, filter_expr_schema::FilterExprInput};
use crate::error::ApiError;

/// Selects documents to delete.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BulkDeleteInput {
    /// The expression that the documents match.
    #[serde(rename = "where")]
    #[schema(value_type = FilterExprInput)]
    filter_expr: FilterExprJson,
    /// Whether to count the documents only.
    #[schema(default = true)]
    dry_run: Option<bool>,
}

/// How many documents would be deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletableDocuments {
    /// Those that match and that the caller may delete.
    pub(crate) documents: u64,
}

impl BulkDeleteInput {
    /// The expression, and whether to count only.
    pub(crate) fn check(self) -> Result<(FilterExpr, bool), ApiError> {
        Ok((self.filter_expr.check()?, self.dry_run.unwrap_or(true)))
    }
}
