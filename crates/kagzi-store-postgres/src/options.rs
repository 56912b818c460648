//! What can be chosen about the connection to a database.

use std::{path::PathBuf, time::Duration};

use kagzi_store::StoreError;
use tokio_postgres::config::{Config, Host, SslMode, TargetSessionAttrs};

/// Whether and how the connection is protected. In a URL: `sslmode` and `sslrootcert`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    /// `sslmode=disable`, and the default: for a socket, a private network or a TLS proxy.
    Off,
    /// `sslmode=require`: encrypted, to whoever answers.
    Encrypt,
    /// `sslmode=verify-full`: encrypted, to the host that the URL names. Certificates come from the file, or
    /// else from the system.
    Verify { root: Option<PathBuf> },
}

/// Settings of one store.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Servers ring each other with NOTIFY. Off: they find each other's work by polling alone, and nothing is
    /// left in a session between transactions, as a pooler in transaction mode (PgBouncer) requires.
    pub notify: bool,
    /// A pooler in transaction mode stands in between: every statement goes unnamed, and nothing is left in a
    /// session. Implies that `notify` is off. In a URL: `?pgbouncer=true`.
    pub pooler: bool,
    pub tls: Tls,
    /// How often to look for other servers' work unasked. None = 5 s with `notify`, 1 s without.
    pub poll_ms: Option<i64>,
    /// The longest a statement, or a wait for a lock, may take before the batch fails.
    pub statement_timeout: Duration,
    /// The longest that connecting may take.
    pub connect_timeout: Duration,
    /// Connections for reading; one more writes, and with `notify` one listens and one rings.
    pub readers: usize,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        PostgresOptions {
            notify: true,
            pooler: false,
            tls: Tls::Off,
            poll_ms: None,
            statement_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            readers: 4,
        }
    }
}

impl PostgresOptions {
    /// The interval of the poll underneath.
    pub fn poll_ms(&self) -> i64 {
        self.poll_ms.unwrap_or(if self.notify { 5000 } else { 1000 })
    }
}

/// Reads a `postgres://` URL or a `host=… dbname=…` text, and with it the options as the URL has them. The
/// message of an error never holds the password.
pub fn parse(url: &str, options: &PostgresOptions) -> Result<(Config, PostgresOptions), StoreError> {
    let mut options = options.clone();
    let url = take_own(url, &mut options)?;
    if options.pooler {
        options.notify = false;
    }
    Ok((configure(&url, &options)?, options))
}

/// Takes our own options out of a URL; the others are PostgreSQL's.
fn take_own(url: &str, options: &mut PostgresOptions) -> Result<String, StoreError> {
    let Some((base, query)) = url.split_once('?') else { return Ok(url.to_owned()) };
    let mut theirs = Vec::new();
    let mut root = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=').unwrap_or((pair, "")) {
            ("notify", value) => options.notify = switch("notify", value)?,
            ("pgbouncer", value) => options.pooler = switch("pgbouncer", value)?,
            ("sslmode", "disable" | "prefer") => options.tls = Tls::Off,
            ("sslmode", "require") => options.tls = Tls::Encrypt,
            ("sslmode", "verify-full") => options.tls = Tls::Verify { root: None },
            ("sslmode", value) => {
                let known = "disable, require or verify-full";
                return Err(StoreError::Unavailable(format!("sslmode={value} is not known; write {known}")));
            }
            ("sslrootcert", path) => root = Some(PathBuf::from(path)),
            _ => theirs.push(pair),
        }
    }
    if root.is_some() {
        // As with libpq, naming a certificate means that it is to be verified.
        options.tls = Tls::Verify { root };
    }
    Ok(if theirs.is_empty() { base.to_owned() } else { format!("{base}?{}", theirs.join("&")) })
}

fn switch(name: &str, value: &str) -> Result<bool, StoreError> {
    match value {
        "on" | "true" => Ok(true),
        "off" | "false" => Ok(false),
        _ => {
            let why = format!("the database URL says {name}={value}; write {name}=on or {name}=off");
            Err(StoreError::Unavailable(why))
        }
    }
}

