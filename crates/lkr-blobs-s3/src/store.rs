use std::{sync::Arc, time::Duration};

use object_store::{
    BackoffConfig, ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, S3ConditionalPut},
    prefix::PrefixStore,
};
use url::Url;

use crate::{Error, Result, S3Config, client::Connector, tls};

/// The most attempts of a request after the first: so many that the budget of time ends them.
const RETRIES: usize = 100_000;

/// Opens a store; no request is sent. Reads `ca_file`, which may block.
///
/// The requests run on the async runtime of the caller. Each store has a pool of connections of its own.
///
/// # Errors
/// `Invalid` if the configuration is wrong.
pub fn open(config: &S3Config) -> Result<Arc<dyn ObjectStore>> {
    for (name, value) in [
        ("region", config.region.as_str()),
        ("access key id", &config.access_key_id),
        ("secret access key", config.secret_access_key.expose()),
    ] {
        // They are parts of a header; the value is not shown, because it may be the secret.
        if value.is_empty() || !value.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(Error::invalid(format!(
                "the {name} is empty or has characters that are not allowed"
            )));
        }
    }
    if config.request_timeout.is_zero() {
        return Err(Error::invalid("the request timeout is zero"));
    }
    let bucket = config.location.bucket();
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_region(&config.region)
        .with_access_key_id(&config.access_key_id)
        .with_secret_access_key(config.secret_access_key.expose())
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // lkr deletes single objects, and not every store implements the deletion of several.
        .with_disable_bulk_delete(true)
        // A certificate of Amazon's is valid for one label before its domain.
        .with_virtual_hosted_style_request(config.endpoint.is_none() && !bucket.contains('.'))
        .with_retry(retry(config.retry_budget))
        .with_http_connector(Connector {
            tls: tls::config(config.ca_file.as_deref())?,
            limit: config.request_timeout,
        });
    if let Some(endpoint) = &config.endpoint {
        builder = builder.with_endpoint(checked(endpoint)?);
    }
    let store = builder.build().map_err(Error::invalid)?;
    Ok(match config.location.prefix() {
        none if none.as_ref().is_empty() => Arc::new(store),
        prefix => Arc::new(PrefixStore::new(store, prefix.clone())),
    })
}

fn retry(budget: Duration) -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(1),
        base: 2.0,
    };
    RetryConfig { backoff, max_retries: RETRIES, retry_timeout: budget }
}

fn checked(endpoint: &Url) -> Result<&str> {
    let plain = endpoint.username().is_empty() && endpoint.password().is_none();
    if !plain {
        return Err(Error::invalid("the endpoint contains a user or a password"));
    }
    let bare = endpoint.query().is_none() && endpoint.fragment().is_none();
    if matches!(endpoint.scheme(), "http" | "https") && endpoint.has_host() && bare {
        return Ok(endpoint.as_str());
    }
    Err(Error::invalid(format!("{endpoint}: an endpoint is http: or https:, a host, and a path at most")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "wJalrXUtnFEMI-the-secret";

    fn config() -> S3Config {
        S3Config::new("s3://lkr/a".parse().unwrap(), "us-east-1", "AKIA", SECRET)
    }

    #[test]
    fn secret_appears_in_no_debug_output_and_no_error() {
        let config = config();
        assert!(!format!("{config:?}").contains(SECRET));
        let store = open(&config).unwrap();
        assert!(!format!("{store:?} {store}").contains(SECRET));
        let broken = S3Config { secret_access_key: format!("{SECRET}\n").into(), ..config };
        let error = open(&broken).unwrap_err();
        assert!(!format!("{error:?} {error}").contains(SECRET), "{error}");
    }

    #[test]
    fn wrong_configuration_is_refused() {
        let with = |change: fn(&mut S3Config)| {
            let mut config = config();
            change(&mut config);
            open(&config)
        };
        assert!(with(|_| ()).is_ok());
        assert!(with(|config| config.endpoint = Url::parse("http://127.0.0.1:9000/s3").ok()).is_ok());
        for change in [
            (|config| config.region = String::new()) as fn(&mut S3Config),
            |config| config.request_timeout = Duration::ZERO,
            |config| config.access_key_id = "a b".to_owned(),
            |config| config.endpoint = Url::parse("ftp://store.example").ok(),
            |config| config.endpoint = Url::parse("http://user:word@store.example").ok(),
            |config| config.endpoint = Url::parse("http://store.example/?a=b").ok(),
            |config| config.ca_file = Some("/nowhere/ca.pem".into()),
        ] {
            let error = with(change).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Invalid);
            assert!(!error.to_string().contains("word@"), "{error}");
        }
    }

    /// The addresses that requests go to are a matter of TLS: a wildcard certificate covers one label.
    #[test]
    fn bucket_with_dots_is_addressed_by_path() {
        for (location, address) in [
            ("s3://lkr", "https://lkr.s3.us-east-1.amazonaws.com"),
            ("s3://lkr.example", "https://s3.us-east-1.amazonaws.com/lkr.example"),
        ] {
            let store = open(&S3Config { location: location.parse().unwrap(), ..config() }).unwrap();
            assert!(format!("{store:?}").contains(&format!("{address:?}")), "{store:?}");
        }
    }
}
