//! Where servers are: one address, a comma-separated list, or a vector of them.

use crate::error::Error;

/// The addresses of one or more servers, as given. `"127.0.0.1:50051"`, `"http://a:1,http://b:1"` and
/// `vec!["a:1", "b:1"]` all turn into it; they are checked when a connection is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses(Vec<String>);

impl From<&str> for Addresses {
    fn from(list: &str) -> Addresses {
        Addresses(list.split(',').map(|address| address.trim().to_owned()).collect())
    }
}

impl From<String> for Addresses {
    fn from(list: String) -> Addresses {
        Addresses::from(list.as_str())
    }
}

impl From<&String> for Addresses {
    fn from(list: &String) -> Addresses {
        Addresses::from(list.as_str())
    }
}

impl<A: Into<Addresses>> From<Vec<A>> for Addresses {
    fn from(lists: Vec<A>) -> Addresses {
        Addresses(lists.into_iter().flat_map(|list| list.into().0).collect())
    }
}

impl Addresses {
    /// Every address with its scheme, in the order given.
    pub(crate) fn urls(&self) -> Result<Vec<String>, Error> {
        if self.0.is_empty() {
            return Err(invalid("", "at least one address is needed"));
        }
        self.0.iter().map(|address| url(address)).collect()
    }
}

fn url(address: &str) -> Result<String, Error> {
    let authority = match address.split_once("://") {
        None => address,
        Some(("http", authority)) => authority,
        Some(("https", _)) => return Err(invalid(address, "TLS is not supported yet, use http://")),
        Some(_) => return Err(invalid(address, "the scheme must be http")),
    };
    let authority = authority.trim_end_matches('/');
    let Some((host, port)) = authority.rsplit_once(':') else {
        return Err(invalid(address, "a port is needed, e.g. 127.0.0.1:50051"));
    };
    if host.is_empty() || host.contains(['/', '@', ' ']) {
        return Err(invalid(address, "must be host:port, optionally after http://"));
    }
    match port.parse::<u16>() {
        Ok(port) if port != 0 => Ok(format!("http://{authority}")),
        Ok(_) | Err(_) => Err(invalid(address, "the port must be a number from 1 to 65535")),
    }
}

fn invalid(address: &str, rule: &'static str) -> Error {
    Error::InvalidAddress { address: address.to_owned(), rule }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(addresses: impl Into<Addresses>) -> Vec<String> {
        addresses.into().urls().unwrap()
    }

    #[test]
    fn a_scheme_is_optional() {
        assert_eq!(urls("127.0.0.1:50051"), ["http://127.0.0.1:50051"]);
        assert_eq!(urls("http://[::1]:50051/"), ["http://[::1]:50051"]);
    }

    #[test]
    fn lists_come_with_commas_or_as_a_vector() {
        assert_eq!(urls("a:1, http://b:2"), ["http://a:1", "http://b:2"]);
        assert_eq!(urls(vec!["a:1", "b:2,c:3"]), ["http://a:1", "http://b:2", "http://c:3"]);
        assert_eq!(urls(vec![String::from("a:1")]), ["http://a:1"]);
    }

    #[test]
    fn what_cannot_be_an_address_is_refused_with_the_rule() {
        let refused = ["", "a", "a:", "a:0", "a:99999", ":1", "a:1,", "https://a:1", "ftp://a:1", "a b:1"];

        for address in refused {
            assert!(Addresses::from(address).urls().is_err(), "{address:?} was accepted");
        }
        assert!(Addresses::from(Vec::<String>::new()).urls().is_err());
    }
}
