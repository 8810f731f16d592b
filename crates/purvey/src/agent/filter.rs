//! `--filter ID:OPERATOR:VALUE`: what is meant, and as what it is sent.

use purvey_agent::Intent;
use purvey_odp::filter::Operator;
use std::str::FromStr;

/// A condition as it was typed. Its value takes the type that the filter's definition has.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    pub(super) text: String,
    pub(super) id: String,
    pub(super) intent: Intent,
}

impl FromStr for Filter {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "a filter is ID:OPERATOR:VALUE, for example price:lte:20";
        let (id, rest) = text.split_once(':').ok_or(wrong)?;
        let (operator, value) = rest.split_once(':').ok_or(wrong)?;
        if id.is_empty() || operator.is_empty() {
            return Err(wrong);
        }
        let operator = Operator::parse(operator)
            .ok_or("an operator is one of eq, in, lt, lte, gt, gte and exists")?;
        let intent = match operator {
            Operator::In => Intent::any_of(id, operator, split(value)?),
            _ => Intent::new(id, operator, value),
        };
        Ok(Self {
            text: text.to_owned(),
            id: id.to_owned(),
            intent,
        })
    }
}

/// The values of a list with commas between them. One that has a comma itself, or a quote at its beginning, stands in double
/// quotes, in which `""` is a quote.
fn split(text: &str) -> Result<Vec<String>, &'static str> {
    let mut values = Vec::new();
    let mut rest = text;
    loop {
        let (value, behind) = match rest.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let (value, behind) = rest.split_at(end);
                (value.to_owned(), behind)
            }
        };
        values.push(value);
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None if behind.is_empty() => return Ok(values),
            None => return Err("a value in double quotes ends at a comma or at the end"),
        }
    }
}

/// What stands up to the closing quote, and what is behind it.
fn unquote(text: &str) -> Result<(String, &str), &'static str> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let (before, behind) = rest
            .split_once('"')
            .ok_or("a value in double quotes has no end")?;
        value.push_str(before);
        match behind.strip_prefix('"') {
            Some(further) => {
                value.push('"');
                rest = further;
            }
            None => return Ok((value, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_an_intent() {
        let intent = |text: &str| text.parse::<Filter>().unwrap().intent;
        for (text, value) in [
            ("x:eq:5", "5"),
            ("x:eq: a,\"b\" ", " a,\"b\" "),
            ("x:eq:", ""),
            ("x:eq:a:b", "a:b"),
        ] {
            assert_eq!(intent(text), Intent::new("x", Operator::Eq, value));
        }
        assert_eq!(
            intent("x:in:oak,\"a, b\",\"say \"\"no\"\"\","),
            Intent::any_of("x", Operator::In, ["oak", "a, b", "say \"no\"", ""])
        );
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for text in [
            "",
            "x",
            "x:eq",
            ":eq:1",
            "x::1",
            "x:in:\"a",
            "x:in:\"a\"b",
            "x:ne:1",
        ] {
            assert!(text.parse::<Filter>().is_err(), "{text}");
        }
    }
}
