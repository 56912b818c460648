//! A throw-away PgBouncer in transaction mode, in front of the fixture's database.

use std::{
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use tokio_postgres::{Config, config::Host};

use crate::fixture::{self, as_user, percent, postgres_user};

/// Ends with its input, as the database does.
const KEEPER: &str = r#"
"$1" -q "$2/pgbouncer.ini" </dev/null >>"$2/log" 2>&1 &
bouncer=$!
read -r _
kill -TERM "$bouncer"
wait "$bouncer"
rm -rf "$2"
"#;

/// A pooler of this test process.
pub struct Bouncer {
    folder: PathBuf,
    /// Its end of the pipe closes with this.
    _keeper: Child,
}

impl Bouncer {
    /// Starts one in front of the server that a URL of the fixture names. So few connections that they are
    /// shared.
    pub fn start(url: &str) -> Bouncer {
        let config: Config = url.parse().expect("a URL of the fixture");
        let host = match config.get_hosts().first() {
            Some(Host::Unix(path)) => path.display().to_string(),
            Some(Host::Tcp(name)) => name.clone(),
            None => "localhost".into(),
        };
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let user = config.get_user().unwrap_or("postgres");
        let password =
            config.get_password().map(|password| format!(" password={}", String::from_utf8_lossy(password)));
        let folder =
            tempfile::Builder::new().prefix("kagzi-pool-").tempdir().expect("a temporary folder").keep();
        // Connections of a database whose test is over go soon: each test has its own, and the server has 200
        // in all.
        let settings = format!(
            "[databases]\n* = host={host} port={port} user={user}{}\n
             [pgbouncer]\nlisten_addr =\nlisten_port = 6432\nunix_socket_dir = {}\nauth_type = any\n\
             pool_mode = transaction\nmax_client_conn = 500\ndefault_pool_size = 6\n\
             server_idle_timeout = 2\n",
            password.unwrap_or_default(),
            folder.display(),
        );
        std::fs::write(folder.join("pgbouncer.ini"), settings).expect("the folder can be written");
        if let Some((uid, gid)) = postgres_user() {
            chown(&folder, Some(uid), Some(gid)).expect("root may give a folder away");
        }
        let keeper = as_user(Path::new("/bin/sh"), &folder)
            .args(["-c", KEEPER, "keeper"])
            .arg(binary())
            .arg(&folder)
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell starts");
        let began = Instant::now();
        while !folder.join(".s.PGSQL.6432").exists() {
            let log = || std::fs::read_to_string(folder.join("log")).unwrap_or_default();
            assert!(began.elapsed() < Duration::from_secs(30), "PgBouncer did not start: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        Bouncer { folder, _keeper: keeper }
    }

    /// The same database, through the pooler.
    pub fn url(&self, direct: &str) -> String {
        let config: Config = direct.parse().expect("a URL of the fixture");
        let database = config.get_dbname().expect("a URL of the fixture names its database");
        let host = percent(&self.folder.display().to_string());
        let user = percent(config.get_user().unwrap_or("postgres"));
        format!("postgres://{user}@{host}:6432/{}?pgbouncer=true", percent(database))
    }
}

/// The pooler of this test process, and a fresh database: its URL through the pooler, and the direct one.
pub async fn database() -> (String, String) {
    static BOUNCER: std::sync::OnceLock<Bouncer> = std::sync::OnceLock::new();
    let direct = fixture::database().await;
    let bouncer = BOUNCER.get_or_init(|| Bouncer::start(&direct));
    (bouncer.url(&direct), direct)
}

fn binary() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = places.map(|place| place.join("pgbouncer")).find(|file| file.exists());
    found.expect("PgBouncer is installed (apt-get install pgbouncer)")
}
