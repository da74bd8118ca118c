//! Connections to checked addresses only.

use std::{net::IpAddr, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, crypto::ring, pki_types::ServerName},
};
use url::Host;

use crate::{
    Error, ErrorKind, Resolve, Result, Roots,
    policy::{Target, check_ip, literal},
};

/// The most addresses of a host that are tried.
const ADDRESSES: usize = 4;

/// A connection, encrypted or not.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub(crate) fn tls(roots: &Roots) -> Result<TlsConnector> {
    let invalid = |error| Error::new(ErrorKind::Invalid, "set up TLS", error);
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(invalid)?
        .with_root_certificates(roots.load()?)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

pub(crate) async fn connect(
    target: &Target,
    resolver: &dyn Resolve,
    tls: &TlsConnector,
    timeout: Duration,
) -> Result<Box<dyn Stream>> {
    let addresses = addresses(&target.host, resolver).await?;
    let tcp = reach(&addresses, target.port, timeout).await?;
    if target.url.scheme() == "http" {
        return Ok(Box::new(tcp));
    }
    let encrypted = tls.connect(server_name(&target.host)?, tcp).await;
    Ok(Box::new(encrypted.map_err(Error::unreachable)?))
}

/// The allowed addresses of a host. They are resolved and checked once and connected to directly, because a second
/// resolution might return others.
async fn addresses(host: &Host, resolver: &dyn Resolve) -> Result<Vec<IpAddr>> {
    if let Some(address) = literal(host) {
        check_ip(address)?;
        return Ok(vec![address]);
    }
    let name = host.to_string();
    let all = resolver.resolve(&name).await.map_err(Error::unreachable)?;
    let allowed: Vec<_> = all.iter().copied().filter(|&address| check_ip(address).is_ok()).collect();
    match (allowed.is_empty(), all.first()) {
        (false, _) => Ok(allowed),
        (true, Some(&address)) => check_ip(address).map(|()| Vec::new()),
        (true, None) => Err(Error::unreachable("the host has no address")),
    }
}

async fn reach(addresses: &[IpAddr], port: u16, max_time: Duration) -> Result<TcpStream> {
    let tried = addresses.iter().take(ADDRESSES);
    let each = max_time / u32::try_from(tried.len().max(1)).unwrap_or(1);
    let mut failure = Error::timed_out("connect");
    for &address in tried {
        match timeout(each, TcpStream::connect((address, port))).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true).map_err(Error::unreachable)?;
                return Ok(stream);
            }
            Ok(Err(error)) => failure = Error::unreachable(error),
            Err(_) => failure = Error::timed_out("connect"),
        }
    }
    Err(failure)
}

fn server_name(host: &Host) -> Result<ServerName<'static>> {
    match literal(host) {
        Some(address) => Ok(ServerName::from(address)),
        None => ServerName::try_from(host.to_string())
            .map_err(|_| Error::refused("has a host that cannot be in a certificate")),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use async_trait::async_trait;
    use proptest::prelude::*;

    use super::*;
    use crate::{ErrorKind, address::forbidden};

    #[derive(Debug)]
    struct Fixed(Vec<IpAddr>);

    #[async_trait]
    impl Resolve for Fixed {
        async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            Ok(self.0.clone())
        }
    }

    fn address() -> impl Strategy<Value = IpAddr> {
        prop_oneof![
            any::<[u8; 4]>().prop_map(IpAddr::from),
            any::<[u8; 2]>().prop_map(|[c, d]| IpAddr::from([169, 254, c, d])),
            any::<[u8; 2]>().prop_map(|[c, d]| IpAddr::from([10, 0, c, d])),
            any::<[u16; 8]>().prop_map(IpAddr::from),
            any::<[u16; 2]>().prop_map(|[g, h]| IpAddr::from([0, 0, 0, 0, 0, 0xffff, g, h])),
        ]
    }

    proptest! {
        /// Exactly the allowed addresses of a name server's answer remain, in their order.
        #[test]
        fn lesson_26_only_allowed_addresses_are_connected_to(said in prop::collection::vec(address(), 0..6)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let host = Host::Domain("a.example".to_owned());
            let allowed: Vec<_> = said.iter().copied().filter(|&ip| forbidden(ip).is_none()).collect();
            match runtime.block_on(addresses(&host, &Fixed(said.clone()))) {
                Ok(left) => prop_assert_eq!(left, allowed),
                Err(error) => {
                    prop_assert!(allowed.is_empty());
                    prop_assert_eq!(error.kind() == ErrorKind::Refused, !said.is_empty());
                }
            }
        }
    }
}
