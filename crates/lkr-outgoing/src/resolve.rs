use std::{fmt::Debug, io, net::IpAddr};

use async_trait::async_trait;

/// Resolves host names.
#[async_trait]
pub trait Resolve: Debug + Send + Sync + 'static {
    /// The addresses of the host with this name.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The operating system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}
