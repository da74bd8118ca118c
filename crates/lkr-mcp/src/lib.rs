#![doc = include_str!("../README.md")]

mod access;
mod error;
mod http_transport;
pub mod json_rpc;
mod output;
mod reference;
mod resources;
mod server;
mod stdio;
mod text_page;
mod tools;
mod unread_request;

pub use access::{Access, FullAccess};
pub use error::{Error, ErrorKind, Result};
pub use http_transport::answer;
pub use server::McpServer;
pub use stdio::serve_stdio;
