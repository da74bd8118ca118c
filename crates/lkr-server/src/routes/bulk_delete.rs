//! Deleting the documents that match an expression.

use actix_web::http::{Method, StatusCode};
use lkr::{BulkDelete, ListFilter};
use lkr_auth::KeyScope;

use crate::{
    error::KbResultExt,
    http::{ApiResponse, Authenticated, Endpoint, HandlerResult, RequestContext},
    openapi::{OperationDoc, ResponseShape, schema},
    wire::{
        bulk_delete::{BulkDeleteInput, DeletableDocuments},
        tasks::Accepted,
    },
};

/// More than the longest expression needs with every character escaped.
const BODY_BYTES: usize = 1024 * 1024;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint::new(
        Method::POST,
        "/api/v1/documents/delete",
        OperationDoc::new(
            "Documents",
            "delete_documents",
            "Counts the documents that match an expression and that the caller may delete; with dry_run false, accepts a task that deletes them",
            ResponseShape::Envelope(schema::<DeletableDocuments>()),
        )
        .body::<BulkDeleteInput>()
        .also_payload::<Accepted>(StatusCode::ACCEPTED, "A task of kind delete_where was accepted."),
        delete,
    )]
}

async fn delete(Authenticated(caller): Authenticated, mut cx: RequestContext) -> HandlerResult {
    let (expr, dry_run) = cx.json::<BulkDeleteInput>(BODY_BYTES).await?.check()?;
    if !dry_run {
        let scope = cx.rights_to_write(Some(&caller)).await?.readable();
        // A restricted key manages nothing, so it deletes what its owner added.
        let own_only = caller.credential.key_scope().is_some_and(KeyScope::is_restricted);
        let key = caller.credential.key_id().map(|id| id.to_string());
        let delete = BulkDelete { filter_expr: expr, scope, own_only, key };
        let task = cx.services()?.kb.delete_where(&delete, &caller.creator()).await.for_write()?;
        return ApiResponse::accepted(&Accepted::from(&task));
    }
    let filter = ListFilter { filter_expr: Some(expr), ..ListFilter::default() };
    let rights = cx.rights_to_write(Some(&caller)).await?;
    let may_delete = |document: &lkr::Document| rights.may_change(&document.space, &document.created_by);
    let scope = rights.readable();
    let documents = cx.services()?.kb.count_documents(&scope, &filter, may_delete).await.for_read()?;
    ApiResponse::ok(&DeletableDocuments { documents })
}
