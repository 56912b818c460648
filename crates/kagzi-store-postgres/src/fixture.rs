//! A throw-away PostgreSQL for tests: one per test process, from the system's own binaries, as root or not.
//! `TEST_DATABASE_URL` names a server to use instead; its user must be allowed to create databases.

mod pair;

use std::{
    io::{BufRead, Write},
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio_postgres::{Config, NoTls};

pub use pair::Pair;

/// Runs the database and does what each line says: `crash` (without a warning, then again), `restart`
/// (politely, as for an update), `die` (without a warning), `stop` and `start`. When the test process ends,
/// however it ends, its end of the pipe closes, and the database goes with it. Only the process that was
/// started here is ended, by its id.
const KEEPER: &str = r#"
start() {
    "$1"/postgres -D "$2/data" -k "$2" </dev/null >>"$2/log" 2>&1 &
    postgres=$!
}
end() {
    kill -"$1" "$postgres"
    wait "$postgres"
}
start "$1" "$2"
while read -r word; do
    case $word in
        crash) end QUIT; start "$1" "$2" ;;
        restart) end INT; start "$1" "$2" ;;
        die) end QUIT ;;
        stop) end INT ;;
        start) start "$1" "$2" ;;
    esac
done
kill -QUIT "$postgres" 2>/dev/null
wait "$postgres"
rm -rf "$2"
"#;

/// Small, but honest: fsync stays on.
const SETTINGS: &str = "
shared_buffers = 64MB
max_connections = 200
fsync = on
synchronous_commit = on
max_wal_size = 512MB
autovacuum_naptime = 5s
log_min_messages = warning
listen_addresses = ''
";

/// A server of this test process.
pub struct Server {
    url: Config,
    /// Ours, and not one that was named.
    keeper: Option<Child>,
}

impl Server {
    /// Starts one that no other test uses, so that it may be crashed.
    pub fn private() -> Server {
        start(|_| ())
    }

    /// Starts one that can only be read, as a replica.
    pub fn replica() -> Server {
        start(|data| std::fs::write(data.join("standby.signal"), "").expect("the folder can be written"))
    }

    /// Starts one that listens on loopback and takes nothing but TLS there, with a certificate for
    /// `localhost`. The file of the authority that signed it is the second part.
    pub fn tls() -> (Server, PathBuf) {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.expect("loopback has free ports").port();
        let mut authority = PathBuf::new();
        let mut server = start(|data| {
            authority = make_certificates(data);
            let conf = data.join("postgresql.conf");
            let old = std::fs::read_to_string(&conf).expect("initdb wrote its settings");
            let ours = format!("listen_addresses = '127.0.0.1'\nport = {port}\nssl = on\n");
            std::fs::write(&conf, old + &ours).expect("the settings can be written");
            std::fs::write(data.join("pg_hba.conf"), "hostssl all all 127.0.0.1/32 trust\n")
                .expect("the settings can be written");
        });
        server.url = Config::new();
        server.url.host("localhost").port(port).user("postgres").dbname("postgres");
        (server, authority)
    }

    /// The URL of its first database.
    pub fn url(&self) -> String {
        to_text(&self.url)
    }

    /// Ends the server without a warning, and starts it again.
    pub fn crash(&mut self) {
        self.tell("crash");
    }

    /// Ends the server as an operator does, and starts it again.
    pub fn restart(&mut self) {
        self.tell("restart");
    }

    /// Ends the server without a warning; it stays away.
    fn die(&mut self) {
        self.tell("die");
    }

    /// Ends the server until [`Server::start`].
    pub fn stop(&mut self) {
        self.tell("stop");
    }

    pub fn start(&mut self) {
        self.tell("start");
    }

    fn tell(&mut self, word: &str) {
        let keeper = self.keeper.as_mut().expect("only a private server may be hurt");
        let line = writeln!(keeper.stdin.as_mut().expect("its input is ours"), "{word}");
        line.expect("the keeper lives as long as its server");
    }
}

/// A fresh database on the server of this test process; a URL that [`crate::PostgresStore::open`] reads.
pub async fn database() -> String {
    create("template1").await
}

/// A copy of a database of this test process that nobody is connected to.
pub async fn copy(url: &str) -> String {
    let config: Config = url.parse().expect("a URL of this fixture");
    create(config.get_dbname().expect("a URL of this fixture names its database")).await
}

async fn create(template: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("kagzi_test_{}_{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
    let mut config = server().url.clone();
    // More than one at a time fails: the template must not be in use by another copy.
    static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = ONE_AT_A_TIME.lock().await;
    execute(&config, &format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
    config.dbname(&name);
    to_text(&config)
}

/// Runs plain SQL, as an operator would.
pub async fn sql(url: &str, text: &str) -> Vec<String> {
    let config: Config = url.parse().expect("a URL of this fixture");
    execute(&config, text).await
}

async fn execute(config: &Config, text: &str) -> Vec<String> {
    let (client, connection) = config.connect(NoTls).await.expect("the test database answers");
    let driving = tokio::spawn(connection);
    let rows = client.simple_query(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    driving.abort();
    rows.into_iter()
        .filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at).unwrap_or("NULL")).collect::<Vec<_>>().join("|"))
            }
            _ => None,
        })
        .collect()
}

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| match std::env::var("TEST_DATABASE_URL") {
        Ok(url) => Server { url: url.parse().expect("TEST_DATABASE_URL is a database URL"), keeper: None },
        Err(_) => start(|_| ()),
    })
}

