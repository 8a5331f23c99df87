//! Which URLs and addresses are allowed.

use aldaba_engine::wire::{Guard, UrlError};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};

fn guard(allow: &[&str]) -> Guard {
    Guard::new(allow.iter().map(|net| net.parse().unwrap()).collect())
}

#[test]
fn every_spelling_of_a_forbidden_address_is_refused() {
    let hosts = [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "0x7F.0X0.0.1",
        "１２７.０.０.１",
        "127。0。0。1",
        "%31%32%37.0.0.1",
        "127.0.0.%31",
        "①②⑦.0.0.1",
        "0",
        "0.0.0.0",
        "0x0",
        "00000.1",
        "10.0.0.1",
        "10.1",
        "167772161",
        "0xa000001",
        "012.0.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0xa9.254.0251.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:10.0.0.1]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::1]",
        "[100::1]",
        "[2001::1]",
        "[2001:10::1]",
        "[2001:20::1]",
        "[2001:1ff::1]",
        "[2001:db8::1]",
        "[2002:7f00:1::]",
        "[2002:808:808::1]",
        "[3fff::1]",
        "[5f00::1]",
        "[fc00::1]",
        "[fd12:3456::1]",
        "[fe80::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[::8.8.8.8]",
        "[4000::1]",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "foo.localhost",
        "a.b.LocalHost.",
        "ｌｏｃａｌｈｏｓｔ",
        "%6cocalhost",
    ];
    let guard = guard(&[]);
    for host in hosts {
        for url in [
            format!("http://{host}/"),
            format!("https://{host}:8443/x?y"),
            format!("http://public.example@{host}/"),
            format!("http://user:public.example@{host}/"),
            format!("HTTP://{host}"),
        ] {
            assert_eq!(guard.parse_url(&url), Err(UrlError::Forbidden), "{url}");
        }
    }
}

#[test]
fn unparsable_urls_are_refused() {
    for url in [
        "http://",
        "https:///",
        "http://[fe80::1%25eth0]/",
        "http://[fe80::1%eth0]/",
        "http://[::1",
        "http://a b/",
        "http://1.2.3.4.5/",
        "http://256.256.256.256/",
        "http://0x1ffffffff/",
        "http://example.com:99999/",
        "http://./",
        "http://127.0.0..1/",
        "http://exa%00mple.com/",
        "http://exa%0ample.com/",
        "http://a%2fb.example/",
        "http://exam<ple.com/",
    ] {
        assert!(
            matches!(guard(&[]).parse_url(url), Err(UrlError::Unreadable(_))),
            "{url}: {:?}",
            guard(&[]).parse_url(url)
        );
    }
    assert_eq!(guard(&[]).parse_url("http://example.com:0/"), Err(UrlError::Port));
}

#[test]
fn a_host_with_an_empty_label_is_refused() {
    for host in [
        "127.0.0.1..",
        "127.0.0.1%2e%2e",
        "127.0.0.1。。",
        "127.0.0.1．．",
        "0x7f.1..",
        "2130706433..",
        "localhost..",
        "localhost。.",
        ".localhost",
        "foo..localhost",
        "a..example",
        ".example.com",
        "..",
        "example.com..",
    ] {
        for allowed in [&[][..], &["127.0.0.0/8", "::1/128"]] {
            let url = format!("http://{host}/");
            let refused = guard(allowed).parse_url(&url).expect_err(&url);
            assert_eq!(refused, UrlError::HostName, "{url}");
        }
    }
    for host in ["example.com", "example.com.", "a_b.example", "xn--exmple-cua.com"] {
        guard(&[]).parse_url(&format!("http://{host}/")).expect(host);
    }
}

#[test]
fn only_http_and_https_are_allowed() {
    for url in [
        "",
        "example.com",
        "/hook",
        "//example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "javascript:alert(1)",
        "data:text/plain,x",
        "http:example.com",
        "http:/example.com",
        "https:\\\\example.com",
        "ws://example.com/",
        "httpx://example.com/",
        "unix:///run/x.sock",
        "jar:http://example.com/",
        "http+unix://x/",
    ] {
        assert_eq!(guard(&[]).parse_url(url), Err(UrlError::Scheme), "{url}");
    }
}

#[test]
fn raw_control_characters_are_refused() {
    for url in [
        "http://exa\tmple.com/",
        "http://exa\nmple.com/",
        "http://exa\rmple.com/",
        "ht\ntp://example.com/",
        "http://example.com/\0",
        "\u{1}http://example.com/",
        "http://example.com/ ",
        " http://example.com/",
        "http://example.com/\r\nx: y",
        "http://example.com/\u{7f}",
        "http://example.com/\u{85}",
        "http://127.0.\t0.1/",
        "http://example.com/\u{2028}",
    ] {
        assert_eq!(guard(&[]).parse_url(url), Err(UrlError::ControlCharacter), "{url:?}");
    }
}

