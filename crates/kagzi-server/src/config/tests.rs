use std::time::Duration;

use super::*;

fn load(
    file: &str,
    environment: &[(&str, &str)],
    flags: &[(&str, &str, &str)],
) -> Result<Loaded, ConfigError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kagzi.toml");
    std::fs::write(&path, file).unwrap();
    Loaded::load(Sources {
        file: Some(path),
        environment: environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        flags: flags
            .iter()
            .map(|(flag, key, value)| FlagValue {
                flag: (*flag).into(),
                key: (*key).into(),
                value: (*value).into(),
            })
            .collect(),
        ..Sources::default()
    })
}

/// The only problem, without the directory that the test made.
fn problem(file: &str, environment: &[(&str, &str)]) -> String {
    let error = load(file, environment, &[]).unwrap_err();
    assert_eq!(error.problems.len(), 1, "{error}");
    let text = error.to_string();
    text.split_once("/kagzi.toml").map_or(text.clone(), |(_, rest)| format!("kagzi.toml{rest}"))
}

#[test]
fn nothing_configured_is_the_engines_own_defaults() {
    let loaded = Loaded::load(Sources::default()).unwrap();

    assert_eq!(loaded.config.settings(), Settings::default());
    assert_eq!(loaded.config.store.database(), crate::DatabaseSettings::default());
}

#[cfg(not(feature = "turso"))]
#[test]
fn a_store_that_was_not_built_in_names_the_cargo_feature() {
    let problem = problem("", &[("KAGZI__STORE__URL", "turso:a.db")]);

    assert!(problem.contains("cargo feature `turso`"), "{problem}");
}

#[test]
fn flags_win_over_variables_and_variables_over_the_file() {
    let file = "[worker]\nheartbeat_interval = \"1s\"\nlease = \"20s\"\nstale_after = \"12s\"\n";
    let environment = [("KAGZI__WORKER__LEASE", "40s"), ("KAGZI__WORKER__STALE_AFTER", "15s")];
    let loaded = load(file, &environment, &[("--set", "worker.lease", "1m")]).unwrap();

    let worker = &loaded.config.worker;
    assert_eq!(worker.heartbeat_interval, Duration::from_secs(1));
    assert_eq!(worker.stale_after, Duration::from_secs(15));
    assert_eq!(worker.lease, Duration::from_secs(60));
    assert!(matches!(loaded.origin("worker.heartbeat_interval"), Origin::File { line: 2, .. }));
    assert_eq!(loaded.origin("worker.stale_after").to_string(), "KAGZI__WORKER__STALE_AFTER");
    assert_eq!(loaded.origin("worker.lease").to_string(), "--set");
    assert_eq!(loaded.origin("server.address"), Origin::Default);
}

#[test]
fn older_names_are_understood_and_the_rule_wins_over_them() {
    let seeds = [
        ("KAGZI_SCHEDULER_INTERVAL_SECS", "7"),
        ("KAGZI_SCHEDULER_BATCH_SIZE", "50"),
        ("KAGZI_SCHEDULER_MAX_WORKFLOWS_PER_TICK", "500"),
        ("KAGZI__SCHEDULER__BATCH_SIZE", "60"),
        ("KAGZI__PAYLOAD__WARN_THRESHOLD_BYTES", "1000"),
        ("KAGZI__PAYLOAD__MAX_SIZE_BYTES", "2_000"),
        ("KAGZI_STORE", "sqlite:a.db"),
        ("KAGZI_ADDRESS", "is the client's"),
        ("KAGZI__STORE__NOTIFY", ""),
    ];
    let config = load("", &seeds, &[]).unwrap().config;

    assert_eq!((config.scheduler.interval_secs, config.scheduler.batch_size), (7, 60));
    assert_eq!(config.scheduler.max_workflows_per_tick, 500);
    assert_eq!((config.payload.warn_threshold_bytes, config.payload.max_size_bytes), (1000, 2000));
    assert_eq!(config.store.url, Some(crate::StoreUrl::Sqlite("a.db".into())));
    assert!(config.store.notify, "an empty variable is not set");
}

#[test]
fn unknown_keys_are_refused_with_their_place_and_a_suggestion() {
    assert_eq!(
        problem("[worker]\n\nhartbeat_interval = \"3s\"\n", &[]),
        "kagzi.toml:3: worker.hartbeat_interval: there is no such key; did you mean \
         worker.heartbeat_interval?"
    );
    assert_eq!(
        problem("[server]\nlease = \"30s\"\n", &[]),
        "kagzi.toml:2: server.lease: there is no such key; did you mean worker.lease?"
    );
    assert_eq!(
        problem("[wroker]\nlease = \"30s\"\n", &[]),
        "kagzi.toml:1: [wroker]: there is no such section; did you mean [worker]?"
    );
    assert!(problem("address = \"127.0.0.1:1\"\n", &[]).contains("keys stand in a section"));
    assert_eq!(
        problem("", &[("KAGZI__PAYLOAD__MAX_SIZE", "1")]),
        "KAGZI__PAYLOAD__MAX_SIZE: payload.max_size: there is no such key; did you mean \
         payload.max_size_bytes?"
    );
    assert_eq!(
        problem("", &[("KAGZI_SCHEDULER_INTERVAL_SEC", "1")]),
        "KAGZI_SCHEDULER_INTERVAL_SEC: scheduler.interval_sec: there is no such key; did you mean \
         scheduler.interval_secs?"
    );
    assert!(problem("", &[("KAGZI__COLOUR", "red")]).contains("kagzi config example"));
}

