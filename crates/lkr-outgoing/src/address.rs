//! Addresses that are never called, in every notation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Metadata addresses of clouds, which serve credentials to any process inside. Most are link-local as well.
const METADATA_V4: [Ipv4Addr; 4] = [
    Ipv4Addr::new(169, 254, 169, 254),
    // Alibaba
    Ipv4Addr::new(100, 100, 100, 200),
    // Oracle
    Ipv4Addr::new(192, 0, 0, 192),
    // Azure's wire server
    Ipv4Addr::new(168, 63, 129, 16),
];

/// IPv6 metadata addresses with the number of significant bits.
const METADATA_V6: [(Ipv6Addr, u32); 6] = [
    // Amazon: metadata, and the keys of pods
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32),
    // Google
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128),
    // Oracle
    (Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe), 128),
    // Scaleway
    (Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), 128),
    // Akamai (Linode)
    (Ipv6Addr::new(0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1), 128),
    // Alibaba
    (Ipv6Addr::new(0xfd00, 0x100, 0, 0, 0, 0, 0x100, 0x200), 128),
];

/// Why an address is never called; `None` for all others, including loopback and private networks.
pub(crate) fn forbidden(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => forbidden_v4(v4),
        IpAddr::V6(v6) => {
            let mut hidden = embedded_v4(v6).into_iter().chain(embedded_nat64(v6)).flatten();
            forbidden_v6(v6).or_else(|| hidden.find_map(forbidden_v4))
        }
    }
}

fn forbidden_v4(address: Ipv4Addr) -> Option<&'static str> {
    if METADATA_V4.contains(&address) {
        return Some("a cloud's metadata address");
    }
    match address.octets() {
        [169, 254, ..] => Some("a link-local address"),
        [0, ..] => Some("an unspecified address"),
        [224..=239, ..] => Some("a multicast address"),
        [240..=255, ..] => Some("a reserved or broadcast address"),
        _ => None,
    }
}

fn forbidden_v6(address: Ipv6Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    let same = |&(other, count): &(Ipv6Addr, u32)| (bits ^ other.to_bits()) >> (128 - count) == 0;
    if METADATA_V6.iter().any(same) {
        return Some("a cloud's metadata address");
    }
    match address.segments() {
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("an unspecified address"),
        _ => None,
    }
}

/// The IPv4 addresses that an IPv6 address may be translated to by a router or the operating system.
fn embedded_v4(address: Ipv6Addr) -> [Option<Ipv4Addr>; 3] {
    let [s0, s1, s2, s3, s4, s5, s6, s7] = address.segments();
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    let last = v4(s6, s7);
    let by_form = match [s0, s1, s2, s3, s4, s5] {
        // The loopback address `::1` is not 0.0.0.1.
        [0, 0, 0, 0, 0, 0] if (s6, s7) == (0, 1) => None,
        // IPv4-compatible, -mapped and -translated
        [0, 0, 0, 0, 0, 0 | 0xffff] | [0, 0, 0, 0, 0xffff, 0] => last,
        // NAT64, the well-known prefix and the local ones (RFC 6052, RFC 8215)
        [0x64, 0xff9b, ..] => last,
        // 6to4
        [0x2002, high, low, ..] => v4(high, low),
        // Teredo stores the client address inverted.
        [0x2001, 0, ..] => v4(!s6, !s7),
        // ISATAP
        [.., 0 | 0x200, 0x5efe] => last,
        _ => None,
    };
    let server_of_teredo = if [s0, s1] == [0x2001, 0] { v4(s2, s3) } else { None };
    [by_form, server_of_teredo, address.to_ipv4_mapped()]
}

