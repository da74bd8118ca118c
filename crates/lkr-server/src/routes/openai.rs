//! The vector stores of the OpenAI API, for reading: a vector store is a space, and a file is a document.

mod doc;
mod files;
mod page;
mod search;
mod vector_stores;

use crate::http::Endpoint;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let groups = [vector_stores::endpoints(), search::endpoints(), files::endpoints()];
    groups.into_iter().flatten().collect()
}
