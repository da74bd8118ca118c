use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use url::{Host, Url};

use crate::{Error, Result, address::forbidden};

/// How much of a host a message repeats.
const SHOWN_CHARS: usize = 80;

/// The names that clouds give to their metadata addresses.
const METADATA_NAMES: [&str; 7] = [
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.azure.internal",
    "metadata.goog",
    "metadata.google.internal",
    "metadata.tencentyun.com",
];

/// Who may be called. Cheap to clone.
///
/// Link-local and metadata addresses are never called, by whichever name and in whichever form; hosts may be listed,
/// and then no others are called.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// `None` for all.
    hosts: Option<Arc<BTreeSet<Host>>>,
}

/// An address that passed, as it is called.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) url: Url,
    /// In its plain form: a name in lower case and without a dot at its end.
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl Policy {
    /// Any host may be called.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// These hosts may be called and no others: names, compared whole and without case, or addresses.
    ///
    /// # Errors
    /// `Refused` where one of them is neither.
    pub fn only<S: AsRef<str>>(hosts: impl IntoIterator<Item = S>) -> Result<Self> {
        let hosts: BTreeSet<_> =
            hosts.into_iter().map(|host| host_named(host.as_ref())).collect::<Result<_>>()?;
        Ok(Self { hosts: Some(Arc::new(hosts)) })
    }

    /// Refuses an address that its form alone tells may not be called. Where its host is a name, what that stands for
    /// is looked at when it is called.
    ///
    /// # Errors
    /// `Refused`; the reason reads on after the name of what holds the address.
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
        let host = url.host().and_then(|host| plain(&host)).ok_or_else(|| Error::refused("has no host"))?;
        let port = url.port_or_known_default().ok_or_else(|| Error::refused("has no port"))?;
        self.check_host(&host)?;
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

/// The address that a host is, where it is no name.
pub(crate) fn literal(host: &Host) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(v4) => Some((*v4).into()),
        Host::Ipv6(v6) => Some((*v6).into()),
    }
}

/// A host of a list.
fn host_named(text: &str) -> Result<Host> {
    let wrong = || {
        Error::refused(format!("{text:?} is no name of a host: expected such as models.example or 10.0.0.5"))
    };
    let bare = text.trim();
    let host = match bare.parse::<std::net::Ipv6Addr>() {
        Ok(v6) => Host::Ipv6(v6),
        Err(_) => Host::parse(bare).map_err(|_| wrong())?,
    };
    plain(&host).filter(|host| !matches!(host, Host::Domain(name) if name.contains('*'))).ok_or_else(wrong)
}

/// A host in its plain form; `None` where nothing is left of it.
fn plain<S: AsRef<str>>(host: &Host<S>) -> Option<Host> {
    match host {
        Host::Domain(name) => {
            let name = name.as_ref().trim_end_matches('.').to_ascii_lowercase();
            (!name.is_empty()).then_some(Host::Domain(name))
        }
        Host::Ipv4(v4) => Some(Host::Ipv4(*v4)),
        Host::Ipv6(v6) => Some(Host::Ipv6(*v6)),
    }
}

/// The beginning of a host.
fn shown(host: &Host) -> String {
    let host = host.to_string();
    match host.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", host.get(..end).unwrap_or_default()),
        None => host,
    }
}

#[cfg(test)]
mod tests;
