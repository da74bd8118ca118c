#![doc = include_str!("../README.md")]

mod app;
mod chat_models;
pub mod config;
mod embedders;
mod error;
mod first_admin;
mod http;
mod metrics;
mod models;
mod openapi;
mod plugins;
mod private_file;
mod remote;
mod rerankers;
mod routes;
mod run;
mod secret_key;
mod state;
mod webhooks;
mod wire;

pub use app::create_app;
pub use chat_models::ChatModels;
pub use embedders::{Connect, Embedders, connect};
pub use error::Code;
pub use first_admin::reset as reset_admin;
pub use http::{Access, Endpoint};
pub use plugins::plugins;
pub use rerankers::Rerankers;
pub use routes::endpoints;
pub use run::{PARSE_WORKER, run};
pub use state::{AppOptions, AppState, Services};
pub use webhooks::{address_check, open_webhooks, outbox};

/// What a start that fails says, in one line.
#[must_use]
pub fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    // An error of a library tells its source's reason itself.
    for reason in error.chain().map(ToString::to_string) {
        if !line.contains(&reason) {
            let colon = if line.is_empty() { "" } else { ": " };
            line = format!("{line}{colon}{reason}");
        }
    }
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
