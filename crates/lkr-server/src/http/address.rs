//! Where a request comes from.

use std::net::{IpAddr, SocketAddr};

use actix_web::{HttpRequest, http::header::HeaderValue};
use ipnet::IpNet;

/// The address that a request comes from. What X-Forwarded-For says is believed as far as trusted proxies say it:
/// its rightmost address that is none of theirs, or the first one where all are.
pub(crate) fn client(request: &HttpRequest, trusted: &[IpNet]) -> Option<IpAddr> {
    let peer = request.peer_addr()?.ip().to_canonical();
    let lines = request.headers().get_all("x-forwarded-for").map(HeaderValue::as_bytes);
    Some(behind(peer, &lines.collect::<Vec<_>>(), trusted))
}

/// Goes from the peer on leftwards as long as the address is a trusted proxy's; what is no address ends the way.
fn behind(peer: IpAddr, lines: &[&[u8]], trusted: &[IpNet]) -> IpAddr {
    let said: Vec<_> = lines.iter().flat_map(|line| line.split(|&byte| byte == b',')).collect();
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
    let mut address = peer;
    for before in said.iter().rev() {
        if !is_trusted(address) {
            break;
        }
        let Some(parsed) = std::str::from_utf8(before).ok().and_then(|text| parse(text.trim())) else {
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

    fn client(peer: &str, lines: &[&str], trusted: &[&str]) -> String {
        let lines: Vec<_> = lines.iter().map(|line| line.as_bytes()).collect();
        of_bytes(peer, &lines, trusted)
    }

    fn of_bytes(peer: &str, lines: &[&[u8]], trusted: &[&str]) -> String {
        let trusted: Vec<IpNet> = trusted.iter().map(|network| network.parse().unwrap()).collect();
        behind(peer.parse().unwrap(), lines, &trusted).to_string()
    }

    #[test]
    fn nobody_is_believed_unless_trusted() {
        assert_eq!(client("192.0.2.1", &["203.0.113.9"], &[]), "192.0.2.1");
        assert_eq!(client("192.0.2.1", &["203.0.113.9"], &["10.0.0.0/8"]), "192.0.2.1");
    }

    #[test]
    fn the_rightmost_address_that_is_not_trusted_counts() {
        let trusted = ["10.0.0.0/8", "2001:db8::/32"];
        for (said, expected) in [
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
            assert_eq!(client("10.0.0.1", said, &trusted), expected, "{said:?}");
        }
    }

    #[test]
    fn what_is_no_text_hides_nothing() {
        let joined: &[u8] = b"\x80, 203.0.113.9";
        assert_eq!(of_bytes("10.0.0.1", &[b"1.1.1.1", joined], &["10.0.0.0/8"]), "203.0.113.9");
        assert_eq!(of_bytes("10.0.0.1", &[b"1.1.1.1", b"\x80"], &["10.0.0.0/8"]), "10.0.0.1");
    }
}
