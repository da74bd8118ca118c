use std::time::{Duration, SystemTime};

use hyper::{HeaderMap, header::RETRY_AFTER};

/// The pause that a response requests with `Retry-After`, in seconds or as a date. At least one second.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = text.parse::<u64>().ok().map(Duration::from_secs);
    let date = || Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default());
    seconds.or_else(date).map(|wait| wait.max(Duration::from_secs(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_reads_seconds_and_dates() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        for (text, seconds) in [
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("0", Some(1)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(7)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", Some(1)),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            assert_eq!(retry_after(&headers, now), seconds.map(Duration::from_secs), "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
