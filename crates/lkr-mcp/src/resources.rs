//! Documents as resources.

use lkr::{Document, ListFilter};
use rmcp::model::{
    CacheScope, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};

use crate::{Error, McpServer, Result, output::line, reference::Reference, text_page};

/// The resources of a page. Their properties are bounded, and so is the page.
const PAGE: usize = 50;

/// The media type of extracted texts.
const TEXT: &str = "text/plain";

/// The documents of a page, newest first.
pub(crate) async fn list(server: &McpServer, cursor: Option<&str>) -> Result<ListResourcesResult> {
    let after = cursor.map(|cursor| cursor.parse().map_err(|_| invalid_cursor())).transpose()?;
    let scope = server.access().scope(None).await?;
    let page = server.kb().list(&scope, &ListFilter::default(), after, PAGE).await?;
    let resources = page.items.iter().map(resource).collect();
    let mut result =
        ListResourcesResult::with_all_items(resources).with_ttl_ms(0).with_cache_scope(CacheScope::Private);
    result.next_cursor = page.next.map(|next| next.to_string());
    Ok(result)
}

/// The forms of a document's address.
pub(crate) fn templates() -> ListResourceTemplatesResult {
    let document = ResourceTemplate::new("lkr://documents/{id}", "document")
        .with_description("The text of a document, from its beginning")
        .with_mime_type(TEXT);
    let part = ResourceTemplate::new("lkr://documents/{id}/{start}", "part of a document")
        .with_description("The text of a document, from a code point on")
        .with_mime_type(TEXT);
    ListResourceTemplatesResult::with_all_items(vec![document, part])
        .with_ttl_ms(3_600_000)
        .with_cache_scope(CacheScope::Public)
}

/// A part of a document's text; `None` if there is no such document. If the text goes on, a second item tells where.
pub(crate) async fn read(server: &McpServer, uri: &str) -> Result<Option<ReadResourceResult>> {
    let Ok(from) = uri.parse::<Reference>() else { return Ok(None) };
    let scope = server.access().scope(None).await?;
    let Some(page) = text_page::read(server.kb(), &scope, from).await? else { return Ok(None) };
    let mut contents = vec![ResourceContents::text(page.text, uri).with_mime_type(TEXT)];
    if let Some(next) = page.next {
        let note = format!("The document goes on at {}", next.uri());
        contents.push(ResourceContents::text(note, next.uri()).with_mime_type(TEXT));
    }
    Ok(Some(ReadResourceResult::new(contents).with_ttl_ms(0).with_cache_scope(CacheScope::Private)))
}

fn resource(document: &Document) -> Resource {
    let title = line(&document.title);
    Resource::new(Reference::whole(document.doc_id).uri(), title.clone())
        .with_title(title)
        .with_description(line(&document.summary))
        .with_mime_type(TEXT)
}

fn invalid_cursor() -> Error {
    Error::invalid("list resources", "cursor is not the nextCursor of an earlier page")
}