fn configure(url: &str, options: &PostgresOptions) -> Result<Config, StoreError> {
    let mut config: Config = url
        .parse()
        .map_err(|error| StoreError::Unavailable(format!("could not read the database URL: {error}")))?;
    let (hosts, ports) =
        (config.get_hosts().len().max(config.get_hostaddrs().len()), config.get_ports().len());
    if ports > 1 && ports != hosts {
        let why = format!(
            "the database URL has {hosts} hosts and {ports} ports; write one port for all, or one for each"
        );
        return Err(StoreError::Unavailable(why));
    }
    config.ssl_mode(match options.tls {
        Tls::Off => SslMode::Disable,
        Tls::Encrypt | Tls::Verify { .. } => SslMode::Require,
    });
    if config.get_application_name().is_none() {
        config.application_name("kagzi");
    }
    if config.get_hosts().len() > 1 && config.get_target_session_attrs() == TargetSessionAttrs::Any {
        // Several hosts are one cluster: find the primary among them, also after a failover.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    config.connect_timeout(options.connect_timeout);
    // A peer that vanished without a word is noticed after half a minute, not after two hours.
    config.keepalives_idle(Duration::from_secs(15));
    config.keepalives_interval(Duration::from_secs(5));
    config.keepalives_retries(3);
    config.tcp_user_timeout(Duration::from_secs(30));
    Ok(config)
}

/// The same connection to each host of the URL by itself, in its order.
pub fn each_host(config: &Config) -> Vec<Config> {
    let count = config.get_hosts().len().max(config.get_hostaddrs().len());
    if count < 2 {
        return vec![config.clone()];
    }
    (0..count).map(|at| only_host(config, at)).collect()
}

fn only_host(config: &Config, at: usize) -> Config {
    let mut one = Config::new();
    match config.get_hosts().get(at) {
        Some(Host::Tcp(name)) => drop(one.host(name)),
        Some(Host::Unix(path)) => drop(one.host_path(path)),
        None => {}
    }
    if let Some(address) = config.get_hostaddrs().get(at) {
        one.hostaddr(*address);
    }
    // One port is for all of them.
    if let Some(port) = config.get_ports().get(at).or(config.get_ports().first()) {
        one.port(*port);
    }
    config.get_user().map(|user| one.user(user));
    config.get_password().map(|password| one.password(password));
    config.get_dbname().map(|name| one.dbname(name));
    config.get_options().map(|options| one.options(options));
    config.get_application_name().map(|name| one.application_name(name));
    config.get_connect_timeout().map(|timeout| one.connect_timeout(*timeout));
    config.get_tcp_user_timeout().map(|timeout| one.tcp_user_timeout(*timeout));
    config.get_keepalives_interval().map(|interval| one.keepalives_interval(interval));
    config.get_keepalives_retries().map(|retries| one.keepalives_retries(retries));
    one.keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding());
    one
}

/// Where the database is, for people: never with the password.
pub fn describe(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".into(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    format!("postgres://{host}:{port}/{}", config.get_dbname().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<Config, StoreError> {
        parse(url, &PostgresOptions::default()).map(|(config, _)| config)
    }

    #[test]
    fn our_own_options_are_taken_out_of_the_url() {
        let read = |url: &str| parse(url, &PostgresOptions::default());

        let (config, options) = read("postgres://me@db/kagzi?notify=off&connect_timeout=3").unwrap();
        assert_eq!((options.notify, options.pooler, config.get_dbname()), (false, false, Some("kagzi")));
        let (_, options) = read("postgres://me@db/kagzi?pgbouncer=true").unwrap();
        assert_eq!((options.notify, options.pooler), (false, true));
        let error = read("postgres://me:hunter2@db/kagzi?notify=maybe").unwrap_err().to_string();
        assert!(error.contains("notify=on") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn the_usual_forms_are_read() {
        for url in [
            "postgres://kagzi:secret@db.example:5433/kagzi",
            "postgresql://kagzi@db.example:5433/kagzi?sslmode=disable&connect_timeout=3",
            "host=db.example port=5433 dbname=kagzi user=kagzi password=secret",
        ] {
            assert_eq!(describe(&read(url).unwrap()), "postgres://db.example:5433/kagzi");
        }
        let socket = read("postgres://kagzi@%2Frun%2Fpostgresql/kagzi").unwrap();
        assert_eq!(describe(&socket), "postgres:///run/postgresql:5432/kagzi");
    }

    #[test]
    fn several_hosts_mean_find_the_primary() {
        let config = read("postgres://kagzi@one,two/kagzi").unwrap();

        assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }

    #[test]
    fn each_host_is_the_same_connection_to_another_place() {
        let url = "postgres://me:secret@one:5433,two:5434/kagzi?options=-c%20jit%3Doff&keepalives_idle=7";
        let config = read(url).unwrap();

        let each = each_host(&config);

        let places: Vec<String> = each.iter().map(describe).collect();
        assert_eq!(places, ["postgres://one:5433/kagzi", "postgres://two:5434/kagzi"]);
        for (one, place) in each.iter().zip(["one:5433", "two:5434"]) {
            let alone =
                read(&format!("postgres://me:secret@{place}/kagzi?options=-c%20jit%3Doff&keepalives_idle=7"));
            let mut alone = alone.unwrap();
            alone.target_session_attrs(TargetSessionAttrs::ReadWrite);
            assert_eq!(*one, alone);
        }
        assert!(read("host=one,two,three port=1,2 dbname=kagzi").is_err());
        let one_port = each_host(&read("host=one,two port=5433 dbname=kagzi").unwrap());
        assert_eq!(describe(&one_port[1]), "postgres://two:5433/kagzi");
    }

    #[test]
    fn tls_is_read_as_everywhere_and_never_ignored() {
        let tls = |query: &str| {
            let url = format!("postgres://kagzi@db.example/kagzi?{query}");
            parse(&url, &PostgresOptions::default()).map(|(_, options)| options.tls)
        };

        assert_eq!(tls("sslmode=disable"), Ok(Tls::Off));
        assert_eq!(tls("sslmode=require"), Ok(Tls::Encrypt));
        assert_eq!(tls("sslmode=verify-full"), Ok(Tls::Verify { root: None }));
        let file = Tls::Verify { root: Some("/etc/ca.pem".into()) };
        assert_eq!(tls("sslrootcert=/etc/ca.pem&sslmode=verify-full"), Ok(file));
        assert!(tls("sslmode=verify-ca").is_err());
    }

    #[test]
    fn a_bad_url_is_refused_without_its_password() {
        let error = read("postgres://kagzi:hunter2@db.example/kagzi?colour=red").unwrap_err().to_string();

        assert!(!error.contains("hunter2"), "{error}");
    }
}