#[test]
fn wrong_types_are_refused_with_what_was_expected() {
    assert_eq!(
        problem("[store]\nnotify = \"no\"\n", &[]),
        "kagzi.toml:2: store.notify: expected true or false, got the string \"no\""
    );
    assert_eq!(
        problem("[worker]\nlease = 30\n", &[]),
        "kagzi.toml:2: worker.lease: expected a duration with a unit, such as \"500ms\", \"30s\", \"10m\" or \
         \"90d\", got the integer 30"
    );
    assert_eq!(
        problem("", &[("KAGZI__STORE__READERS", "many")]),
        "KAGZI__STORE__READERS: store.readers: expected a whole number, got 'many'"
    );
    assert!(problem("[server]\naddress = \"nowhere\"\n", &[]).contains("an IP address and a port"));
    assert!(problem("[log]\nformat = \"xml\"\n", &[]).contains("expected \"text\" or \"json\""));
    assert!(problem("[log\n", &[]).starts_with("kagzi.toml:1: TOML: "));
}

#[test]
fn senseless_values_are_refused_by_name() {
    let cases = [
        ("[worker]\nheartbeat_interval = \"0s\"", "worker.heartbeat_interval: it must be above zero"),
        ("[worker]\nstale_after = \"4s\"", "worker.stale_after: it is 4s and must be at least twice"),
        (
            "[worker]\nlease = \"9s\"",
            "worker.lease: it is 9s and must not be shorter than worker.stale_after",
        ),
        (
            "[payload]\nmax_size_bytes = 1000",
            "payload.warn_threshold_bytes: it is 1048576 and must not be above",
        ),
        ("[payload]\nmax_size_bytes = 0", "payload.max_size_bytes: it must be above zero"),
        ("[scheduler]\nbatch_size = 0", "scheduler.batch_size: it must be above zero"),
        ("[store]\nstatement_timeout = \"0s\"", "store.statement_timeout: it must be above zero"),
        ("[store]\nconnect_timeout = \"0s\"", "store.connect_timeout: it must be above zero"),
        ("[store]\npoll_interval = \"0s\"", "store.poll_interval: it must be above zero"),
        ("[retention]\nfinished_runs = \"119s\"", "retention.finished_runs: it must be at least 2m"),
        ("[retention]\nfinished_runs = \"40000d\"", "retention.finished_runs: it must be at most 36500d"),
        ("[retry]\njitter = 3.0", "retry.jitter: "),
        ("[retry]\nmaximum_attempts = 0", "retry.maximum_attempts: "),
    ];

    for (file, expected) in cases {
        let error = load(file, &[], &[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn every_problem_is_told_at_once() {
    let file = "[worker]\nlease = 30\ncolour = \"red\"\n[nonsense]\n";
    let error = load(file, &[("KAGZI__LOG__FORMAT", "xml")], &[]).unwrap_err();

    assert_eq!(error.problems.len(), 4, "{error}");
}

#[test]
fn a_named_file_must_exist_and_a_default_place_need_not() {
    let missing = Sources { file: Some("/nonexistent/kagzi.toml".into()), ..Sources::default() };
    assert!(Loaded::load(missing).unwrap_err().to_string().contains("could not read the file"));

    let nowhere = Sources { places: vec!["/nonexistent/kagzi.toml".into()], ..Sources::default() };
    assert_eq!(Loaded::load(nowhere).unwrap().file, None);
}

#[test]
fn a_password_is_neither_shown_nor_repeated_in_a_message() {
    let variables = [("KAGZI__STORE__URL", "postgres://me:hunter2@db/kagzi")];
    if cfg!(feature = "postgres") {
        let shown = format!("{:?}", load("", &variables, &[]).unwrap().values());
        assert!(shown.contains("me:***@db") && !shown.contains("hunter2"), "{shown}");
    }
    for url in ["mysql://me:hunter2@db/kagzi", "host=db user=me password=hunter2"] {
        let refused = load("", &[("KAGZI__STORE__URL", url)], &[]).unwrap_err();
        assert!(!refused.to_string().contains("hunter2"), "{refused}");
    }
    let collector = [("KAGZI__TRACE__OTLP_ENDPOINT", "https://me:hunter2@traces.example:4317/v1?a=b")];
    let shown = format!("{:?}", load("", &collector, &[]).unwrap().values());
    assert!(
        shown.contains("https://***@traces.example:4317/v1?a=b") && !shown.contains("hunter2"),
        "{shown}"
    );
}

#[test]
fn the_example_with_everything_uncommented_is_valid_and_says_the_defaults() {
    let uncommented: String = example()
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.split_once(" = ").is_some_and(|(key, _)| !key.contains(' ')) => rest,
            Some(_) | None => line,
        })
        .filter(|line| !line.starts_with("url ="))
        .map(|line| format!("{line}\n"))
        .collect();
    let loaded = load(&uncommented, &[], &[]).unwrap();

    let set = loaded.values().iter().filter(|value| value.origin != Origin::Default).count();
    assert_eq!(set, Config::keys().len() - 1, "every key but store.url stands in the example");
    // Keys without a default stand there with what holds when they are not set.
    let store = StoreSection { poll_interval: None, ..loaded.config.store.clone() };
    let trace = TraceSection { otlp_endpoint: None, ..loaded.config.trace.clone() };
    let notify = NotifySection::default();
    let said = Config { store, trace, notify, retry: RetrySection::default(), ..loaded.config };
    assert_eq!(said, Config::default());
}

#[test]
fn the_documentation_lists_every_key_as_it_is() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (begin, end) = ("<!-- generated: keys -->\n", "\n<!-- end of generated keys -->");
    let (before, rest) = document.split_once(begin).expect("the page has its first mark");
    let (keys, after) = rest.split_once(end).expect("the page has its last mark");
    if std::env::var_os("KAGZI_WRITE_DOCS").is_some() {
        std::fs::write(path, format!("{before}{begin}{}{end}{after}", page())).unwrap();
        return;
    }

    assert_eq!(
        keys,
        page(),
        "write it anew with: KAGZI_WRITE_DOCS=1 cargo test -p kagzi-server documentation"
    );
}

/// What receivers are configured with is secret, wherever it is shown.
#[test]
fn secrets_of_receivers_are_never_shown() {
    let mut config = Config::default();
    for (key, value) in [
        ("notify.smtp_url", "smtps://ada:sesame@mail.example.org"),
        ("notify.webhook_url", "https://hooks.example.org/services/sesame"),
        ("notify.webhook_secret", "sesame-sesame-sesame"),
        ("notify.webhook_routing_key", "sesame"),
    ] {
        config.set(key, &Raw::Text(value.into())).unwrap();
    }

    let shown: Vec<String> = config.values().iter().map(|(_, value)| value.to_string()).collect();

    assert!(!shown.iter().any(|value| value.contains("sesame")), "{shown:?}");
    assert!(shown.iter().any(|value| value.contains("hooks.example.org/***")), "{shown:?}");
    assert!(!format!("{config:?}").contains("sesame"), "{config:?}");
    assert!(!format!("{:?}", config.notify.settings()).contains("sesame"));
}

#[cfg(not(feature = "notify"))]
#[test]
fn receivers_that_this_build_cannot_reach_are_refused_by_the_name_of_the_feature() {
    let file = "[notify]\nsmtp_url = \"smtp://localhost\"\nfrom = \"kagzi@example.org\"\n";

    let problem = problem(file, &[]);

    assert!(problem.contains("cargo feature `notify`"), "{problem}");
}

#[test]
fn receivers_that_could_never_be_told_anything_are_refused() {
    for (file, said) in [
        ("[notify]\nsmtp_url = \"smtp://localhost\"\n", "notify.from: it must be set"),
        ("[notify]\nfrom = \"kagzi@example.org\"\n", "notify.smtp_url: it must be set"),
        (
            "[notify]\nwebhook_secret = \"0123456789abcdef\"\n",
            "notify.webhook_url: it or notify.webhook_hosts",
        ),
        ("[notify]\nconsole_url = \"javascript:alert(1)\"\n", "notify.console_url: it must be an address"),
        (
            "[notify]\nconsole_url = \"https://a.example/\\\"x\"\n",
            "notify.console_url: it must be an address",
        ),
    ] {
        let problem = problem(file, &[]);

        assert!(problem.contains(said.split(": ").nth(1).unwrap()), "{problem}");
        assert!(problem.contains(said.split(": ").next().unwrap()), "{problem}");
    }
}

#[cfg(feature = "notify")]
#[test]
fn receivers_are_checked_before_the_server_starts() {
    for (file, said) in [
        ("smtp_url = \"http://localhost\"\nfrom = \"kagzi@example.org\"", "smtps:// or smtp://"),
        ("smtp_url = \"smtp://localhost\"\nfrom = \"nobody\"", "it is no address"),
        ("webhook_url = \"ftp://localhost/\"", "https:// or http://"),
        ("webhook_url = \"https://localhost/\"\nwebhook_secret = \"short\"", "at least 16 characters"),
        ("webhook_url = \"https://localhost/\"\nca_file = \"/nowhere/ca.pem\"", "could not read"),
    ] {
        let problem = problem(&format!("[notify]\n{file}\n"), &[]);

        assert!(problem.contains(said), "{problem}");
    }
    let good = "[notify]\nsmtp_url = \"smtp://localhost\"\nfrom = \"Kagzi <kagzi@example.org>\"\n\
                webhook_url = \"https://localhost/hook\"\nwebhook_secret = \"0123456789abcdef\"\n";
    assert!(load(good, &[], &[]).is_ok());
}
