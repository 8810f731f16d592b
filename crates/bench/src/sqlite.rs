//! SQLite with FTS5.

use crate::Outcome;
use crate::ask::{Answer, Ask, Engine, PAGE, Raw, first};
use crate::sql::conditions;
use rusqlite::{Connection, params};
use std::path::Path;

pub(crate) struct Sqlite(Connection);

impl Sqlite {
    pub(crate) fn build(file: &Path, records: &Path) -> Outcome<Self> {
        let mut connection = Connection::open(file)?;
        connection.execute_batch(
            "PRAGMA journal_mode = wal; PRAGMA cache_size = -400000; PRAGMA mmap_size = 2000000000;
             CREATE TABLE p(n INTEGER PRIMARY KEY, id TEXT, registry TEXT, version TEXT, major INTEGER, updated TEXT, downloads INTEGER);
             CREATE VIRTUAL TABLE t USING fts5(name, summary, content='');",
        )?;
        let transaction = connection.transaction()?;
        let mut n = 0_i64;
        {
            let mut row = transaction.prepare("INSERT INTO p VALUES(?, ?, ?, ?, ?, ?, ?)")?;
            let mut text =
                transaction.prepare("INSERT INTO t(rowid, name, summary) VALUES(?, ?, ?)")?;
            crate::records::each(records, |package| {
                n += 1;
                row.execute(params![
                    n,
                    package.id,
                    package.registry,
                    Some(&package.version).filter(|text| !text.is_empty()),
                    package.major,
                    package.updated,
                    package.downloads
                ])?;
                text.execute(params![n, package.name, package.summary])?;
                Ok(())
            })?;
        }
        transaction.commit()?;
        connection.execute_batch(
            "CREATE INDEX p_id ON p(id); CREATE INDEX p_registry ON p(registry, major); CREATE INDEX p_updated ON p(updated);
             CREATE INDEX p_downloads ON p(downloads); INSERT INTO t(t) VALUES('optimize'); ANALYZE;",
        )?;
        Ok(Self(connection))
    }
}

impl Engine for Sqlite {
    fn name(&self) -> &'static str {
        "SQLite FTS5"
    }

    fn answer(&mut self, ask: &Ask) -> Outcome<Raw> {
        let words: Vec<String> = ask
            .text
            .unwrap_or_default()
            .split(' ')
            .map(|word| format!("\"{word}\""))
            .collect();
        let text = format!("t MATCH '{}'", words.join(" "));
        let from = if ask.text.is_some() {
            "t JOIN p ON p.n = t.rowid"
        } else {
            "p"
        };
        let order = match (ask.most_downloaded, ask.text) {
            (true, _) => "p.downloads DESC NULLS LAST, p.id",
            (false, Some(_)) => "bm25(t, 3.0, 1.0), p.id",
            (false, None) => "p.id",
        };
        let sql = format!(
            "SELECT p.id FROM {from} WHERE {} ORDER BY {order} LIMIT {PAGE} OFFSET {}",
            conditions(ask, None, &text),
            ask.page * PAGE
        );
        let mut answer = Answer::default();
        let mut statement = self.0.prepare_cached(&sql)?;
        let ids = statement.query_map([], |row| row.get::<_, String>(0))?;
        answer.ids = ids.collect::<Result<_, _>>()?;
        for facet in ask.facets {
            let name = facet.name();
            let sql = format!(
                "SELECT CAST(p.{name} AS TEXT), count(*) FROM {from} WHERE {} AND p.{name} IS NOT NULL GROUP BY p.{name}",
                conditions(ask, Some(*facet), &text)
            );
            let mut statement = self.0.prepare_cached(&sql)?;
            let counts = statement.query_map([], |row| {
                Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
            })?;
            answer.facets.push(first(counts.collect::<Result<_, _>>()?));
        }
        Ok(Raw::Answer(answer))
    }
}
