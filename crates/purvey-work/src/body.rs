//! Request bodies: every fault at once, each at its place, and no member that nobody knows (Work §11).

use crate::{
    clock::Timestamp,
    error::{Error, Fault, Refusal},
};
use serde_json::{Map, Value};
use std::{ops::RangeInclusive, str::FromStr};

/// The members of a body as they are taken out; [`Members::end`] refuses it if anything was wrong.
pub(crate) struct Members<'a> {
    members: Option<&'a Map<String, Value>>,
    known: Vec<&'static str>,
    faults: Vec<Fault>,
}

impl<'a> Members<'a> {
    pub(crate) fn of(body: &'a Value) -> Self {
        let members = body.as_object();
        let faults = match members {
            Some(_) => Vec::new(),
            None => vec![Fault::body("", "Must be an object.")],
        };
        Self {
            members,
            known: Vec::new(),
            faults,
        }
    }

    /// The member `name`, if it is there.
    pub(crate) fn any(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.members?.get(name)
    }

    /// A value that must be there; anything but a fault is a value.
    pub(crate) fn value(&mut self, name: &'static str) -> Option<&'a Value> {
        let value = self.any(name);
        self.needed(name, value.is_none());
        value
    }

    /// A text of so many characters that must be there.
    pub(crate) fn text(
        &mut self,
        name: &'static str,
        sized: RangeInclusive<usize>,
    ) -> Option<String> {
        let there = self.member_is_there(name);
        self.needed(name, !there);
        self.opt_text(name, sized)
    }

    /// The same, if it is there.
    pub(crate) fn opt_text(
        &mut self,
        name: &'static str,
        sized: RangeInclusive<usize>,
    ) -> Option<String> {
        let value = self.any(name)?;
        let fits = |text: &&str| sized.contains(&text.chars().count());
        let text = value.as_str().filter(fits);
        let (least, most) = (sized.start(), sized.end());
        self.must(name, text.is_some(), || match least {
            0 => format!("Must be a string of at most {most} characters."),
            _ => format!("Must be a string of {least} to {most} characters."),
        });
        text.map(str::to_owned)
    }

    /// An identifier or word that must be there.
    pub(crate) fn parsed<T: FromStr>(&mut self, name: &'static str, what: &str) -> Option<T> {
        let there = self.member_is_there(name);
        self.needed(name, !there);
        self.opt_parsed(name, what)
    }

    /// The same, if it is there.
    pub(crate) fn opt_parsed<T: FromStr>(&mut self, name: &'static str, what: &str) -> Option<T> {
        let value = self.any(name)?;
        let parsed = value.as_str().and_then(|text| text.parse().ok());
        self.must(name, parsed.is_some(), || format!("Must be {what}."));
        parsed
    }

    /// Words or identifiers, each once.
    pub(crate) fn opt_list<T: FromStr + PartialEq>(
        &mut self,
        name: &'static str,
        most: usize,
        what: &str,
    ) -> Option<Vec<T>> {
        let value = self.any(name)?;
        let items = value.as_array().filter(|items| items.len() <= most);
        self.must(name, items.is_some(), || {
            format!("Must be an array of at most {most}: {what}.")
        });
        let mut list = Vec::new();
        for (index, item) in items?.iter().enumerate() {
            let parsed: Option<T> = item.as_str().and_then(|text| text.parse().ok());
            match parsed {
                Some(parsed) if !list.contains(&parsed) => list.push(parsed),
                Some(_) => self.fault(format!("/{name}/{index}"), "Is there twice.".into()),
                None => self.fault(format!("/{name}/{index}"), format!("Must be {what}.")),
            }
        }
        Some(list)
    }

    /// A truth value, if it is there.
    pub(crate) fn opt_bool(&mut self, name: &'static str) -> Option<bool> {
        let value = self.any(name)?;
        let truth = value.as_bool();
        self.must(name, truth.is_some(), || "Must be true or false.".into());
        truth
    }

    /// A whole number in these bounds, if it is there.
    pub(crate) fn opt_number(
        &mut self,
        name: &'static str,
        bounds: RangeInclusive<i64>,
    ) -> Option<i64> {
        let value = self.any(name)?;
        self.number_in(name, value, bounds)
    }

    /// The same, or `null`: then `Some(None)`.
    pub(crate) fn opt_limit(
        &mut self,
        name: &'static str,
        bounds: RangeInclusive<i64>,
    ) -> Option<Option<i64>> {
        let value = self.any(name)?;
        if value.is_null() {
            return Some(None);
        }
        self.number_in(name, value, bounds).map(Some)
    }

    /// A moment in the form of RFC 3339, if it is there.
    pub(crate) fn opt_time(&mut self, name: &'static str) -> Option<Timestamp> {
        let value = self.any(name)?;
        let time = serde_json::from_value(value.clone()).ok();
        self.must(name, time.is_some(), || {
            "Must be a date-time of RFC 3339.".into()
        });
        time
    }

    /// Notes a fault at a place of the body.
    pub(crate) fn fault(&mut self, pointer: String, reason: String) {
        self.faults.push(Fault::body(pointer, reason));
    }

    /// Notes a fault that something else has found.
    pub(crate) fn note(&mut self, fault: Result<(), Fault>) {
        self.faults.extend(fault.err());
    }

    /// Refuses the body if anything was wrong with it.
    pub(crate) fn end(mut self) -> Result<(), Error> {
        for name in self.members.into_iter().flat_map(Map::keys) {
            if !self.known.iter().any(|known| known == name) {
                let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
                let known = self.known.join(", ");
                let reason = format!("Is not known here; the members are {known}.");
                self.faults.push(Fault::body(pointer, reason));
            }
        }
        match self.faults.is_empty() {
            true => Ok(()),
            false => Err(Refusal::invalid(self.faults).into()),
        }
    }

    fn number_in(
        &mut self,
        name: &'static str,
        value: &Value,
        bounds: RangeInclusive<i64>,
    ) -> Option<i64> {
        let number = value.as_i64().filter(|number| bounds.contains(number));
        self.must(name, number.is_some(), || {
            format!(
                "Must be a whole number from {} to {}.",
                bounds.start(),
                bounds.end()
            )
        });
        number
    }

    fn member_is_there(&self, name: &str) -> bool {
        self.members
            .is_some_and(|members| members.contains_key(name))
    }

    fn needed(&mut self, name: &str, missing: bool) {
        if missing && self.members.is_some() {
            self.fault(format!("/{name}"), "Must be there.".into());
        }
    }

    fn must(&mut self, name: &str, holds: bool, reason: impl FnOnce() -> String) {
        if !holds {
            self.fault(format!("/{name}"), reason());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults(error: Error) -> Vec<(String, String)> {
        let Error::Refused(refusal) = error else {
            panic!("{error}");
        };
        let fault = |fault: Fault| match fault.place {
            crate::Place::Body(pointer) => (pointer, fault.reason.into_owned()),
            place => panic!("{place:?}"),
        };
        refusal.errors.into_iter().map(fault).collect()
    }

    #[test]
    fn every_fault_is_found_at_once() {
        let body = json!({"name": "", "limit": 0, "on": 1, "until": "soon", "who": ["a", "usr_1"], "x/y": 1});
        let mut members = Members::of(&body);
        members.text("name", 1..=3);
        members.text("other", 0..=3);
        members.opt_number("limit", 1..=9);
        members.opt_bool("on");
        members.opt_time("until");
        members.opt_list::<crate::id::UserId>("who", 9, "a user's id");
        let faults = faults(members.end().unwrap_err());
        let pointers: Vec<&str> = faults.iter().map(|(pointer, _)| pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/name", "/other", "/limit", "/on", "/until", "/who/0", "/who/1", "/x~1y"
            ]
        );
        assert_eq!(faults[0].1, "Must be a string of 1 to 3 characters.");
    }

    #[test]
    fn what_is_no_object_has_one_fault() {
        for body in [json!(null), json!([]), json!("x")] {
            let mut members = Members::of(&body);
            assert_eq!(members.text("name", 1..=3), None);
            assert_eq!(
                faults(members.end().unwrap_err()),
                [("".into(), "Must be an object.".into())]
            );
        }
    }
}
