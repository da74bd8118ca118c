use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

fn refusal(policy: &Policy, address: &str) -> String {
    policy.check(address).map_err(|error| error.reason()).expect_err(address)
}

#[test]
fn lesson_26_metadata_addresses_are_refused_in_every_notation() {
    for address in [
        "http://169.254.169.254/latest/meta-data",
        "http://169.254.169.254./",
        "http://169.254.43518/",
        "http://169.16689662/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0xA9.0xFE.0xA9.0xFE/",
        "http://0251.0376.0251.0376/",
        "http://025177524776",
        "http://169%2e254%2E169.254/",
        "http://１６９.254。169．254/",
        "http://①⑥⑨.254.169.254/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[::169.254.169.254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:a9fe:a9fe::1]/",
        "http://[fe80::1]/",
        "http://[FD00:EC2:0::254]/",
        "https://100.100.100.200/",
        "http://168.63.129.16:80/machine",
        "http://metadata.google.internal/computeMetadata/v1/",
        "http://METADATA.Google.Internal./",
        "http://metadata.google.internal../",
        "http://ｍetadata.goog/",
        "http://0/",
        "http://[::]/",
        "http://255.255.255.255/",
        "\thttp://169.254.169.254/",
        "http:169.254.169.254",
        "http:\\\\169.254.169.254\\",
    ] {
        assert!(refusal(&Policy::any(), address).contains("never called"), "{address}");
    }
}

#[test]
fn invalid_addresses_are_refused_without_quoting_secrets() {
    for (address, said) in [
        ("", "is not an address"),
        ("models.example", "is not an address"),
        ("//models.example/", "is not an address"),
        ("http://", "is not an address"),
        ("http://[fe80::1%25eth0]/", "is not an address"),
        ("http://[fe80::1%eth0]/", "is not an address"),
        ("http://256.1.1.1/", "is not an address"),
        ("http://a b/", "is not an address"),
        ("http://./", "has no host"),
        ("ftp://models.example/", "begins with ftp:"),
        ("file:///etc/passwd", "begins with file:"),
        ("gopher://models.example/", "begins with gopher:"),
        ("unix:/run/docker.sock", "begins with unix:"),
        ("http://user@models.example/", "user or a password"),
        ("http://:planted@models.example/", "user or a password"),
        ("http://user:planted@models.example/", "user or a password"),
    ] {
        let reason = refusal(&Policy::any(), address);
        assert!(reason.contains(said) && !reason.contains("planted"), "{address}: {reason}");
    }
}

#[test]
fn other_addresses_are_allowed() {
    for address in [
        "http://127.0.0.1:11434/v1",
        "http://localhost:8000",
        "http://[::1]:8000/",
        "http://10.1.2.3/",
        "https://models.example/v1",
        "HTTPS://Models.Example./v1?key=1#x",
        "http://bücher.example/",
        "http://metadata.example/",
        // The host ends at the backslash, as in browsers: there is only one interpretation.
        "http://127.0.0.1\\@169.254.169.254/",
    ] {
        assert!(Policy::any().check(address).is_ok(), "{address}");
    }
}

#[test]
fn lesson_26_only_listed_hosts_are_called() {
    let listed = [" Models.Example ", "127.0.0.1", "::1", "bücher.example", "x.test."];
    let policy = Policy::only(listed).unwrap();
    for address in [
        "https://models.example/v1",
        "https://MODELS.example.:8443/",
        "http://127.1/",
        "http://[::1]:9/",
        "http://xn--bcher-kva.example/",
        "http://X.test/",
    ] {
        assert!(policy.check(address).is_ok(), "{address}");
    }
    for address in [
        "http://localhost/",
        "http://127.0.0.2/",
        "https://evil.models.example/",
        "https://models.example.evil.test/",
        "https://models.exampl/",
        "http://[2001:db8::2]/",
    ] {
        assert!(refusal(&policy, address).contains("not among those"), "{address}");
    }
    assert!(
        Policy::only::<&str>([]).unwrap().check("http://localhost/").is_err(),
        "an empty list allows no host"
    );
}

#[test]
fn lesson_26_listing_a_metadata_address_does_not_allow_it() {
    let policy = Policy::only(["169.254.169.254", "metadata.google.internal", "fe80::1"]).unwrap();
    for address in ["http://169.254.169.254/", "http://metadata.google.internal/", "http://[fe80::1]/"] {
        assert!(refusal(&policy, address).contains("never called"), "{address}");
    }
}

#[test]
fn invalid_list_entries_are_refused() {
    for host in
        ["", " ", ".", "http://models.example", "models.example:8080", "a/b", "*.example", "u@h", "1.2.3.256"]
    {
        assert!(Policy::only([host]).is_err(), "{host:?}");
    }
}

proptest! {
    /// The check never panics, and every address that passes has an allowed host.
    #[test]
    fn arbitrary_text_does_not_panic(text in "(http|https|ftp)?(://)?[\\PC]{0,40}") {
        if let Ok(target) = Policy::any().target(&text) {
            prop_assert!(literal(&target.host).is_none_or(|address| forbidden(address).is_none()));
            prop_assert!(matches!(target.url.scheme(), "http" | "https"));
        }
    }

    /// Every notation of a forbidden IPv4 address is forbidden.
    #[test]
    fn lesson_26_every_notation_of_a_forbidden_address_is_refused(c: u8, d: u8, form in 0..7_usize) {
        let address = Ipv4Addr::new(169, 254, c, d);
        let bits = address.to_bits();
        let host = match form {
            0 => address.to_string(),
            1 => format!("{address}."),
            2 => bits.to_string(),
            3 => format!("0x{bits:X}"),
            4 => format!("0{bits:o}"),
            5 => format!("0xa9.0376.{}", bits & 0xffff),
            _ => format!("169.{}", bits & 0xff_ffff),
        };
        prop_assert!(Policy::any().check(&format!("http://{host}/")).is_err(), "{}", host);
    }
}

#[test]
fn address_with_control_characters_is_refused() {
    for address in [
        "http://example.org/\r\nX: y",
        "http://exa\tmple.org/",
        "http://example.org/\n",
        "\u{1f}http://example.org/",
    ] {
        assert_eq!(refusal(&Policy::any(), address), "contains a control character", "{address:?}");
    }
}
