//! Collections and Offerings.

use super::{
    Dropped, Emptied, capability, drop_member, filter_list, has_unknown, is_unknown, strip,
};
use crate::action::{Action, HttpMethod};
use crate::image::ImageType;
use crate::offering::Representation;
use crate::price::PriceKind;
use crate::report::{Place, Report};
use crate::service::Authentication;
use serde_json::{Map, Value};
use std::collections::HashMap;

pub(super) fn collection(
    dropped: &mut Vec<Dropped>,
    place: &Place<'_>,
    map: &mut Map<String, Value>,
) {
    images(dropped, place, map);
    capability::search_capabilities(dropped, place, map);
}

pub(super) fn offering(
    dropped: &mut Vec<Dropped>,
    place: &Place<'_>,
    map: &mut Map<String, Value>,
    representation: Representation,
) {
    images(dropped, place, map);
    if map.get("price").is_some_and(|price| {
        is_unknown(price, "type", |name| {
            name.is_empty() || PriceKind::is_defined(name)
        })
    }) {
        drop_member(
            dropped,
            place,
            map,
            "price",
            "Has a type that is not known.",
        );
    }
    if map
        .get("schema")
        .is_some_and(|schema| has_unknown(schema, &["url"]))
    {
        drop_member(
            dropped,
            place,
            map,
            "schema",
            "Has a member that is not known.",
        );
        drop_member(
            dropped,
            place,
            map,
            "attributes",
            "Cannot be interpreted without their schema.",
        );
    }
    if representation == Representation::Full {
        if !map.contains_key("attributes") {
            drop_member(
                dropped,
                place,
                map,
                "schema",
                "Describes attributes that are not there.",
            );
        }
        actions(dropped, place, map);
    }
}

fn images(dropped: &mut Vec<Dropped>, place: &Place<'_>, map: &mut Map<String, Value>) {
    filter_list(
        dropped,
        place,
        map,
        "images",
        Emptied::Goes,
        |dropped, place, item| {
            if is_unknown(item, "type", |name| ImageType::from_name(name).is_some()) {
                return Some("Has a media type that is not known.".to_owned());
            }
            if let Value::Object(image) = item {
                strip(
                    dropped,
                    place,
                    image,
                    &["alt", "height", "src", "type", "width"],
                );
            }
            None
        },
    );
}

/// Drops every Action that is unknown in part, or broken, or shares its identifier: which of two is meant is not to guess,
/// even when one of them is unsupported.
fn actions(dropped: &mut Vec<Dropped>, place: &Place<'_>, map: &mut Map<String, Value>) {
    let mut bearers: HashMap<String, usize> = HashMap::new();
    let ids = map
        .get("actions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    for id in ids.filter_map(|action| action.get("id")?.as_str()) {
        *bearers.entry(id.to_owned()).or_default() += 1;
    }
    filter_list(
        dropped,
        place,
        map,
        "actions",
        Emptied::Goes,
        |_, _, item| {
            let id = item.get("id").and_then(Value::as_str);
            if id
                .and_then(|id| bearers.get(id))
                .is_some_and(|count| *count > 1)
            {
                return Some("Shares its identifier with another Action.".to_owned());
            }
            if is_unknown(item, "authentication", |name| {
                Authentication::from_name(name).is_some()
            }) {
                return Some("Wants an authentication that is not known.".to_owned());
            }
            if item.get("http").is_some_and(|http| {
                is_unknown(http, "method", |name| HttpMethod::from_name(name).is_some())
            }) {
                return Some("Has a method that is not known.".to_owned());
            }
            let mut report = Report::new();
            let action = Action::read(&mut report, &Place::ROOT, item.clone());
            report
                .finish(action)
                .err()
                .map(|invalid| invalid.to_string())
        },
    );
}
