//! When a schedule fires: five fields of cron on the clock of a time zone.
//!
//! What fires every so many minutes or every hour goes by the time that passes: it fires whenever the clock shows one of its times, in the hour
//! that the clock shows twice as in any other two, and not in the hour that it skips. Fixed times fire once: a time that the clock shows
//! twice at the first, times that it skips together at the moment when it has jumped ahead.

use crate::{clock::Timestamp, error::Fault};
use croner::{
    CivilDate, CivilDateTime, CivilTime, Cron, CronDateTime, Resolution, Weekday,
    errors::CronError,
    parser::{CronParser, Seconds, Year},
};
use jiff::{
    SignedDuration,
    civil::DateTime,
    tz::{AmbiguousOffset, TimeZone},
};
use std::cmp::Ordering;

/// The zone of a schedule that names none.
pub(crate) const USUAL_ZONE: &str = "UTC";

/// A schedule, read.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    cron: Cron,
    zone: TimeZone,
    /// Whether it goes by the time that passes.
    recurs: bool,
}

impl Schedule {
    /// Reads five fields (minute, hour, day of month, month, day of week) and a name of the IANA time zone database.
    ///
    /// # Errors
    /// A fault for each of the two that is wrong.
    pub(crate) fn read(cron: &str, zone: &str) -> Result<Self, Vec<Fault>> {
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let recurs = recurs(cron);
        let cron = match cron.starts_with('@') {
            // Which of several meanings a nickname has is not for a stored schedule to guess.
            true => Err(Fault::body("/cron", FIELDS)),
            false => parser
                .parse(cron)
                .map_err(|error| Fault::body("/cron", format!("{FIELDS} ({error})"))),
        };
        let zone = TimeZone::get(zone).map_err(|_| {
            Fault::body(
                "/time_zone",
                "Must be a name of the IANA time zone database, such as Europe/Berlin.",
            )
        });
        match (cron, zone) {
            (Ok(cron), Ok(zone)) => Ok(Self { cron, zone, recurs }),
            (cron, zone) => Err(cron.err().into_iter().chain(zone.err()).collect()),
        }
    }

    /// The first firing after a moment; none if there never is one.
    pub(crate) fn after(&self, moment: Timestamp) -> Option<Timestamp> {
        let start = jiff::Timestamp::from_millisecond(moment.millis()).ok()?;
        match self.recurs {
            true => self.next_shown(start),
            false => self.next_fixed(moment, start),
        }
    }

    /// The first moment after `start` at which the clock shows a time of the schedule.
    fn next_shown(&self, start: jiff::Timestamp) -> Option<Timestamp> {
        let (mut from, mut is_possible) = (start, false);
        loop {
            // Until the zone's next change the clock runs evenly.
            let offset = self.zone.to_offset(from);
            let change = self.zone.following(from).next().map(|it| it.timestamp());
            let civil = Civil(offset.to_datetime(from));
            let shown = self.cron.find_next_occurrence(&civil, is_possible).ok()?;
            let firing = offset.to_timestamp(shown.0).ok()?;
            match change {
                Some(change) if firing >= change => (from, is_possible) = (change, true),
                _ => return Some(Timestamp::from_millis(firing.as_millisecond())),
            }
        }
    }

    fn next_fixed(&self, moment: Timestamp, start: jiff::Timestamp) -> Option<Timestamp> {
        let mut civil = Civil(self.zone.to_datetime(start));
        loop {
            civil = self.cron.find_next_occurrence(&civil, false).ok()?;
            let firing = self.moment(civil.0)?;
            // Behind a clock that went back, times come again that have had their firing.
            if firing > moment {
                return Some(firing);
            }
        }
    }

    /// The last firing that is not after `now`, for a schedule whose firing at `first` is not: those between are missed.
    pub(crate) fn latest(&self, first: Timestamp, now: Timestamp) -> Timestamp {
        let mut latest = first;
        // Near to now first, so that a long time without a server does not mean to count through all of it.
        for back in [60, 3_600, 86_400, 31 * 86_400, 366 * 86_400] {
            let since = Timestamp::from_millis(now.millis().saturating_sub(back * 1_000));
            match self.after(since) {
                Some(firing) if since > latest && firing <= now => {
                    latest = firing;
                    break;
                }
                _ => {}
            }
        }
        while let Some(next) = self.after(latest).filter(|next| *next <= now) {
            latest = next;
        }
        latest
    }

    fn moment(&self, civil: DateTime) -> Option<Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(civil);
        let moment = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { offset }
            | AmbiguousOffset::Fold { before: offset, .. } => offset.to_timestamp(civil).ok()?,
            AmbiguousOffset::Gap { after, .. } => {
                // Read with the offset that is not in force yet, it lies before the jump.
                let before_the_jump = after.to_timestamp(civil).ok()?;
                self.zone.following(before_the_jump).next()?.timestamp()
            }
        };
        Some(Timestamp::from_millis(moment.as_millisecond()))
    }
}

