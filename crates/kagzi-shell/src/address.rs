use std::fmt;
use std::str::FromStr;

/// Where a server listens, as people write it: `host:port`, with or without `http://`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    pub fn uri(&self) -> String {
        format!("http://{}", self.0)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("https://") {
            return Err("TLS is not available yet; use host:port or http://host:port".into());
        }
        if text.contains(',') {
            return Err("this command talks to one server; choose one address of the list".into());
        }
        let authority = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        let (host, port) = authority.rsplit_once(':').ok_or("expected host:port")?;
        if host.is_empty() || host.contains(['/', ' ']) {
            return Err("expected host:port".into());
        }
        port.parse::<u16>().map_err(|_| format!("`{port}` is not a port"))?;
        Ok(Address(authority.to_owned()))
    }
}

impl From<std::net::SocketAddr> for Address {
    fn from(address: std::net::SocketAddr) -> Self {
        Address(address.to_string())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_written_with_or_without_its_scheme() {
        for text in ["127.0.0.1:50051", "http://127.0.0.1:50051", "http://127.0.0.1:50051/"] {
            assert_eq!(text.parse::<Address>().unwrap().uri(), "http://127.0.0.1:50051");
        }
    }

    #[test]
    fn an_address_without_a_port_is_refused() {
        for text in ["localhost", "localhost:", "localhost:http", ":50051", "https://x:1", "a:1,b:2"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
