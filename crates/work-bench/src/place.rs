//! Where a store is, and what stands in it: looked at beside the store, by SQL.

use crate::Outcome;
use postgres::NoTls;
use purvey_work::Store;
use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

/// A new, empty store; gone with this.
pub(crate) enum Place {
    Sqlite(PathBuf),
    Postgres { server: String, schema: String },
}

/// What is in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) runs: u64,
    pub(crate) keys: u64,
    pub(crate) succeeded: u64,
    /// Runs that ended in another way.
    pub(crate) failed: u64,
}

const COUNTS: &str = "SELECT (SELECT COUNT(*) FROM runs), (SELECT COUNT(*) FROM keys),
    (SELECT COUNT(*) FROM runs WHERE status = 'succeeded'), (SELECT COUNT(*) FROM runs WHERE status IN ('failed', 'cancelled'))";

impl Place {
    pub(crate) fn new(work: &Path, server: Option<&str>) -> Outcome<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("work_bench_{}_{number}", std::process::id());
        let Some(server) = server else {
            let directory = work.join(name);
            std::fs::create_dir_all(&directory)?;
            return Ok(Self::Sqlite(directory.join("work.db")));
        };
        let place = Self::Postgres {
            server: server.to_owned(),
            schema: name,
        };
        place.on_server(durable)?;
        place.on_server(|client, schema| {
            Ok(client.batch_execute(&format!("CREATE SCHEMA {schema}"))?)
        })?;
        Ok(place)
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SQLite",
            Self::Postgres { .. } => "PostgreSQL",
        }
    }

    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres { .. })
    }

    pub(crate) fn open(&self) -> Outcome<Store> {
        Ok(match self {
            Self::Sqlite(file) => Store::sqlite(file)?,
            Self::Postgres { server, schema } => {
                let join = if server.contains('?') { '&' } else { '?' };
                Store::postgres(&format!("{server}{join}options=-csearch_path%3D{schema}"))?
            }
        })
    }

    pub(crate) fn counts(&self) -> Outcome<Counts> {
        let [runs, keys, succeeded, failed] = self.numbers(COUNTS)?;
        Ok(Counts {
            runs,
            keys,
            succeeded,
            failed,
        })
    }

    /// Runs that have not ended.
    pub(crate) fn unfinished(&self) -> Outcome<u64> {
        let [sum] = self.numbers("SELECT CAST(SUM(running + queued) AS BIGINT) FROM workspaces")?;
        Ok(sum)
    }

    /// The numbers of the only row of a query.
    fn numbers<const N: usize>(&self, sql: &str) -> Outcome<[u64; N]> {
        let numbers: Vec<i64> = match self {
            Self::Sqlite(file) => {
                let connection = rusqlite::Connection::open(file)?;
                connection.query_row(sql, [], |row| (0..N).map(|n| row.get(n)).collect())?
            }
            Self::Postgres { .. } => self.on_server(|client, schema| {
                client.batch_execute(&format!("SET search_path = {schema}"))?;
                let row = client.query_one(sql, &[])?;
                Ok((0..N).map(|n| row.get(n)).collect())
            })?,
        };
        let mut answer = [0; N];
        for (place, number) in answer.iter_mut().zip(numbers) {
            *place = u64::try_from(number)?;
        }
        Ok(answer)
    }

    /// Makes `count` more finished runs out of one that is there: copies with other identifiers and keys, each a millisecond older.
    pub(crate) fn copy_finished(&self, count: u64) -> Outcome<()> {
        let hex = match self {
            Self::Sqlite(_) => "printf('%032x', n.i)",
            Self::Postgres { .. } => "lpad(to_hex(n.i), 32, '0')",
        };
        let one = "(SELECT MIN(id) FROM runs WHERE status = 'succeeded')";
        for (table, of) in [
            ("keys", "target_id"),
            ("events", "run_id"),
            ("steps", "run_id"),
            ("runs", "id"),
        ] {
            let columns = self.columns(table)?;
            let values: Vec<String> = columns
                .iter()
                .map(|column| match column.as_str() {
                    name if name == of => format!("'run_' || {hex}"),
                    "key" => format!("'old-' || {hex}"),
                    "finished_at" => "t.finished_at - n.i".to_owned(),
                    name => format!("t.{name}"),
                })
                .collect();
            self.execute(&format!(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
                 INSERT INTO {table} ({}) SELECT {} FROM n JOIN {table} t ON t.{of} = {one}",
                columns.join(", "),
                values.join(", ")
            ))?;
        }
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres { .. } => self.execute("ANALYZE runs, keys, events, steps"),
        }
    }

    fn columns(&self, table: &str) -> Outcome<Vec<String>> {
        match self {
            Self::Sqlite(file) => {
                let connection = rusqlite::Connection::open(file)?;
                let mut statement =
                    connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
                let names = statement.query_map([table], |row| row.get(0))?;
                Ok(names.collect::<Result<_, _>>()?)
            }
            Self::Postgres { .. } => self.on_server(|client, schema| {
                let sql = "SELECT column_name::text FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2";
                let rows = client.query(sql, &[&schema, &table])?;
                Ok(rows.iter().map(|row| row.get(0)).collect())
            }),
        }
    }

    fn execute(&self, sql: &str) -> Outcome<()> {
        match self {
            Self::Sqlite(file) => Ok(rusqlite::Connection::open(file)?.execute_batch(sql)?),
            Self::Postgres { .. } => self.on_server(|client, schema| {
                client.batch_execute(&format!("SET search_path = {schema}"))?;
                Ok(client.batch_execute(sql)?)
            }),
        }
    }

    /// With a client of the server, on a thread of its own: it cannot be used on one that serves a runtime.
    fn on_server<T: Send>(
        &self,
        work: impl FnOnce(&mut postgres::Client, &str) -> Outcome<T> + Send,
    ) -> Outcome<T> {
        let Self::Postgres { server, schema } = self else {
            return Err("not on a server".into());
        };
        on(server, |client| work(client, schema))
    }
}

/// With a client of a server, on a thread of its own.
pub(crate) fn on<T: Send>(
    server: &str,
    work: impl FnOnce(&mut postgres::Client) -> Outcome<T> + Send,
) -> Outcome<T> {
    std::thread::scope(|scope| {
        let done = scope.spawn(|| work(&mut postgres::Client::connect(server, NoTls)?));
        done.join().unwrap_or_else(|_| Err("a thread broke".into()))
    })
}

/// What is acknowledged must be on the disk.
fn durable(client: &mut postgres::Client, _: &str) -> Outcome<()> {
    for name in ["synchronous_commit", "fsync"] {
        let value: String = client.query_one(&format!("SHOW {name}"), &[])?.get(0);
        if value != "on" {
            return Err(format!("the server has {name} = {value}").into());
        }
    }
    Ok(())
}

impl Drop for Place {
    fn drop(&mut self) {
        let gone: Outcome<()> = match self {
            Self::Sqlite(file) => file
                .parent()
                .map_or(Ok(()), |directory| Ok(std::fs::remove_dir_all(directory)?)),
            Self::Postgres { .. } => self.on_server(|client, schema| {
                Ok(client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE"))?)
            }),
        };
        if let Err(error) = gone {
            eprintln!("{} is left behind: {error}", self.name());
        }
    }
}
