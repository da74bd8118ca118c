//! Parsers of configuration values. An error is the reason why the value is invalid.

use std::{
    net::{IpAddr, SocketAddrV6},
    num::{NonZero, NonZeroU32},
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use actix_web::http::Uri;
use ipnet::IpNet;
use lkr::ports::Precision;
use lkr_blobs_s3::S3Location;
use lkr_outgoing::Policy;

use super::effective::{
    LogFormat, ProcessRole, QdrantQuantization, ReadConsistency, StateBackend, VectorsBackend,
};

type Parsed<T> = Result<T, String>;

const HOUR_MS: u64 = 3_600_000;

pub(super) fn listen(text: &str) -> Parsed<String> {
    // An address of version 6 has colons, so it stands in brackets.
    let is_valid = match text.rsplit_once(':') {
        Some(_) if text.starts_with('[') => text.parse::<SocketAddrV6>().is_ok(),
        Some((host, port)) => {
            !host.is_empty()
                && !host.contains(|c: char| c == ':' || c == ']' || c.is_whitespace())
                && port.parse::<u16>().is_ok()
        }
        None => false,
    };
    match is_valid {
        true => Ok(text.to_owned()),
        false => Err("expected host:port, such as 127.0.0.1:8080 or [::1]:8080".to_owned()),
    }
}

pub(super) fn path(text: &str) -> Parsed<PathBuf> {
    if text.is_empty() { Err("expected a path".to_owned()) } else { Ok(PathBuf::from(text)) }
}

pub(super) fn optional_path(text: &str) -> Parsed<Option<PathBuf>> {
    Ok(optional(text)?.map(PathBuf::from))
}

/// An empty text means that the value is not set.
pub(super) fn optional(text: &str) -> Parsed<Option<String>> {
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

pub(super) fn optional_url(text: &str) -> Parsed<Option<String>> {
    match text.split_once("://") {
        _ if text.is_empty() => Ok(None),
        Some((scheme, rest)) if !scheme.is_empty() && !rest.is_empty() => Ok(Some(text.to_owned())),
        _ => Err("expected a URL such as http://host:port".to_owned()),
    }
}

/// The address of a collector. It has no query, because a path is appended to it.
pub(super) fn collector(text: &str) -> Parsed<Option<String>> {
    if text.is_empty() {
        return Ok(None);
    }
    match Policy::any().check(text) {
        Ok(()) if !text.contains(['?', '#']) => Ok(Some(text.trim_end_matches('/').to_owned())),
        Ok(()) => Err("expected an address without a query, such as http://127.0.0.1:4318".to_owned()),
        Err(error) => {
            Err(format!("expected an address such as http://127.0.0.1:4318: it {}", error.reason()))
        }
    }
}

pub(super) fn blobs(text: &str) -> Parsed<Option<String>> {
    match text.split_once("://") {
        Some(("s3", _)) => match text.parse::<S3Location>() {
            Ok(location) => Ok(Some(location.to_string())),
            Err(error) => Err(format!("expected s3://bucket/prefix: {error}")),
        },
        Some(_) => Err("expected a folder or s3://bucket/prefix".to_owned()),
        None => optional(text),
    }
}

pub(super) fn password(text: &str) -> Parsed<Option<String>> {
    if text.is_empty() {
        return Ok(None);
    }
    lkr_auth::check_password(text).map_err(|_| "expected 8 to 128 characters".to_owned())?;
    Ok(Some(text.to_owned()))
}

pub(super) fn secret_key(text: &str) -> Parsed<Option<String>> {
    let well_formed = text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    match text {
        "" => Ok(None),
        _ if well_formed => Ok(Some(text.to_owned())),
        _ => Err("expected 64 hexadecimal characters".to_owned()),
    }
}

pub(super) fn boolean(text: &str) -> Parsed<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

/// At most 1 TiB, so that the number of bytes does not overflow.
pub(super) fn megabytes(text: &str) -> Parsed<u64> {
    whole_number(1..=1024 * 1024, text)
}

/// From a day, as long as idempotency keys are known, to ten years of 365 days.
pub(super) fn days(text: &str) -> Parsed<u64> {
    whole_number(1..=10 * 365, text)
}

/// At most one hour.
pub(super) fn milliseconds(text: &str) -> Parsed<u64> {
    whole_number(0..=HOUR_MS, text)
}

/// A time within which something must happen: at least a millisecond, and at most one hour.
pub(super) fn time_limit(text: &str) -> Parsed<u64> {
    whole_number(1..=HOUR_MS, text)
}

fn whole_number(range: RangeInclusive<u64>, text: &str) -> Parsed<u64> {
    match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!("expected a whole number from {} to {}", range.start(), range.end())),
    }
}

pub(super) fn log_format(text: &str) -> Parsed<LogFormat> {
    one_of(text, &[LogFormat::Text, LogFormat::Json])
}

pub(super) fn precision(text: &str) -> Parsed<Precision> {
    text.parse()
}

/// The dimensions of vectors; an empty text means as many as the model has.
pub(super) fn dims(text: &str) -> Parsed<Option<NonZero<usize>>> {
    let dims = (!text.is_empty()).then(|| text.parse::<NonZero<usize>>()).transpose();
    dims.map_err(|_| "expected a whole number, at least 1".to_owned())
}

pub(super) fn vectors(text: &str) -> Parsed<VectorsBackend> {
    one_of(text, &[VectorsBackend::Embedded, VectorsBackend::Qdrant])
}

