//! A PostgreSQL server for tests, and a schema of its own for each.

use postgres::{Client, Config, NoTls};
use std::{
    process::Command,
    str::FromStr,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

/// An empty schema, dropped with this.
pub(crate) struct Schema {
    server: &'static str,
    name: String,
}

impl Schema {
    /// A fresh one; none when there is no server, which the test says and ends. With `CI=true` that is a failure instead.
    pub(crate) fn fresh() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let server = server()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let since = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let name = format!("purvey_{}_{number}_{since}", std::process::id());
        let schema = Self { server, name };
        schema.execute(&format!("CREATE SCHEMA {}", schema.name));
        Some(schema)
    }

    /// The address of the store in it.
    pub(crate) fn url(&self) -> String {
        let join = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{join}options=-csearch_path%3D{}", self.server, self.name)
    }

    /// Its name.
    #[allow(dead_code, reason = "not every program looks beside the store")]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs statements beside the store.
    pub(crate) fn execute(&self, sql: &str) {
        connect(self.server).unwrap().batch_execute(sql).unwrap();
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        // On a thread of its own: the client cannot be used inside a runtime.
        let server = self.server;
        let done = std::thread::spawn(move || {
            if let Ok(mut client) = connect(server) {
                let _ = client.batch_execute(&drop);
            }
        });
        let _ = done.join();
    }
}

fn connect(url: &str) -> Result<Client, postgres::Error> {
    Config::from_str(url)?
        .connect_timeout(Duration::from_secs(5))
        .connect(NoTls)
}

/// `PURVEY_TEST_POSTGRES`, else a server of this machine that lets this user in to a database `test`, started if it is down.
fn server() -> Option<&'static str> {
    static SERVER: OnceLock<Option<String>> = OnceLock::new();
    let find = || {
        let found = std::thread::spawn(find).join().unwrap();
        if found.is_none() {
            assert!(
                std::env::var_os("CI").is_none_or(|ci| ci != "true"),
                "there is no PostgreSQL server for tests"
            );
            eprintln!("skipped on PostgreSQL: there is no server (PURVEY_TEST_POSTGRES names one)");
        }
        found
    };
    SERVER.get_or_init(find).as_deref()
}

fn find() -> Option<String> {
    if let Ok(url) = std::env::var("PURVEY_TEST_POSTGRES") {
        connect(&url).expect("PURVEY_TEST_POSTGRES must be reachable");
        return Some(url);
    }
    let user = std::env::var("USER").unwrap_or_else(|_| "root".into());
    let candidates = [
        format!("postgres://{user}@%2Fvar%2Frun%2Fpostgresql/test?sslmode=disable"),
        "postgres://postgres@127.0.0.1:5432/test?sslmode=disable".to_owned(),
    ];
    let reachable = || candidates.iter().find(|url| connect(url).is_ok()).cloned();
    reachable().or_else(|| {
        let clusters = Command::new("pg_lsclusters").arg("-h").output().ok()?;
        for line in String::from_utf8_lossy(&clusters.stdout).lines() {
            let mut words = line.split_whitespace();
            if let (Some(version), Some(name)) = (words.next(), words.next()) {
                eprintln!("starting the PostgreSQL cluster {version} {name} for tests");
                let _ = Command::new("pg_ctlcluster")
                    .args([version, name, "start"])
                    .status();
            }
        }
        let until = Instant::now() + Duration::from_secs(15);
        while Instant::now() < until {
            if let Some(url) = reachable() {
                return Some(url);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        None
    })
}
