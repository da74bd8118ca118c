use std::{fmt, time::Duration};

use crate::address::Address;

/// How to reach a Redis server, and what to expect of it.
#[derive(Clone)]
pub struct RedisConfig {
    /// Where the server is, as the crate's page says: `redis://user:password@host:6379/0`, `rediss://…` with TLS,
    /// `redis+sentinel://host,host/master-name`, `redis+cluster://host,host`.
    pub url: String,
    /// The beginning of all keys, in braces: `lkr` makes keys like `{lkr}:records`. Stores with different prefixes share a
    /// server without seeing each other.
    pub prefix: String,
    /// The certificates of the authorities to trust instead of the public ones, in PEM. Used with TLS only.
    pub tls_authorities: Option<Vec<u8>>,
    /// The largest number of connections, without the one on which a queue waits for tasks.
    pub pool_size: usize,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long a read may take in all, and each attempt of a write. Large writes get longer attempts.
    pub command_timeout: Duration,
    /// How long a write is repeated until the server acknowledges it.
    pub write_timeout: Duration,
    /// How many replicas must have received a write before it counts as acknowledged (the command WAIT). With fewer than
    /// all replicas, a failover while the old master still works can lose acknowledged writes.
    pub wait_replicas: u32,
    /// Opens a server that may lose acknowledged writes, with warnings instead of an error.
    pub allow_weak_durability: bool,
}

impl RedisConfig {
    /// The default prefix.
    pub const DEFAULT_PREFIX: &'static str = "lkr";

    /// The default configuration for the server at `url`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: Self::DEFAULT_PREFIX.to_owned(),
            tls_authorities: None,
            pool_size: 16,
            connect_timeout: Duration::from_secs(1),
            command_timeout: Duration::from_secs(1),
            write_timeout: Duration::from_secs(5),
            wait_replicas: 0,
            allow_weak_durability: false,
        }
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = Address::parse(&self.url).map_or_else(|_| "invalid".to_owned(), |url| url.to_string());
        f.debug_struct("RedisConfig")
            .field("url", &address)
            .field("prefix", &self.prefix)
            .field("pool_size", &self.pool_size)
            .field("wait_replicas", &self.wait_replicas)
            .field("allow_weak_durability", &self.allow_weak_durability)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_shows_the_host_and_no_secret() {
        for url in ["redis://me:hush@db:7000/2", "redis+sentinel://me:hush@a,b/main?sentinel-password=hush"] {
            let text = format!("{:?}", RedisConfig::new(url));
            assert!(!text.contains("hush") && !text.contains("me:"), "{text}");
            assert!(text.contains("db:7000") || text.contains("a:26379,b:26379/main"), "{text}");
        }
        let text = format!("{:?}", RedisConfig::new("redis://me:hush@a:port"));
        assert!(!text.contains("hush"), "{text}");
    }
}
