//! Sizes, and whether everything is whole.

use super::{Catalog, CheckReport, Snapshot, Stats};
use crate::error::Error;
use crate::record::Record;
use crate::render::render;
use crate::store::{Read, RowRef};
use purvey_odp::identity::ResourceType;
use purvey_odp::language::LanguageTag;
use purvey_odp::offering::Representation;

/// Most faults that a check names.
const FAULTS: usize = 100;

impl Catalog {
    /// Sizes of the catalog.
    ///
    /// # Errors
    /// Failures of the store and the disk.
    pub fn stats(&self) -> Result<Stats, Error> {
        let snapshot = self.current();
        let mut store = self.inner.store.lock();
        let change = store.read()?.head()?.seq;
        Ok(Stats {
            offerings: snapshot.generation.count(ResourceType::Offering),
            collections: snapshot.generation.count(ResourceType::Collection),
            languages: snapshot
                .languages
                .iter()
                .map(|tag| tag.as_str().to_owned())
                .collect(),
            generation: snapshot.generation.number(),
            change,
            generations: self.inner.generations.kept()?,
            store_bytes: store.disk_bytes(),
            index_bytes: self.inner.generations.disk_bytes()?,
        })
    }

    /// Checks everything: the structure of the record store, the checksum of every segment, the hierarchy, that every record is valid,
    /// and that the current generation says of each exactly what the records say.
    ///
    /// # Errors
    /// Failures that keep the check from going on; what is wrong with the data is in the report.
    pub fn check(&self) -> Result<CheckReport, Error> {
        let mut report = CheckReport::default();
        let snapshot = self.publish()?;
        let generation = &snapshot.generation;
        let mut store = super::open_store(&self.inner.dir, &self.inner.options)?;
        report.faults = store.integrity_faults(20)?;
        for kind in [ResourceType::Collection, ResourceType::Offering] {
            for segment in generation.segments(kind) {
                report.segments += 1;
                if let Err(error) = segment.verify() {
                    report.fault(error.to_string());
                }
            }
        }
        let read = store.read()?;
        for kind in [ResourceType::Collection, ResourceType::Offering] {
            report.unindexed += read.changed(kind, generation.number())?;
            compare(&read, &snapshot, kind, &mut report)?;
        }
        Ok(report)
    }
}

/// Holds the records of one kind against the generation: those that it covers, and how many it has.
fn compare(
    read: &Read<'_>,
    snapshot: &Snapshot,
    kind: ResourceType,
    report: &mut CheckReport,
) -> Result<(), Error> {
    let generation = &snapshot.generation;
    let mut covered = 0;
    read.live(kind, |row| {
        if row.seq <= generation.number() {
            covered += 1;
            report.records += 1;
            if let Err(fault) = same(&row, snapshot, kind)? {
                report.fault(format!("{kind} {}: {fault}", row.id));
            }
        }
        Ok(())
    })?;
    let count = generation.count(kind);
    if read.head()?.seq == generation.number() && count != covered {
        report.fault(format!(
            "{kind}: the generation holds {count}, the record store {covered}"
        ));
    }
    Ok(())
}

/// Whether the generation shows a record as it is stored; the inner error says what differs.
fn same(
    row: &RowRef<'_>,
    snapshot: &Snapshot,
    kind: ResourceType,
) -> Result<Result<(), String>, Error> {
    let manifest = &snapshot.manifest;
    let value = match serde_json::from_slice(row.body.unwrap_or_default()) {
        Ok(value) => value,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let record = match Record::validate(value, kind, manifest) {
        Ok(record) => record,
        Err(invalid) => return Ok(Err(invalid.to_string())),
    };
    let rendered = render(&record, manifest);
    let own = (None, &rendered.terse, &rendered.full);
    let variants = rendered.variants.iter();
    for (language, terse, full) in variants
        .map(|(language, terse, full)| (Some(language), terse, full))
        .chain([own])
    {
        let preferred: Vec<LanguageTag> = language.into_iter().cloned().collect();
        for (representation, wanted) in
            [(Representation::Terse, terse), (Representation::Full, full)]
        {
            let generation = &snapshot.generation;
            let shown = match generation.get(kind, row.id, representation, &preferred) {
                Ok(shown) => shown,
                Err(error @ Error::Corrupt { .. }) => return Ok(Err(error.to_string())),
                Err(error) => return Err(error),
            };
            if shown.is_none_or(|item| item.bytes != *wanted) {
                return Ok(Err(format!(
                    "the {} form in the generation is not that of the record",
                    representation.as_str()
                )));
            }
        }
    }
    let mut audience: Vec<&str> = record.audience().iter().map(String::as_str).collect();
    audience.sort_unstable();
    if snapshot.generation.audience(kind, row.id) != audience {
        return Ok(Err(
            "its audience in the generation is not that of the record".to_owned(),
        ));
    }
    Ok(Ok(()))
}

impl CheckReport {
    fn fault(&mut self, fault: String) {
        if self.faults.len() < FAULTS {
            self.faults.push(fault);
        }
    }
}