pub(super) fn state(text: &str) -> Parsed<StateBackend> {
    one_of(text, &[StateBackend::Embedded, StateBackend::Redis])
}

pub(super) fn read_consistency(text: &str) -> Parsed<Option<ReadConsistency>> {
    let choices = [ReadConsistency::Majority, ReadConsistency::Quorum, ReadConsistency::All];
    if text.is_empty() { Ok(None) } else { one_of(text, &choices).map(Some) }
}

pub(super) fn quantization(text: &str) -> Parsed<QdrantQuantization> {
    one_of(text, &[QdrantQuantization::None, QdrantQuantization::Int8, QdrantQuantization::Binary])
}

/// A number of shards or copies.
pub(super) fn copies(text: &str) -> Parsed<NonZeroU32> {
    match text.parse::<NonZeroU32>() {
        Ok(number) if number.get() <= 1_000 => Ok(number),
        _ => Err("expected a whole number from 1 to 1000".to_owned()),
    }
}

pub(super) fn replicas(text: &str) -> Parsed<u32> {
    match text.parse() {
        Ok(number) if number <= 100 => Ok(number),
        _ => Err("expected a whole number from 0 to 100".to_owned()),
    }
}

/// The beginning of names in a store that others use too.
pub(super) fn prefix(text: &str) -> Parsed<String> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-' || b == b'.';
    match (1..=64).contains(&text.len()) && text.bytes().all(allowed) {
        true => Ok(text.to_owned()),
        false => Err("expected 1 to 64 letters, digits, '_', '-' and '.'".to_owned()),
    }
}

pub(super) fn text(text: &str) -> Parsed<String> {
    optional(text)?.ok_or_else(|| "expected a text".to_owned())
}

pub(super) fn role(text: &str) -> Parsed<ProcessRole> {
    one_of(text, &[ProcessRole::All, ProcessRole::Api, ProcessRole::Worker])
}

fn one_of<T: Copy + std::fmt::Debug>(text: &str, choices: &[T]) -> Parsed<T> {
    choices.iter().copied().find(|&choice| name_of(choice) == text).ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|&choice| name_of(choice)).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// The name of an enum variant in lower case.
pub(super) fn name_of(choice: impl std::fmt::Debug) -> String {
    format!("{choice:?}").to_ascii_lowercase()
}

#[expect(clippy::unnecessary_wraps, reason = "the table of keys expects an option")]
pub(super) fn shown(path: &Path) -> Option<String> {
    Some(path.display().to_string())
}

fn list(text: &str, check: impl Fn(&str) -> Result<(), String>) -> Parsed<Vec<String>> {
    let items: Vec<_> = text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
    items.iter().try_for_each(|item| check(item))?;
    Ok(items.into_iter().map(str::to_owned).collect())
}

/// An empty text means that the list is not set. A list of commas and blanks is an error: its author meant to restrict
/// the hosts.
pub(super) fn hosts(text: &str) -> Parsed<Option<Vec<String>>> {
    let check = |host: &str| match Policy::only([host]) {
        Err(_) => {
            Err(format!("expected host names without scheme, port and path; {host:?} is not a host name"))
        }
        Ok(_) => Ok(()),
    };
    let hosts = list(text, check)?;
    match hosts.is_empty() {
        _ if text.is_empty() => Ok(None),
        true => Err("expected host names; the list names no host".to_owned()),
        false => Ok(Some(hosts)),
    }
}

pub(super) fn proxies(text: &str) -> Parsed<Vec<IpNet>> {
    let items = list(text, |_| Ok(()))?;
    let network = |item: &String| -> Parsed<IpNet> {
        let parsed = item.parse().or_else(|_| item.parse::<IpAddr>().map(IpNet::from));
        parsed.map_err(|_| format!("expected addresses or networks such as 10.0.0.0/8; {item:?} is neither"))
    };
    items.iter().map(network).collect()
}

/// Networks in CIDR notation; a network of one address as that address.
pub(super) fn networks(networks: &[IpNet]) -> String {
    let shown = networks.iter().map(|network| match network.prefix_len() == network.max_prefix_len() {
        true => network.addr().to_string(),
        false => network.to_string(),
    });
    shown.collect::<Vec<_>>().join(",")
}

pub(super) fn origins(text: &str) -> Parsed<Vec<String>> {
    list(&text.to_ascii_lowercase(), |origin| match is_origin(origin) {
        true => Ok(()),
        false => Err(format!("expected origins such as https://example.org; {origin:?} is not an origin")),
    })
}

/// Whether a text is a scheme, a host and perhaps a port, as browsers send it.
fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_host = |host: &str| !host.is_empty() && !host.contains(['/', '*', '@', '?', '#']);
    host.is_some_and(is_host) && text.parse::<Uri>().is_ok()
}

pub(super) fn extensions(text: &str) -> Parsed<Vec<String>> {
    const KNOWN: [&str; 6] = [".txt", ".md", ".html", ".htm", ".pdf", ".docx"];
    let extensions = list(&text.to_lowercase(), |extension| match KNOWN.contains(&extension) {
        true => Ok(()),
        false => Err(format!("expected some of {}, not {extension:?}", KNOWN.join(", "))),
    })?;
    if extensions.is_empty() { Err(format!("expected some of {}", KNOWN.join(", "))) } else { Ok(extensions) }
}