/// Whether the minute is `*` or `*/n`, or the hour is `*`.
fn recurs(cron: &str) -> bool {
    let mut fields = cron.split_whitespace();
    let (minute, hour) = (fields.next(), fields.next());
    minute.is_some_and(|minute| minute.starts_with('*')) || hour == Some("*")
}

const FIELDS: &str = "Must be five fields of cron: minute, hour, day of month, month, day of week, such as 30 7 * * MON-FRI.";

/// What the clock on the wall shows, whatever the zone makes of it.
#[derive(Clone)]
struct Civil(DateTime);

impl CronDateTime for Civil {
    fn to_civil(&self) -> CivilDateTime {
        let part = |part: i8| u32::try_from(part).unwrap_or(0);
        CivilDateTime::new(
            CivilDate::from_parts_unchecked(
                self.0.year().into(),
                part(self.0.month()),
                part(self.0.day()),
            ),
            CivilTime::from_parts_unchecked(
                part(self.0.hour()),
                part(self.0.minute()),
                part(self.0.second()),
            ),
        )
    }

    fn civil_weekday(&self) -> Weekday {
        let day = self.0.weekday().to_sunday_zero_offset();
        Weekday::from_days_from_sunday(u32::try_from(day).unwrap_or(0))
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let part = |part: u32| i8::try_from(part).map_err(|_| CronError::InvalidDate);
        DateTime::new(
            i16::try_from(civil.year()).map_err(|_| CronError::InvalidDate)?,
            part(civil.month())?,
            part(civil.day())?,
            part(civil.hour())?,
            part(civil.minute())?,
            part(civil.second())?,
            0,
        )
        .map(|civil| Resolution::Single(Self(civil)))
        .map_err(|_| CronError::InvalidDate)
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0
            .checked_add(SignedDuration::from_secs(seconds))
            .ok()
            .map(Self)
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        serde_json::from_str(&format!("\"{text}\"")).unwrap()
    }

    fn firings(cron: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
        let schedule = Schedule::read(cron, zone).unwrap();
        let mut moment = at(from);
        let mut firings = Vec::new();
        while firings.len() < count {
            moment = schedule.after(moment).unwrap();
            firings.push(moment.to_string());
        }
        firings
    }

    #[test]
    fn a_schedule_follows_the_clock_of_its_zone() {
        assert_eq!(
            firings(
                "30 7 * * MON-FRI",
                "Europe/Berlin",
                "2026-10-23T05:30:00Z",
                2
            ),
            // A Friday before, a Monday after the end of summer time.
            ["2026-10-26T06:30:00.000Z", "2026-10-27T06:30:00.000Z"]
        );
        assert_eq!(
            firings("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", 2),
            ["2028-02-29T00:00:00.000Z", "2032-02-29T00:00:00.000Z"]
        );
    }

