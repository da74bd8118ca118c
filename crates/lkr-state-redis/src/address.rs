//! The URLs of servers. They name several hosts, which the usual parsers of URLs refuse.

use std::fmt;

use percent_encoding::percent_decode_str;

/// Where a server is, with the credentials.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) kind: Kind,
    pub(crate) tls: bool,
    /// Hosts and ports; at least one.
    pub(crate) hosts: Vec<(String, u16)>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    /// The number of the database.
    pub(crate) database: i64,
    /// The credentials of the sentinels.
    pub(crate) sentinel_user: Option<String>,
    pub(crate) sentinel_password: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Single,
    /// The name of the master among those that the sentinels watch.
    Sentinel(String),
    Cluster,
}

impl Address {
    /// Errors do not contain the URL, which may contain a password.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").ok_or("the URL of Redis has no scheme")?;
        let (tls, default_port) = match scheme {
            "redis" => (false, 6379),
            "rediss" => (true, 6379),
            "redis+cluster" => (false, 6379),
            "rediss+cluster" => (true, 6379),
            "redis+sentinel" => (false, 26379),
            "rediss+sentinel" => (true, 26379),
            other => {
                return Err(format!("the scheme of the URL of Redis is {other}, which is none of {SCHEMES}"));
            }
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, hosts) = match authority.rsplit_once('@') {
            Some((credentials, hosts)) => (credentials, hosts),
            None => ("", authority),
        };
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (decoded(user)?, decoded(password)?),
            None => (decoded(credentials)?, None),
        };
        let hosts =
            hosts.split(',').map(|host| parse_host(host, default_port)).collect::<Result<Vec<_>, _>>()?;
        let mut address = Self {
            kind: Kind::Single,
            tls,
            hosts,
            user,
            password,
            database: 0,
            sentinel_user: None,
            sentinel_password: None,
        };
        address.read_path(scheme, path)?;
        address.read_query(query)?;
        Ok(address)
    }

    fn read_path(&mut self, scheme: &str, path: &str) -> Result<(), String> {
        if scheme.ends_with("+sentinel") {
            let name = decoded(path)?
                .ok_or("the URL of Redis does not name the master: redis+sentinel://host/master")?;
            self.kind = Kind::Sentinel(name);
        } else if scheme.ends_with("+cluster") {
            self.kind = Kind::Cluster;
            if !path.is_empty() {
                return Err(
                    "the URL of a Redis cluster names a database, but clusters have one only".to_owned()
                );
            }
        } else {
            self.database = parse_database(if path.is_empty() { "0" } else { path })?;
            if self.hosts.len() > 1 {
                return Err("the URL of Redis names several hosts without +sentinel or +cluster".to_owned());
            }
        }
        Ok(())
    }

    fn read_query(&mut self, query: &str) -> Result<(), String> {
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "sentinel-user" => self.sentinel_user = decoded(value)?,
                "sentinel-password" => self.sentinel_password = decoded(value)?,
                "database" if matches!(self.kind, Kind::Sentinel(_)) => {
                    self.database = parse_database(value)?;
                }
                _ => return Err("the URL of Redis has an unknown parameter".to_owned()),
            }
        }
        Ok(())
    }
}

const SCHEMES: &str = "redis, rediss, redis+sentinel, rediss+sentinel, redis+cluster, rediss+cluster";

fn parse_database(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| "the database of the URL of Redis is not a number".to_owned())
}

fn parse_host(text: &str, default_port: u16) -> Result<(String, u16), String> {
    // The port is after the last colon outside brackets, which are around addresses of IPv6.
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        return Err("the URL of Redis has an empty host".to_owned());
    }
    let port = port.map_or(Ok(default_port), str::parse);
    Ok((host.to_owned(), port.map_err(|_| "a port of the URL of Redis is not a number".to_owned())?))
}

/// The decoded text; `None` if it is empty.
fn decoded(text: &str) -> Result<Option<String>, String> {
    let text = percent_decode_str(text).decode_utf8();
    let text = text.map_err(|_| "a part of the URL of Redis is not UTF-8".to_owned())?;
    Ok(Some(text.into_owned()).filter(|text| !text.is_empty()))
}

/// Without credentials.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = if self.tls { "s" } else { "" };
        let (kind, path) = match &self.kind {
            Kind::Single => ("", String::new()),
            Kind::Sentinel(master) => ("+sentinel", format!("/{master}")),
            Kind::Cluster => ("+cluster", String::new()),
        };
        let hosts: Vec<String> = self.hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        write!(f, "redis{tls}{kind}://{}{path}", hosts.join(","))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_hosts_credentials_and_the_kind() {
        let single = Address::parse("rediss://me:p%40ss%2F@[::1]:7000/3").unwrap();
        assert_eq!((single.kind, single.tls, single.database), (Kind::Single, true, 3));
        assert_eq!(single.hosts, [("::1".to_owned(), 7000)]);
        assert_eq!((single.user.as_deref(), single.password.as_deref()), (Some("me"), Some("p@ss/")));
        let sentinel =
            Address::parse("redis+sentinel://:p@a,b:1/main?sentinel-password=s%26&database=2").unwrap();
        assert_eq!(sentinel.kind, Kind::Sentinel("main".to_owned()));
        assert_eq!(sentinel.hosts, [("a".to_owned(), 26379), ("b".to_owned(), 1)]);
        assert_eq!((sentinel.user, sentinel.password.as_deref()), (None, Some("p")));
        assert_eq!((sentinel.sentinel_password.as_deref(), sentinel.database), (Some("s&"), 2));
        let cluster = Address::parse("redis+cluster://a,b").unwrap();
        assert_eq!((cluster.kind, cluster.hosts.len(), cluster.tls), (Kind::Cluster, 2, false));
    }

    #[test]
    fn invalid_urls_are_refused_without_being_repeated() {
        for url in [
            "hush",
            "http://hush",
            "redis://u:hush@",
            "redis://u:hush@a:x",
            "redis://u:hush@a,b",
            "redis://u:hush@a/x",
            "redis+sentinel://u:hush@a",
            "redis+cluster://u:hush@a/1",
            "redis://u:hush@a?b=hush",
            "redis://u:%ff@a",
        ] {
            let error = Address::parse(url).unwrap_err();
            assert!(!error.contains("hush"), "{error}");
        }
    }
}
