use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use url::{Host, Url};

use crate::{Error, Result, address::forbidden};

/// The most characters of a host in a message.
const SHOWN_CHARS: usize = 80;

/// The names of metadata services.
const METADATA_NAMES: [&str; 7] = [
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.azure.internal",
    "metadata.goog",
    "metadata.google.internal",
    "metadata.tencentyun.com",
];

/// The policy of which hosts may be called. Cheap to clone.
///
/// Link-local and metadata addresses are never called, by any name and in any notation. If hosts are listed, only they
/// may be called.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// `None` allows all hosts.
    hosts: Option<Arc<BTreeSet<Host>>>,
}

/// An address that passed the policy.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) url: Url,
    /// Normalised: a name in lower case without a trailing dot.
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl Policy {
    /// Allows all hosts.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Allows only these hosts: names, compared as a whole and without case, or IP addresses.
    ///
    /// # Errors
    /// `Refused` if an entry is neither.
    pub fn only<S: AsRef<str>>(hosts: impl IntoIterator<Item = S>) -> Result<Self> {
        let hosts: BTreeSet<_> =
            hosts.into_iter().map(|host| parse_host(host.as_ref())).collect::<Result<_>>()?;
        Ok(Self { hosts: Some(Arc::new(hosts)) })
    }

    /// Refuses an address that is forbidden by its form. Names are resolved and checked when they are called.
    ///
    /// # Errors
    /// `Refused`; the reason continues a sentence that begins with the name of the field.
    pub fn check(&self, address: &str) -> Result<()> {
        self.target(address).map(drop)
    }

    pub(crate) fn target(&self, address: &str) -> Result<Target> {
        let url =
            Url::parse(address).map_err(|error| Error::refused(format!("is not an address: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Error::refused(format!(
                "begins with {}:; allowed are http: and https:",
                url.scheme()
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::refused("has a user or a password before its host"));
        }
        let host =
            url.host().and_then(|host| normalized(&host)).ok_or_else(|| Error::refused("has no host"))?;
        let port = url.port_or_known_default().ok_or_else(|| Error::refused("has no port"))?;
        self.check_host(&host)?;
        // A parser of addresses leaves them out, so another one than is shown would be called.
        if address.contains(|c: char| c.is_ascii_control()) {
            return Err(Error::refused("contains a control character"));
        }
        Ok(Target { url, host, port })
    }

    fn check_host(&self, host: &Host) -> Result<()> {
        if let Some(address) = literal(host) {
            check_ip(address)?;
        }
        if matches!(host, Host::Domain(name) if METADATA_NAMES.contains(&name.as_str())) {
            return Err(Error::refused(format!(
                "has the host {host}, a cloud's metadata address: that is never called"
            )));
        }
        match &self.hosts {
            Some(hosts) if !hosts.contains(host) => Err(Error::refused(format!(
                "has the host {}, which is not among those that may be called",
                shown(host)
            ))),
            _ => Ok(()),
        }
    }
}

/// Refuses an IP address that is never called.
pub(crate) fn check_ip(address: IpAddr) -> Result<()> {
    match forbidden(address) {
        Some(what) => Err(Error::refused(format!("has the host {address}, {what}: that is never called"))),
        None => Ok(()),
    }
}

/// The IP address of a host that is not a name.
pub(crate) fn literal(host: &Host) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(v4) => Some((*v4).into()),
        Host::Ipv6(v6) => Some((*v6).into()),
    }
}

/// Parses an entry of the list.
fn parse_host(text: &str) -> Result<Host> {
    let wrong = || {
        Error::refused(format!(
            "{text:?} is not a host: expected a name or an IP address, such as models.example or 10.0.0.5"
        ))
    };
    let bare = text.trim();
    let host = match bare.parse::<std::net::Ipv6Addr>() {
        Ok(v6) => Host::Ipv6(v6),
        Err(_) => Host::parse(bare).map_err(|_| wrong())?,
    };
    normalized(&host)
        .filter(|host| !matches!(host, Host::Domain(name) if name.contains('*')))
        .ok_or_else(wrong)
}

/// Normalises a host; `None` if nothing remains.
fn normalized<S: AsRef<str>>(host: &Host<S>) -> Option<Host> {
    match host {
        Host::Domain(name) => {
            let name = name.as_ref().trim_end_matches('.').to_ascii_lowercase();
            (!name.is_empty()).then_some(Host::Domain(name))
        }
        Host::Ipv4(v4) => Some(Host::Ipv4(*v4)),
        Host::Ipv6(v6) => Some(Host::Ipv6(*v6)),
    }
}

/// The beginning of a host, for messages.
fn shown(host: &Host) -> String {
    let host = host.to_string();
    match host.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", host.get(..end).unwrap_or_default()),
        None => host,
    }
}

#[cfg(test)]
mod tests;
