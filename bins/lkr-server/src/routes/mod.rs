//! The table of routes. The server is built from it, and so is the OpenAPI document.

mod auth;
mod documents;
mod knowledge;
mod ops;
mod pages;
mod search;
mod tasks;

use actix_web::http::{Method, StatusCode};

use crate::{
    error::Code,
    http::Endpoint,
    openapi::{Doc, Shape, schema},
    wire,
};

/// Every route there is. Fixed paths stand before those with a part that varies.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    [accounts(), tasks(), documents(), searching(), operations()].into_iter().flatten().collect()
}

fn accounts() -> Vec<Endpoint> {
    use wire::auth::{Credentials, LoggedOut, PasswordChange, Token, User};
    let doc = |id, summary, shape| Doc::new("Accounts", id, summary, Shape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::POST,
            "/api/v1/auth/login",
            doc("login", "Begins a session", schema::<Token>())
                .body::<Credentials>()
                .errors(&[Code::Unauthenticated]),
            auth::login,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/auth/logout",
            doc("logout", "Ends the session of the credential", schema::<LoggedOut>()),
            auth::logout,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/auth/me",
            doc("me", "The account of the credential", schema::<User>()),
            auth::me,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/auth/password",
            doc(
                "change_password",
                "Changes the own password, ends all sessions of the account and begins a new one",
                schema::<Token>(),
            )
            .body::<PasswordChange>(),
            auth::change_password,
        ),
    ]
}

fn tasks() -> Vec<Endpoint> {
    use wire::tasks::{TaskItem, TaskList};
    let doc = |id, summary, shape| Doc::new("Tasks", id, summary, Shape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/tasks",
            doc("list_tasks", "Lists tasks, the newest first", schema::<TaskList>())
                .text("status", "pending, running, done or failed.")
                .paged(),
            tasks::list,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/tasks/{task_id}",
            doc("get_task", "A task", schema::<TaskItem>()).errors(&[Code::NotFound]),
            tasks::get,
        ),
    ]
}

fn documents() -> Vec<Endpoint> {
    use wire::{
        document_input::DocumentInput,
        documents::{ChunkList, DeletedDocument, DocumentDetail, DocumentList, DocumentText},
        tasks::Accepted,
    };
    let doc = |id, summary, shape| Doc::new("Documents", id, summary, Shape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::POST,
            "/api/v1/documents",
            doc("add_document", "Accepts a document for ingestion", schema::<Accepted>())
                .status(StatusCode::ACCEPTED)
                .body::<DocumentInput>(),
            documents::add,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents",
            doc("list_documents", "Lists documents, the newest first", schema::<DocumentList>())
                .text("category", "Only documents of this category; empty for those without one.")
                .text("source", "Only documents of this source.")
                .text("q", "Only documents whose title begins so.")
                .paged(),
            documents::list,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/{doc_id}",
            doc("get_document", "A document with its nodes", schema::<DocumentDetail>())
                .errors(&[Code::NotFound]),
            documents::get,
        ),
        Endpoint::new(
            Method::DELETE,
            "/api/v1/documents/{doc_id}",
            doc(
                "delete_document",
                "Deletes a document with all that was made of it; zeros for an unknown one",
                schema::<DeletedDocument>(),
            )
            .errors(&[Code::Forbidden, Code::Conflict]),
            documents::delete,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/{doc_id}/chunks",
            doc("list_chunks", "The chunks of a document, in order", schema::<ChunkList>())
                .paged()
                .errors(&[Code::NotFound]),
            documents::chunks,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/{doc_id}/text",
            doc("get_text", "The extracted text of a document", schema::<DocumentText>())
                .errors(&[Code::NotFound]),
            documents::text,
        ),
    ]
}

const CACHED: &str = "hit or miss: whether the answer came from the cache.";

fn searching() -> Vec<Endpoint> {
    use wire::{knowledge::KnowledgeStats, search::SearchAnswer, search_input::SearchInput};
    vec![
        Endpoint::new(
            Method::POST,
            "/api/v1/search",
            Doc::new("Search", "search", "Searches", Shape::Envelope(schema::<SearchAnswer>()))
                .header("X-Cache", CACHED)
                .body::<SearchInput>(),
            search::search,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/search/stream",
            Doc::new(
                "Search",
                "search_stream",
                "Searches, answered as events: results, then summary.delta and summary.done, or error",
                Shape::Bare("text/event-stream"),
            )
            .header("X-Cache", CACHED)
            .body::<SearchInput>(),
            search::stream,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/knowledge/stats",
            Doc::new("Knowledge", "stats", "How much there is", Shape::Envelope(schema::<KnowledgeStats>())),
            knowledge::stats,
        ),
    ]
}

fn operations() -> Vec<Endpoint> {
    use wire::ops::{Alive, Readiness};
    let doc = |id, summary, shape| Doc::new("Operations", id, summary, shape);
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/openapi.json",
            doc("openapi", "This document", Shape::Bare("application/json")),
            ops::openapi,
        ),
        Endpoint::new(
            Method::GET,
            "/healthz",
            doc("healthz", "Whether the process is alive", Shape::Envelope(schema::<Alive>())),
            ops::healthz,
        ),
        Endpoint::new(
            Method::GET,
            "/readyz",
            doc("readyz", "Whether requests can be served", Shape::Envelope(schema::<Readiness>()))
                .errors(&[Code::Overloaded]),
            ops::readyz,
        ),
        Endpoint::new(
            Method::GET,
            "/metrics",
            doc("metrics", "Metrics in Prometheus' text format", Shape::Bare("text/plain")),
            ops::metrics,
        ),
        Endpoint::new(
            Method::GET,
            "/docs",
            doc("docs", "The page of this document", Shape::Bare("text/html")),
            pages::docs,
        ),
        Endpoint::new(
            Method::GET,
            "/",
            doc("home", "The page of the service", Shape::Bare("text/html")),
            pages::home,
        ),
    ]
}
