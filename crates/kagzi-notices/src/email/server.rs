//! From a URL to a mail server: encrypted unless somebody says otherwise.

use lettre::{
    AsyncSmtpTransport, Tokio1Executor,
    transport::smtp::{
        AsyncSmtpTransportBuilder,
        authentication::Credentials,
        client::{Certificate, Tls, TlsParameters},
    },
};
use url::{Host, Url};

use super::SettingsError;
use crate::trust;

/// What a URL says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    pub host: String,
    pub port: u16,
    pub encryption: Encryption,
    pub login: Option<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encryption {
    /// From the first byte.
    Tls,
    /// In clear until STARTTLS, which must be there.
    StartTls,
    /// Somebody wrote `?tls=none`.
    None,
}

/// A connection as the URL says, not opened yet.
pub(super) fn builder(
    url: &str,
    authority_pem: Option<&[u8]>,
) -> Result<AsyncSmtpTransportBuilder, SettingsError> {
    let server = read(url)?;
    let broken = |error: lettre::transport::smtp::Error| SettingsError::new("smtp_url", super::told(&error));
    let mut parameters = TlsParameters::builder(server.host.clone());
    for certificate in trust::authorities(authority_pem)? {
        let certificate = Certificate::from_der(certificate.to_vec()).map_err(broken)?;
        parameters = parameters.add_root_certificate(certificate);
    }
    let parameters = parameters.build_rustls().map_err(broken)?;
    let tls = match server.encryption {
        Encryption::Tls => Tls::Wrapper(parameters),
        Encryption::StartTls => Tls::Required(parameters),
        Encryption::None => Tls::None,
    };
    let mut builder =
        AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(server.host).port(server.port).tls(tls);
    if let Some((user, password)) = server.login {
        builder = builder.credentials(Credentials::new(user, password));
    }
    Ok(builder)
}

/// Reads a URL. What it says is a secret, so no message repeats it.
pub(super) fn read(url: &str) -> Result<Server, SettingsError> {
    let wrong = |rule: &str| SettingsError::new("smtp_url", rule);
    let url = Url::parse(url).map_err(|error| {
        wrong(&format!("it is no URL ({error}); write smtps://USER:PASSWORD@HOST or smtp://HOST:587"))
    })?;
    let starttls = match url.scheme() {
        "smtps" => false,
        "smtp" => true,
        _ => return Err(wrong("it must begin with smtps:// or smtp://")),
    };
    let host = match url.host_str() {
        Some(host) if !host.is_empty() => host.trim_matches(['[', ']']).to_owned(),
        Some(_) | None => return Err(wrong("it names no host")),
    };
    if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
        return Err(wrong("a mail server has no path"));
    }
    let encryption = match (url.query(), starttls) {
        (None, true) => Encryption::StartTls,
        (None, false) => Encryption::Tls,
        (Some("tls=none"), true) => Encryption::None,
        (Some("tls=none"), false) => return Err(wrong("smtps:// is encrypted; write smtp://HOST?tls=none")),
        (Some(_), _) => return Err(wrong("after the question mark it knows only tls=none")),
    };
    let decoded = |part: &str| {
        let decoded = percent_decoded(part);
        decoded.ok_or_else(|| wrong("user and password must be text; write other characters as %XX"))
    };
    let login = match (url.username(), url.password()) {
        ("", None) => None,
        ("", Some(_)) | (_, None) => return Err(wrong("a login has a user and a password")),
        (user, Some(password)) => Some((decoded(user)?, decoded(password)?)),
    };
    if login.is_some() && encryption == Encryption::None && !is_this_machine(&url) {
        return Err(wrong("a password is not sent in clear to another machine; leave ?tls=none away"));
    }
    let standard = if encryption == Encryption::Tls { 465 } else { 587 };
    Ok(Server { host, port: url.port().unwrap_or(standard), encryption, login })
}

/// For schemes that it does not know, the parser leaves an address as text.
fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            name == "localhost" || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
        }
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// `p%40ss` is `p@ss`.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let hex = std::str::from_utf8(after.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        read(url).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_url_names_server_encryption_and_login() {
        let login = Some(("ada@example.org".to_owned(), "p@ss:w/rd".to_owned()));
        assert_eq!(
            read("smtps://ada%40example.org:p%40ss%3Aw%2Frd@mail.example.org").unwrap(),
            Server { host: "mail.example.org".into(), port: 465, encryption: Encryption::Tls, login }
        );
        assert_eq!(
            read("smtp://mail.example.org").unwrap(),
            Server {
                host: "mail.example.org".into(),
                port: 587,
                encryption: Encryption::StartTls,
                login: None
            }
        );
        let clear = read("smtp://127.0.0.1:2525?tls=none").unwrap();
        assert_eq!((clear.port, clear.encryption), (2525, Encryption::None));
        assert_eq!(read("smtp://[::1]:25").unwrap().host, "::1");
    }

    #[test]
    fn a_password_goes_in_clear_to_this_machine_only() {
        assert!(read("smtp://ada:secret@localhost?tls=none").is_ok());
        assert!(read("smtp://ada:secret@127.0.0.1?tls=none").is_ok());
        assert!(refused("smtp://ada:secret@mail.example.org?tls=none").contains("not sent in clear"));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_secret() {
        for url in [
            "ada:sesame@mail.example.org",
            "http://ada:sesame@mail.example.org",
            "smtp://ada:sesame@mail.example.org/path",
            "smtp://ada:sesame@mail.example.org?tls=opportunistic",
            "smtps://ada:sesame@mail.example.org?tls=none",
            "smtp://ada:sesame%FF@mail.example.org",
            "smtp://ada:sesame%4@mail.example.org",
            "smtp://:sesame@mail.example.org",
            "smtp://sesame@mail.example.org",
            "smtp://ada:sesame@",
            "smtp://ada:sesame@host:99999",
        ] {
            let said = refused(url);
            assert!(said.starts_with("notify.smtp_url: "), "{said}");
            assert!(!said.contains("sesame"), "{said}");
        }
    }
}