fn start(prepare: impl FnOnce(&Path)) -> Server {
    let folder = own_folder();
    let made = as_user(&binaries().join("initdb"), &folder)
        .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync", "-D"])
        .arg(folder.join("data"))
        .output()
        .expect("initdb starts");
    assert!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr));
    let conf = folder.join("data/postgresql.conf");
    let old = std::fs::read_to_string(&conf).expect("initdb wrote its settings");
    std::fs::write(&conf, old + SETTINGS).expect("the settings can be written");
    prepare(&folder.join("data"));
    serve(&folder)
}

/// A new folder for a server's data, owned by the user that it runs as: PostgreSQL refuses to run as root.
fn own_folder() -> PathBuf {
    let folder = tempfile::Builder::new().prefix("kagzi-pg-").tempdir().expect("a temporary folder").keep();
    if let Some((uid, gid)) = postgres_user() {
        chown(&folder, Some(uid), Some(gid)).expect("root may give a folder away");
    }
    folder
}

/// A server on the data in this folder.
fn serve(folder: &Path) -> Server {
    let keeper = as_user(Path::new("/bin/sh"), folder)
        .args(["-c", KEEPER, "keeper"])
        .arg(binaries())
        .arg(folder)
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell starts");
    let mut url = Config::new();
    url.host_path(folder).user("postgres").dbname("postgres");
    wait_until_it_answers(folder);
    Server { url, keeper: Some(keeper) }
}

/// A program in a folder of its own, as a user that is not root.
pub(crate) fn as_user(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    if let Some((uid, gid)) = postgres_user() {
        command.uid(uid).gid(gid);
    }
    command.current_dir(folder);
    command
}

fn wait_until_it_answers(folder: &Path) {
    let began = Instant::now();
    // The last line of the file says `ready` once connections are accepted, on a standby `standby`.
    let ready = || {
        let pid_file = std::fs::read(folder.join("data/postmaster.pid")).unwrap_or_default();
        pid_file.lines().map_while(Result::ok).any(|line| matches!(line.trim(), "ready" | "standby"))
    };
    while !ready() {
        let log = || std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        assert!(began.elapsed() < Duration::from_secs(30), "PostgreSQL did not start: {}", log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An authority, and a certificate for `localhost` that it signed, where PostgreSQL looks for them.
fn make_certificates(data: &Path) -> PathBuf {
    let openssl = |arguments: &str| {
        let made =
            as_user(Path::new("openssl"), data).args(arguments.split(' ')).output().expect("openssl starts");
        assert!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
    };
    std::fs::write(data.join("san"), "subjectAltName=DNS:localhost").expect("the folder can be written");
    openssl("req -x509 -newkey rsa:2048 -nodes -days 30 -keyout ca.key -out ca.crt -subj /CN=kagzi-test");
    openssl("req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost");
    openssl(
        "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -extfile san -out \
         server.crt",
    );
    data.join("ca.crt")
}

/// Where the binaries are: the newest version that Debian's layout has, or the path.
fn binaries() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok())
        .max()
        .map(|version| PathBuf::from(format!("/usr/lib/postgresql/{version}/bin")));
    let on_path = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).find(|folder| folder.join("initdb").exists())
    };
    newest.filter(|folder| folder.join("initdb").exists()).or_else(on_path).expect(
        "PostgreSQL's binaries are installed (apt-get install postgresql), or TEST_DATABASE_URL is set",
    )
}

/// The user to run as, when we are root: `postgres`, or else `nobody`.
pub(crate) fn postgres_user() -> Option<(u32, u32)> {
    let root = std::fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
    if !root {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let find = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Some(find("postgres").or_else(|| find("nobody")).expect("there is a user that is not root"))
}

fn to_text(config: &Config) -> String {
    use tokio_postgres::config::Host;
    let host = match config.get_hosts().first() {
        Some(Host::Unix(path)) => percent(&path.display().to_string()),
        Some(Host::Tcp(name)) => name.clone(),
        None => "localhost".into(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let mut login = percent(config.get_user().unwrap_or("postgres"));
    if let Some(password) = config.get_password() {
        login += &format!(":{}", percent(&String::from_utf8_lossy(password)));
    }
    format!("postgres://{login}@{host}:{port}/{}", percent(config.get_dbname().unwrap_or("postgres")))
}

/// Text as a part of a URL.
pub(crate) fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}
