//! Where a message may be posted.

use std::net::IpAddr;

use url::{Host, Url};

/// Bytes of an address.
const URL_BYTES_MAX: usize = 2_000;

/// An address that was checked: http or https, a host, and no login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    host: String,
}

/// Why an address is refused. It may hold a secret in its path, so no message repeats it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("it is no URL ({0}); write https://HOST/PATH")]
    NotAUrl(String),
    #[error("it must begin with https:// or http://")]
    Scheme,
    #[error("it names no host")]
    NoHost,
    #[error("it must hold no user and no password; messages are signed instead")]
    Login,
    #[error("it is longer than {URL_BYTES_MAX} bytes")]
    TooLong,
}

impl Target {
    /// Reads an address, or says what is wrong with it.
    pub fn read(text: &str) -> Result<Target, TargetError> {
        if text.len() > URL_BYTES_MAX {
            return Err(TargetError::TooLong);
        }
        let url = Url::parse(text).map_err(|error| TargetError::NotAUrl(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(TargetError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError::Login);
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(TargetError::NoHost)?.to_owned();
        Ok(Target { url, host })
    }

    /// The host as the address writes it, in small letters.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    pub(super) fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or(443)
    }

    /// The host to look up: an address of version 6 has no brackets there.
    pub(super) fn lookup(&self) -> String {
        match self.url.host() {
            Some(Host::Ipv6(ip)) => ip.to_string(),
            Some(Host::Ipv4(_) | Host::Domain(_)) | None => self.host.clone(),
        }
    }

    /// What the request names as its host.
    pub(super) fn authority(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }

    pub(super) fn path_and_query(&self) -> String {
        match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        }
    }
}

/// Addresses at which no receiver of messages is: those of nobody, of everybody, and those of the machine's
/// own link, where clouds hand out their secrets. Asked after the name was looked up, so that no name leads
/// there.
pub(super) fn is_no_receiver(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_unspecified() || ip.is_broadcast() || ip.is_multicast() || ip.is_link_local(),
        IpAddr::V6(ip) => {
            // The cloud's service of secrets has an address of its own in version 6.
            let metadata = ip.segments() == [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254];
            ip.is_unspecified() || ip.is_multicast() || ip.is_unicast_link_local() || metadata
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_http_with_a_host_and_without_a_login() {
        let target = Target::read("https://Hooks.Example.org:8443/a/b?c=d").unwrap();
        assert_eq!(target.host(), "hooks.example.org");
        assert_eq!((target.port(), target.authority().as_str()), (8443, "hooks.example.org:8443"));
        assert_eq!(target.path_and_query(), "/a/b?c=d");
        assert_eq!(Target::read("http://[::1]:80/").unwrap().lookup(), "::1");

        let wrong = |text: &str| Target::read(text).expect_err("it is wrong");
        assert_eq!(wrong("ftp://example.org/"), TargetError::Scheme);
        assert_eq!(wrong("file:///etc/passwd"), TargetError::Scheme);
        assert_eq!(wrong("javascript:alert(1)"), TargetError::Scheme);
        assert_eq!(wrong("https://ada:sesame@example.org/"), TargetError::Login);
        assert_eq!(wrong("https://ada@example.org/"), TargetError::Login);
        assert!(matches!(wrong("example.org/hook"), TargetError::NotAUrl(_)));
        assert!(matches!(wrong("http://"), TargetError::NotAUrl(_)));
        assert_eq!(wrong(&format!("https://example.org/{}", "x".repeat(2_000))), TargetError::TooLong);
    }

    #[test]
    fn however_an_address_is_written_it_means_one_host() {
        for text in ["http://2130706433/", "http://0x7f.1/", "http://127.1/", "http://127.0.0.1/"] {
            assert_eq!(Target::read(text).unwrap().host(), "127.0.0.1", "{text}");
        }
        assert_eq!(Target::read("https://example.org\\@evil.example/").unwrap().host(), "example.org");
        assert!(Target::read("https://example.org@evil.example/").is_err());
    }

    #[test]
    fn no_message_goes_to_nobody_everybody_or_the_clouds_secrets() {
        for ip in [
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "169.254.169.254",
            "::",
            "ff02::1",
            "fe80::1",
            "::ffff:169.254.169.254",
            "fd00:ec2::254",
        ] {
            assert!(is_no_receiver(ip.parse().unwrap()), "{ip}");
        }
        for ip in ["127.0.0.1", "10.1.2.3", "192.168.0.9", "93.184.215.14", "::1", "fd12::1", "2606::1"] {
            assert!(!is_no_receiver(ip.parse().unwrap()), "{ip}");
        }
    }
}
