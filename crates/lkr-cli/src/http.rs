//! A small blocking client of the HTTP service.

mod api_error;
mod client;
mod upload;

pub(crate) use api_error::ApiError;
pub(crate) use client::{ApiResponse, Client};
pub(crate) use upload::FileForm;