/// The IPv4 addresses that an address of NAT64's local prefix 64:ff9b:1::/48 may be translated to. Operators choose a
/// prefix of 48, 56, 64 or 96 bits in it; all but the last place the address around the bits 64 to 71 (RFC 6052, 2.2).
fn embedded_nat64(address: Ipv6Addr) -> [Option<Ipv4Addr>; 3] {
    match address.octets() {
        [0, 0x64, 0xff, 0x9b, 0, 1, o6, o7, _, o9, o10, o11, o12, ..] => [
            Some(Ipv4Addr::new(o6, o7, o9, o10)),
            Some(Ipv4Addr::new(o7, o9, o10, o11)),
            Some(Ipv4Addr::new(o9, o10, o11, o12)),
        ],
        _ => [None; 3],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(text: &str) -> bool {
        forbidden(text.parse().unwrap()).is_some()
    }

    #[test]
    fn lesson_26_special_addresses_are_forbidden() {
        for text in [
            "169.254.169.254",
            "169.254.0.1",
            "169.254.255.255",
            "169.254.170.2",
            "100.100.100.200",
            "192.0.0.192",
            "168.63.129.16",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "fe80::1",
            "febf::1",
            "ff02::1",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "fd00:42::42",
            "fd00:a9fe:a9fe::1",
            "fd00:100::100:200",
            "64:ff9b:1:a9fe:a9:fe08:808:808",
            "64:ff9b:1:8a9:fe:a9fe:808:808",
            "64:ff9b:1:808:64:6464:c808:808",
        ] {
            assert!(refused(text), "{text}");
        }
    }

    #[test]
    fn loopback_and_private_addresses_are_allowed() {
        for text in [
            "127.0.0.1",
            "127.1.2.3",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.0.1",
            "100.64.0.1",
            "192.0.0.1",
            "8.8.8.8",
            "::1",
            "fd00::1",
            "fd12:3456::1",
            "fd00:a9fe:a9fe::2",
            "fd00:100::100:201",
            "64:ff9b:1:808:8:808:808:808",
            "2001:db8::1",
            "2606:4700::1",
            "::ffff:127.0.0.1",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "fec0::1",
        ] {
            assert!(!refused(text), "{text}");
        }
    }

    fn v4() -> impl Strategy<Value = Ipv4Addr> {
        let forbidden = prop_oneof![
            any::<[u8; 2]>().prop_map(|[c, d]| Ipv4Addr::new(169, 254, c, d)),
            any::<[u8; 4]>().prop_map(|[a, b, c, d]| Ipv4Addr::new(a | 0xe0, b, c, d)),
            prop::sample::select(METADATA_V4.as_slice()),
        ];
        prop_oneof![forbidden, any::<u32>().prop_map(Ipv4Addr::from_bits)]
    }

    proptest! {
        /// A forbidden IPv4 address is forbidden in every IPv6 notation.
        #[test]
        fn lesson_26_embedded_forbidden_v4_address_is_forbidden(address in v4(), noise in any::<[u16; 4]>()) {
            let [high, low] = [(address.to_bits() >> 16) as u16, address.to_bits() as u16];
            let [a, b, c, d] = noise;
            let last = |s: [u16; 6]| Ipv6Addr::new(s[0], s[1], s[2], s[3], s[4], s[5], high, low);
            let [o0, o1, o2, o3] = address.octets().map(u16::from);
            let nat64 = |s: [u16; 5]| Ipv6Addr::new(0x64, 0xff9b, 1, s[0], s[1], s[2], s[3], s[4]);
            let disguises = [
                last([0, 0, 0, 0, 0, 0xffff]),
                last([0, 0, 0, 0, 0xffff, 0]),
                last([0x64, 0xff9b, 0, 0, 0, 0]),
                last([0x64, 0xff9b, 1, a, b, c]),
                last([0x2600 | a & 0xff, b, c, d, 0, 0x5efe]),
                Ipv6Addr::new(0x2002, high, low, a, b, c, d, 1),
                Ipv6Addr::new(0x2001, 0, 0x808, 0x808, a, b, !high, !low),
                nat64([high, a << 8 | o2, o3 << 8 | b & 0xff, c, d]),
                nat64([a << 8 | o0, b << 8 | o1, o2 << 8 | o3, c, d]),
                nat64([a, b << 8 | o0, o1 << 8 | o2, o3 << 8 | c & 0xff, d]),
            ];
            let bare = forbidden_v4(address).is_some();
            for disguise in disguises {
                prop_assert!(!bare || forbidden(disguise.into()).is_some(), "{disguise} is {address}");
            }
            if u32::from(address) != 1 {
                let compatible = last([0; 6]);
                prop_assert_eq!(bare, forbidden(compatible.into()).is_some(), "{}", compatible);
            }
            let mapped = IpAddr::V6(address.to_ipv6_mapped());
            prop_assert_eq!(bare, forbidden(mapped).is_some());
        }

        #[test]
        fn lesson_26_every_link_local_address_is_refused(rest in any::<u128>(), v4 in any::<[u8; 2]>()) {
            let v6 = Ipv6Addr::from_bits(0xfe80 << 112 | rest >> 10);
            prop_assert!(forbidden(v6.into()).is_some(), "{v6}");
            prop_assert!(forbidden(Ipv4Addr::new(169, 254, v4[0], v4[1]).into()).is_some());
        }
    }
}
