#![doc = include_str!("../README.md")]

mod address;
mod client;
mod connect;
mod error;
mod policy;
mod request;
mod resolve;
mod response;
mod retry_after;
mod roots;

pub use client::Outgoing;
pub use error::{Error, ErrorKind, Result};
pub use hyper::{HeaderMap, Method, StatusCode, header};
pub use policy::Policy;
pub use request::{Limits, Request};
pub use resolve::{Resolve, SystemResolver};
pub use response::Response;
pub use retry_after::retry_after;
pub use roots::Roots;