#[test]
fn public_targets_are_allowed_in_normal_form() {
    for (url, normal) in [
        ("http://example.com", "http://example.com/"),
        ("HTTPS://EXAMPLE.com:443/Hook?a=b#c", "https://example.com/Hook?a=b"),
        ("http://example.com:8080/a b", "http://example.com:8080/a%20b"),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
        ("http://8.8.8.8/", "http://8.8.8.8/"),
        ("http://134744072/", "http://8.8.8.8/"),
        ("http://[2606:4700::1111]/", "http://[2606:4700::1111]/"),
        ("http://[64:ff9b::8.8.8.8]/", "http://[64:ff9b::808:808]/"),
        ("http://172.32.0.1/", "http://172.32.0.1/"),
        ("http://notlocalhost/", "http://notlocalhost/"),
        ("http://localhost.example.com/", "http://localhost.example.com/"),
        ("http://under_score.example.com/", "http://under_score.example.com/"),
        ("http://public.example\\@127.0.0.1/", "http://public.example/@127.0.0.1/"),
    ] {
        let target = guard(&[]).parse_url(url).unwrap();
        assert_eq!((target.url.as_str(), target.credentials), (normal, None));
    }
}

#[test]
fn user_and_password_are_removed_from_the_url() {
    let target = guard(&[]).parse_url("https://al%40ice:s%C3%A9cret%3A@example.com/x").unwrap();
    assert_eq!(target.url.as_str(), "https://example.com/x");
    assert!(!format!("{target:?}").contains("cret"), "secrets are not shown");
    let credentials = target.credentials.unwrap();
    assert_eq!((&credentials.user[..], &credentials.password[..]), ("al@ice", "s\u{e9}cret:"));
    assert_eq!(credentials.basic_auth(), "Basic YWxAaWNlOnPDqWNyZXQ6");
    assert!(credentials.basic_auth().is_sensitive());

    let target = guard(&[]).parse_url("https://token@example.com/").unwrap();
    assert_eq!(target.credentials.unwrap().password, "");
    assert_eq!(guard(&[]).parse_url("https://@example.com/").unwrap().credentials, None);
    for url in ["https://a%3ab:c@example.com/", "https://%ff:c@example.com/", "https://a:b%0a@example.com/"] {
        assert_eq!(guard(&[]).parse_url(url), Err(UrlError::Credentials), "{url}");
    }
}

#[test]
fn an_operator_can_allow_networks() {
    let some = guard(&["10.1.0.0/16", "fd00::/8"]);
    for (host, allowed) in [
        ("10.1.2.3", true),
        ("10.2.2.3", false),
        ("[::ffff:10.1.2.3]", true),
        ("[64:ff9b::10.1.2.3]", true),
        ("[fd00::1]", true),
        ("[fc00::1]", false),
        ("127.0.0.1", false),
        ("localhost", false),
        ("8.8.8.8", true),
    ] {
        assert_eq!(some.parse_url(&format!("http://{host}/")).is_ok(), allowed, "{host}");
    }
    for loopback in ["127.0.0.0/8", "::1/128"] {
        assert!(guard(&[loopback]).parse_url("http://localhost:3000/").is_ok());
        assert!(guard(&[loopback]).parse_url("http://app.localhost:3000/").is_ok());
    }
}

#[test]
fn addresses_are_checked_by_their_effective_destination() {
    let guard = guard(&[]);
    let forbidden =
        ["::ffff:192.168.0.1", "64:ff9b::192.168.0.1", "2002:c0a8:1::", "::192.168.0.1", "fe80::1", "1::1"];
    for address in forbidden {
        assert!(!guard.allows(address.parse::<IpAddr>().unwrap()), "{address}");
    }
    for address in
        ["::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2a00:1450::1", "9.255.255.255", "11.0.0.0", "223.255.255.255"]
    {
        assert!(guard.allows(address.parse::<IpAddr>().unwrap()), "{address}");
    }
}

proptest! {
    /// An address is checked the same in every spelling.
    #[test]
    fn the_spelling_of_an_address_does_not_matter(bits in any::<u32>(), spelling in 0..6u8) {
        let address = Ipv4Addr::from(bits);
        let [a, b, c, d] = address.octets();
        let host = match spelling {
            0 => format!("{bits}"),
            1 => format!("{bits:#x}"),
            2 => format!("0{bits:o}"),
            3 => format!("0{a:o}.{b:#x}.{c}.{d}."),
            4 => format!("{a}.{}", bits & 0x00ff_ffff),
            _ => format!("[::ffff:{address}]"),
        };
        let target = guard(&[]).parse_url(&format!("http://x:y@{host}:8080/"));
        prop_assert_eq!(target.is_ok(), guard(&[]).allows(address.into()), "{}", host);
    }

    #[test]
    fn no_text_makes_the_guard_panic_or_allow_an_address(text in "(https?://)?\\PC{0,40}") {
        if let Ok(target) = guard(&[]).parse_url(&text) {
            prop_assert!(matches!(target.url.scheme(), "http" | "https"));
            prop_assert!(target.url.username().is_empty() && target.url.password().is_none());
            // A stored URL is parsed again at each attempt and must mean the same.
            let again = guard(&[]).parse_url(target.url.as_str()).unwrap();
            prop_assert_eq!(again.url, target.url);
        }
    }
}
