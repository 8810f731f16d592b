//! PostgreSQL full text with a GIN index.

use crate::Outcome;
use crate::ask::{Answer, Ask, Engine, PAGE, Raw, first};
use crate::sql::conditions;
use postgres::{Client, NoTls};
use std::io::Write;
use std::path::Path;

pub(crate) struct Postgres(Client);

impl Postgres {
    pub(crate) fn build(url: &str, records: &Path) -> Outcome<Self> {
        let mut client = Client::connect(url, NoTls)?;
        client.batch_execute(
            "DROP TABLE IF EXISTS purvey_bench;
             CREATE UNLOGGED TABLE purvey_bench(id text COLLATE \"C\", registry text, name text, summary text, version text, major bigint, updated date, downloads bigint);",
        )?;
        let mut copy = client.copy_in("COPY purvey_bench FROM STDIN")?;
        crate::records::each(records, |package| {
            let cell = |text: &str| text.replace('\\', "\\\\");
            let number = |value: Option<i64>| value.map_or("\\N".to_owned(), |n| n.to_string());
            writeln!(
                copy,
                "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
                package.id,
                package.registry,
                cell(&package.name),
                cell(&package.summary),
                if package.version.is_empty() {
                    "\\N".to_owned()
                } else {
                    cell(&package.version)
                },
                number(package.major),
                package.updated.as_deref().unwrap_or("\\N"),
                number(package.downloads)
            )?;
            Ok(())
        })?;
        copy.finish()?;
        client.batch_execute(
            "ALTER TABLE purvey_bench ADD text tsvector GENERATED ALWAYS AS (setweight(to_tsvector('english', name), 'A') || to_tsvector('english', summary)) STORED;
             CREATE INDEX ON purvey_bench USING gin(text); CREATE INDEX ON purvey_bench(id); CREATE INDEX ON purvey_bench(registry);
             CREATE INDEX ON purvey_bench(updated); CREATE INDEX ON purvey_bench(downloads DESC NULLS LAST, id);",
        )?;
        // By itself: it cannot be part of a transaction, which several statements at once are.
        client.batch_execute("VACUUM ANALYZE purvey_bench")?;
        Ok(Self(client))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The database is somebody's: leave nothing in it.
        let _ = self.0.batch_execute("DROP TABLE IF EXISTS purvey_bench");
    }
}

impl Engine for Postgres {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn answer(&mut self, ask: &Ask) -> Outcome<Raw> {
        let query = format!(
            "plainto_tsquery('english', '{}')",
            ask.text.unwrap_or_default()
        );
        let text = format!("p.text @@ {query}");
        let order = match (ask.most_downloaded, ask.text) {
            (true, _) => "p.downloads DESC NULLS LAST, p.id".to_owned(),
            (false, Some(_)) => format!("ts_rank(p.text, {query}) DESC, p.id"),
            (false, None) => "p.id".to_owned(),
        };
        let sql = format!(
            "SELECT p.id FROM purvey_bench p WHERE {} ORDER BY {order} LIMIT {PAGE} OFFSET {}",
            conditions(ask, None, &text),
            ask.page * PAGE
        );
        let mut answer = Answer::default();
        for row in self.0.query(sql.as_str(), &[])? {
            answer.ids.push(row.get(0));
        }
        for facet in ask.facets {
            let name = facet.name();
            let sql = format!(
                "SELECT p.{name}::text, count(*) FROM purvey_bench p WHERE {} AND p.{name} IS NOT NULL GROUP BY p.{name}",
                conditions(ask, Some(*facet), &text)
            );
            let rows = self.0.query(sql.as_str(), &[])?;
            let counts = rows
                .iter()
                .map(|row| (row.get(0), row.get::<_, i64>(1).unsigned_abs()));
            answer.facets.push(first(counts.collect()));
        }
        Ok(Raw::Answer(answer))
    }
}
