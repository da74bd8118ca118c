//! Where a request comes from.

use std::net::{IpAddr, SocketAddr};

use actix_web::HttpRequest;
use ipnet::IpNet;

/// The address that a request comes from. What X-Forwarded-For says is believed as far as trusted proxies say it:
/// its rightmost address that is none of theirs, or the first one where all are.
pub(crate) fn client(request: &HttpRequest, trusted: &[IpNet]) -> Option<IpAddr> {
    let peer = request.peer_addr()?.ip().to_canonical();
    let headers = request.headers().get_all("x-forwarded-for");
    let said: Vec<&str> =
        headers.filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(',')).collect();
    Some(behind(peer, &said, trusted))
}

/// Goes from the peer on leftwards as long as the address is a trusted proxy's; what is no address ends the way.
fn behind(peer: IpAddr, said: &[&str], trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
    let mut address = peer;
    for before in said.iter().rev() {
        if !is_trusted(address) {
            break;
        }
        let Some(parsed) = parse(before.trim()) else { break };
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

    fn client(peer: &str, said: &[&str], trusted: &[&str]) -> String {
        let trusted: Vec<IpNet> = trusted.iter().map(|network| network.parse().unwrap()).collect();
        behind(peer.parse().unwrap(), said, &trusted).to_string()
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
        ] {
            assert_eq!(client("10.0.0.1", said, &trusted), expected, "{said:?}");
        }
    }
}
