//! The links of the OpenAPI document: which operation continues with what a response contains.

use utoipa::openapi::{Response, link::LinkBuilder};

use super::operation::OperationDoc;

/// A link: the operation and status that it begins at, its name, the operation that it leads to, that operation's parameter,
/// and the expression of its value.
type LinkRow = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

const TASK_ID: &str = "$response.body#/data/task_id";
const DOC_ID: &str = "$response.body#/data/doc_id";
const DETAIL_DOC_ID: &str = "$response.body#/data/l1/doc_id";
const ID: &str = "$response.body#/data/id";
const USERNAME: &str = "$response.body#/data/username";
const SPACE: &str = "$response.body#/data/space";
const GROUP: &str = "$response.body#/data/group";

const LINKS: &[LinkRow] = &[
    ("add_document", "202", "task", "get_task", "task_id", TASK_ID),
    ("add_document", "202", "events", "watch_task", "task_id", TASK_ID),
    ("add_document", "202", "cancel", "cancel_task", "task_id", TASK_ID),
    ("add_documents", "202", "first_task", "get_task", "task_id", "$response.body#/data/tasks/0/task_id"),
    ("upload_document", "202", "task", "get_task", "task_id", TASK_ID),
    ("replace_document", "202", "task", "get_task", "task_id", TASK_ID),
    ("replace_file", "202", "task", "get_task", "task_id", TASK_ID),
    ("delete_documents", "202", "task", "get_task", "task_id", TASK_ID),
    ("delete_space", "202", "task", "get_task", "task_id", TASK_ID),
    ("reclassify", "202", "task", "get_task", "task_id", TASK_ID),
    ("evaluate", "202", "task", "get_task", "task_id", TASK_ID),
    ("list_tasks", "200", "first_task", "get_task", "task_id", "$response.body#/data/items/0/task_id"),
    ("get_task", "200", "document", "get_document", "doc_id", DOC_ID),
    ("get_task", "200", "retry", "retry_task", "task_id", TASK_ID),
    ("get_task", "200", "delete", "delete_task", "task_id", TASK_ID),
    (
        "list_documents",
        "200",
        "first_document",
        "get_document",
        "doc_id",
        "$response.body#/data/items/0/doc_id",
    ),
    ("list_documents", "200", "next_page", "list_documents", "offset", "$response.body#/data/next_offset"),
    ("get_document", "200", "text", "get_text", "doc_id", DETAIL_DOC_ID),
    ("get_document", "200", "chunks", "list_chunks", "doc_id", DETAIL_DOC_ID),
    ("get_document", "200", "file", "get_file", "doc_id", DETAIL_DOC_ID),
    ("get_document", "200", "change", "change_document", "doc_id", DETAIL_DOC_ID),
    ("get_document", "200", "replace", "replace_document", "doc_id", DETAIL_DOC_ID),
    ("get_document", "200", "delete", "delete_document", "doc_id", DETAIL_DOC_ID),
    ("search", "200", "best_document", "get_document", "doc_id", "$response.body#/data/results/0/doc_id"),
    ("create_key", "201", "delete", "delete_key", "id", ID),
    ("create_webhook", "201", "delete", "delete_webhook", "id", ID),
    ("create_user", "201", "change", "change_user", "username", USERNAME),
    ("create_user", "201", "reset_password", "reset_password", "username", USERNAME),
    ("create_user", "201", "delete", "delete_user", "username", USERNAME),
    ("create_group", "201", "members", "list_group_members", "group", GROUP),
    ("create_group", "201", "add_member", "put_group_member", "group", GROUP),
    ("create_group", "201", "remove_member", "delete_group_member", "group", GROUP),
    ("create_group", "201", "delete", "delete_group", "group", GROUP),
    ("create_space", "201", "space", "get_space", "space", SPACE),
    ("create_space", "201", "change", "change_space", "space", SPACE),
    ("create_space", "201", "members", "list_members", "space", SPACE),
    ("create_space", "201", "add_member", "put_member", "space", SPACE),
    ("create_space", "201", "remove_member", "delete_member", "space", SPACE),
    ("create_space", "201", "delete", "delete_space", "space", SPACE),
];

/// Adds the links of a response.
pub(super) fn link(doc: &OperationDoc, status: &str, response: &mut Response) {
    for (_, _, name, to, parameter, value) in
        LINKS.iter().filter(|(from, at, ..)| *from == doc.id && *at == status)
    {
        let link = LinkBuilder::new()
            .operation_id(*to)
            .parameter(*parameter, *value)
            .description(format!("{to} with the {parameter} of this response."));
        response.links.insert((*name).to_owned(), link.build().into());
    }
}
