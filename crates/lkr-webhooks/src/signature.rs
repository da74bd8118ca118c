use hmac::{Hmac, KeyInit, Mac};
use lkr_domain::hex;
use sha2::Sha256;

/// The value of the header `X-Lkr-Signature` for a body that is sent at `seconds` since 1970: `t=<seconds>,v1=<digest>`.
/// The digest is the HMAC-SHA256 of `<seconds>.<body>` under the secret, in lower-case hexadecimal.
#[must_use]
pub fn signature(secret: &str, seconds: u64, body: &str) -> String {
    let time = seconds.to_string();
    // HMAC accepts a key of any length.
    let digest = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map(|mut mac| {
        mac.update(time.as_bytes());
        mac.update(b".");
        mac.update(body.as_bytes());
        hex(&mac.finalize().into_bytes())
    });
    format!("t={time},v1={}", digest.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected value was computed with `openssl dgst -sha256 -hmac key`.
    #[test]
    fn signature_equals_the_one_computed_by_openssl() {
        assert_eq!(
            signature("key", 1_700_000_000, "{\"a\":1}"),
            "t=1700000000,v1=a438e398bfafc57e4396bb7fc2304422f0f768e965d073ca313cb52e22e6ad03"
        );
    }
}
