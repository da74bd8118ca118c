use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::{
    collection::Input,
    http::{ApiResponse, Client, FileForm},
};

/// What is said about all documents.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// Their space; the server's default if it is empty.
    pub(crate) space: String,
    pub(crate) metadata: Map<String, Value>,
    /// Whether the document of the same source is replaced.
    pub(crate) upsert: bool,
    /// Whether duplicates are added too.
    pub(crate) force: bool,
    /// Whether the command waits until the documents are searchable.
    pub(crate) waits: bool,
}

/// A document to send.
#[derive(Debug)]
pub(super) enum Item {
    /// A text.
    Text(Input),
    /// A file, which is read while it is sent.
    File(FileItem),
    /// A file in memory, such as a page.
    Bytes(FileItem, Vec<u8>),
}

/// A file.
#[derive(Debug, Default)]
pub(super) struct FileItem {
    /// Where it is; empty if it is in memory.
    pub(super) path: PathBuf,
    /// The name by which the server knows its format.
    pub(super) file_name: String,
    /// The content type that was declared for bytes in memory, with its charset; may be empty.
    pub(super) media_type: String,
    /// The title; the file's name if it is empty.
    pub(super) title: String,
    pub(super) source: String,
}

impl Item {
    pub(super) fn source(&self) -> &str {
        match self {
            Self::Text(input) => &input.source,
            Self::File(file) | Self::Bytes(file, _) => &file.source,
        }
    }

    /// Gives it another title or source.
    pub(super) fn rename(&mut self, title: Option<&str>, source: Option<&str>) {
        let (old_title, old_source) = match self {
            Self::Text(input) => (&mut input.title, &mut input.source),
            Self::File(file) | Self::Bytes(file, _) => (&mut file.title, &mut file.source),
        };
        if let Some(title) = title {
            title.clone_into(old_title);
        }
        if let Some(source) = source {
            source.clone_into(old_source);
        }
    }

    /// Sends it; the response names the task.
    pub(super) fn send(&self, client: &Client, options: &Options) -> Result<ApiResponse> {
        match self {
            Self::Text(input) => client.post("/documents", &text_body(input, options)),
            Self::File(file) => {
                let fields = file.fields(options);
                client.post_form("/documents/upload", file.form(&fields).of_path(&file.path)?)
            }
            Self::Bytes(file, bytes) => {
                let fields = file.fields(options);
                client.post_form("/documents/upload", file.form(&fields).of_bytes(bytes, &file.media_type))
            }
        }
    }
}

impl FileItem {
    fn form<'a>(&'a self, fields: &'a [(&'static str, String)]) -> FileForm<'a> {
        FileForm { file_name: &self.file_name, fields }
    }

    fn fields(&self, options: &Options) -> Vec<(&'static str, String)> {
        let set = |is_set: bool| if is_set { "true".to_owned() } else { String::new() };
        let metadata =
            if options.metadata.is_empty() { String::new() } else { json!(options.metadata).to_string() };
        vec![
            ("title", self.title.clone()),
            ("source", self.source.clone()),
            ("space", options.space.clone()),
            ("metadata", metadata),
            ("upsert", set(options.upsert)),
            ("force", set(options.force)),
        ]
    }
}

fn text_body(Input { title, source, text }: &Input, options: &Options) -> Value {
    let mut body = Map::from_iter([
        ("title".to_owned(), json!(title)),
        ("source".to_owned(), json!(source)),
        ("text".to_owned(), json!(text)),
    ]);
    if !options.space.is_empty() {
        body.insert("space".to_owned(), json!(options.space));
    }
    if !options.metadata.is_empty() {
        body.insert("metadata".to_owned(), options.metadata.clone().into());
    }
    for (name, is_set) in [("upsert", options.upsert), ("force", options.force)] {
        if is_set {
            body.insert(name.to_owned(), json!(true));
        }
    }
    body.into()
}