    #[test]
    fn a_firing_in_a_gap_happens_once_at_the_gaps_end() {
        // In Berlin the clock goes from 02:00 to 03:00 on 2026-03-29, at 01:00 UTC.
        assert_eq!(
            firings("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2),
            ["2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"]
        );
        assert_eq!(
            firings("*/20 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", 4),
            [
                "2026-03-29T00:40:00.000Z",
                "2026-03-29T01:00:00.000Z",
                "2026-03-29T01:20:00.000Z",
                "2026-03-29T01:40:00.000Z"
            ]
        );
        // Samoa left out a whole day, 2011-12-30, at 10:00 UTC.
        assert_eq!(
            firings("0 12 * * *", "Pacific/Apia", "2011-12-29T22:00:00Z", 3),
            [
                "2011-12-30T10:00:00.000Z",
                "2011-12-30T22:00:00.000Z",
                "2011-12-31T22:00:00.000Z"
            ]
        );
    }

    #[test]
    fn a_firing_in_a_fold_happens_once() {
        // In Berlin the clock goes from 03:00 back to 02:00 on 2026-10-25, at 01:00 UTC.
        assert_eq!(
            firings("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2),
            ["2026-10-25T00:30:00.000Z", "2026-10-26T01:30:00.000Z"]
        );
        // Asked while the hour is there for the second time.
        assert_eq!(
            firings("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1),
            ["2026-10-26T01:30:00.000Z"]
        );
    }

    #[test]
    fn what_fires_every_so_many_minutes_or_every_hour_goes_by_the_time_that_passes() {
        // In Berlin the clock goes from 03:00 back to 02:00 on 2026-10-25, at 01:00 UTC.
        let autumn = |cron, from, count| firings(cron, "Europe/Berlin", from, count);
        assert_eq!(
            autumn("*/20 * * * *", "2026-10-25T00:20:00Z", 6),
            [
                "2026-10-25T00:40:00.000Z",
                "2026-10-25T01:00:00.000Z",
                "2026-10-25T01:20:00.000Z",
                "2026-10-25T01:40:00.000Z",
                "2026-10-25T02:00:00.000Z",
                "2026-10-25T02:20:00.000Z"
            ]
        );
        assert_eq!(
            autumn("30 * * * *", "2026-10-24T23:30:00Z", 3),
            [
                "2026-10-25T00:30:00.000Z",
                "2026-10-25T01:30:00.000Z",
                "2026-10-25T02:30:00.000Z"
            ]
        );
        assert_eq!(
            autumn("*/30 2 * * *", "2026-10-25T00:00:00Z", 4),
            [
                "2026-10-25T00:30:00.000Z",
                "2026-10-25T01:00:00.000Z",
                "2026-10-25T01:30:00.000Z",
                "2026-10-26T01:00:00.000Z"
            ]
        );
        // Other hours of the day are not concerned.
        assert_eq!(
            autumn("*/30 9 * * *", "2026-10-24T07:30:00Z", 2),
            ["2026-10-25T08:00:00.000Z", "2026-10-25T08:30:00.000Z"]
        );
        // In Berlin the clock goes from 02:00 to 03:00 on 2026-03-29, at 01:00 UTC.
        let spring = autumn;
        assert_eq!(
            spring("*/20 * * * *", "2026-03-29T00:20:00Z", 3),
            [
                "2026-03-29T00:40:00.000Z",
                "2026-03-29T01:00:00.000Z",
                "2026-03-29T01:20:00.000Z"
            ]
        );
        assert_eq!(
            spring("30 * * * *", "2026-03-28T23:30:00Z", 3),
            [
                "2026-03-29T00:30:00.000Z",
                "2026-03-29T01:30:00.000Z",
                "2026-03-29T02:30:00.000Z"
            ]
        );
        assert_eq!(
            spring("*/30 2 * * *", "2026-03-28T12:00:00Z", 1),
            ["2026-03-30T00:00:00.000Z"]
        );
        // Several fixed times in the hour that is skipped are one firing, in the one shown twice each is one.
        assert_eq!(
            spring("0,30 2 * * *", "2026-03-28T12:00:00Z", 2),
            ["2026-03-29T01:00:00.000Z", "2026-03-30T00:00:00.000Z"]
        );
        assert_eq!(
            autumn("0,30 2 * * *", "2026-10-24T12:00:00Z", 3),
            [
                "2026-10-25T00:00:00.000Z",
                "2026-10-25T00:30:00.000Z",
                "2026-10-26T01:00:00.000Z"
            ]
        );
        let never = Schedule::read("* * 30 2 *", "Europe/Berlin").unwrap();
        assert_eq!(never.after(at("2026-01-01T00:00:00Z")), None);
        let leap = firings("* * 29 2 *", "Europe/Berlin", "2096-03-01T00:00:00Z", 1);
        assert_eq!(leap, ["2104-02-28T23:00:00.000Z"]);
    }

    #[test]
    fn of_what_was_missed_the_latest_counts() {
        let schedule = Schedule::read("0 6 * * *", "UTC").unwrap();
        let first = at("2026-01-01T06:00:00Z");
        let latest = |now| schedule.latest(first, at(now)).to_string();
        assert_eq!(latest("2026-01-01T06:00:00Z"), "2026-01-01T06:00:00.000Z");
        assert_eq!(latest("2026-01-02T05:59:59Z"), "2026-01-01T06:00:00.000Z");
        assert_eq!(latest("2026-01-09T06:00:00Z"), "2026-01-09T06:00:00.000Z");
        assert_eq!(latest("2026-12-31T07:00:00Z"), "2026-12-31T06:00:00.000Z");
        let minutely = Schedule::read("* * * * *", "UTC").unwrap();
        assert_eq!(
            minutely
                .latest(first, at("2036-01-01T06:00:30Z"))
                .to_string(),
            "2036-01-01T06:00:00.000Z"
        );
    }

    #[test]
    fn what_is_no_schedule_is_refused_where_it_is_wrong() {
        let faults = |cron, zone| {
            let faults = Schedule::read(cron, zone).unwrap_err();
            let place = |fault: &Fault| format!("{:?}", fault.place);
            faults.iter().map(place).collect::<Vec<_>>()
        };
        for cron in [
            "",
            "* * * *",
            "0 * * * * *",
            "61 * * * *",
            "@daily",
            "x * * * *",
        ] {
            assert_eq!(faults(cron, "UTC"), ["Body(\"/cron\")"], "{cron}");
        }
        assert_eq!(
            faults("* * *", "Europe/Atlantis"),
            ["Body(\"/cron\")", "Body(\"/time_zone\")"]
        );
        let never = Schedule::read("0 0 30 2 *", "UTC").unwrap();
        assert_eq!(never.after(at("2026-01-01T00:00:00Z")), None);
    }
}
