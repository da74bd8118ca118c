//! The client address of a request.

use std::net::{IpAddr, SocketAddr};

use actix_web::{HttpRequest, http::header::HeaderValue};
use ipnet::IpNet;

/// The client address of a request. X-Forwarded-For counts only as far as trusted proxies wrote it: the result is its
/// rightmost address that is not a trusted proxy, or its first address if all are.
pub(super) fn client_address(request: &HttpRequest, trusted: &[IpNet]) -> Option<IpAddr> {
    let peer = request.peer_addr()?.ip().to_canonical();
    let lines = request.headers().get_all("x-forwarded-for").map(HeaderValue::as_bytes);
    Some(resolve_forwarded(peer, &lines.collect::<Vec<_>>(), trusted))
}

/// Walks from the peer leftwards while the address is a trusted proxy. A part that is no address ends the walk.
fn resolve_forwarded(peer: IpAddr, lines: &[&[u8]], trusted: &[IpNet]) -> IpAddr {
    let forwarded: Vec<_> = lines.iter().flat_map(|line| line.split(|&byte| byte == b',')).collect();
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
    let mut address = peer;
    for previous in forwarded.iter().rev() {
        if !is_trusted(address) {
            break;
        }
        let Some(parsed) = std::str::from_utf8(previous).ok().and_then(|text| parse(text.trim())) else {
            break;
        };
        address = parsed;
    }
    address
}

/// An address, with or without a port.
fn parse(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    bare.parse().ok().or_else(with_port).map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(peer: &str, lines: &[&str], trusted: &[&str]) -> String {
        let lines: Vec<_> = lines.iter().map(|line| line.as_bytes()).collect();
        resolve_bytes(peer, &lines, trusted)
    }

    fn resolve_bytes(peer: &str, lines: &[&[u8]], trusted: &[&str]) -> String {
        let trusted: Vec<IpNet> = trusted.iter().map(|network| network.parse().unwrap()).collect();
        resolve_forwarded(peer.parse().unwrap(), lines, &trusted).to_string()
    }

    #[test]
    fn forwarded_header_from_an_untrusted_peer_is_ignored() {
        assert_eq!(resolve("192.0.2.1", &["203.0.113.9"], &[]), "192.0.2.1");
        assert_eq!(resolve("192.0.2.1", &["203.0.113.9"], &["10.0.0.0/8"]), "192.0.2.1");
    }

    #[test]
    fn rightmost_untrusted_address_is_the_client() {
        let trusted = ["10.0.0.0/8", "2001:db8::/32"];
        for (forwarded, expected) in [
            (&["203.0.113.9"][..], "203.0.113.9"),
            (&["1.1.1.1", " 203.0.113.9", " 10.1.2.3"], "203.0.113.9"),
            (&["203.0.113.9:4711"], "203.0.113.9"),
            (&["[2001:db9::1]:443", "2001:db8::7"], "2001:db9::1"),
            (&["[2001:db9::1]"], "2001:db9::1"),
            (&["::ffff:203.0.113.9"], "203.0.113.9"),
            (&["10.9.9.9", "10.1.2.3"], "10.9.9.9"),
            (&["203.0.113.9", "unknown", "10.1.2.3"], "10.1.2.3"),
            (&["", ""], "10.0.0.1"),
            (&[], "10.0.0.1"),
            (&["1.1.1.1, 203.0.113.9,10.1.2.3"], "203.0.113.9"),
            (&["1.1.1.1", "203.0.113.9, 10.1.2.3"], "203.0.113.9"),
        ] {
            assert_eq!(resolve("10.0.0.1", forwarded, &trusted), expected, "{forwarded:?}");
        }
    }

    #[test]
    fn non_utf8_part_does_not_hide_the_addresses_after_it() {
        let joined: &[u8] = b"\x80, 203.0.113.9";
        assert_eq!(resolve_bytes("10.0.0.1", &[b"1.1.1.1", joined], &["10.0.0.0/8"]), "203.0.113.9");
        assert_eq!(resolve_bytes("10.0.0.1", &[b"1.1.1.1", b"\x80"], &["10.0.0.0/8"]), "10.0.0.1");
    }
}
