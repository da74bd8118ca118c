#![doc = include_str!("../README.md")]

mod app;
mod chat_models;
pub mod config;
mod deletions;
mod embedder_reconciler;
mod error;
mod file_reader;
mod first_admin;
mod http;
mod listener;
mod log_limiter;
mod memory;
mod metrics;
mod model_test;
mod open;
mod openapi;

mod plugins;
mod private_file;
mod program;
mod remote_models;
mod rerankers;
mod routes;
mod run;
mod secret_key;
mod state;
mod webhooks;
mod wire;

pub use app::create_app;
pub use chat_models::ChatModels;
pub use embedder_reconciler::{ConnectEmbedder, EmbedderReconciler, connect};
pub use error::ErrorCode;
pub use http::{Access, Endpoint};
pub use plugins::available_plugins;
pub use program::main;
pub use rerankers::Rerankers;
pub use routes::endpoints;
pub use state::{AppOptions, AppState, Services};
pub use webhooks::{address_check, open_webhooks, outbox};
