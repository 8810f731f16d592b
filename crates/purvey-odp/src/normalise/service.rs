//! The Service Document.

use super::{
    Dropped, Emptied, capability, drop_member, filter_list, has_unknown, is_unknown, strip,
};
use crate::image::ImageType;
use crate::report::Place;
use crate::service::{Authentication, McpEndpoint, Operation, PaymentOption, PaymentProtocol};
use serde_json::{Map, Value};

pub(super) fn document(
    dropped: &mut Vec<Dropped>,
    place: &Place<'_>,
    map: &mut Map<String, Value>,
) {
    let searched = advertises_search(map);
    filter_list(
        dropped,
        place,
        map,
        "operations",
        Emptied::Goes,
        |_, _, item| unsupported_operation(item),
    );
    filter_list(dropped, place, map, "mcp", Emptied::Goes, |_, _, item| {
        unsupported_mcp(item)
    });
    branding(dropped, place, map);
    protocols(dropped, place, map);
    capability::search_capabilities(dropped, place, map);
    if searched && !advertises_search(map) {
        drop_member(
            dropped,
            place,
            map,
            "search_capabilities",
            "Belongs to an operation that is not supported.",
        );
    }
}

fn advertises_search(map: &Map<String, Value>) -> bool {
    let mut operations = map
        .get("operations")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    operations.any(|item| {
        item.get("name").and_then(Value::as_str) == Some(Operation::SearchOfferings.as_str())
    })
}

fn unsupported_operation(item: &Value) -> Option<String> {
    let reason = if is_unknown(item, "name", |name| Operation::from_name(name).is_some()) {
        "Is an operation that is not known."
    } else if is_unknown(item, "authentication", |name| {
        Authentication::from_name(name).is_some()
    }) {
        "Wants an authentication that is not known."
    } else if has_unknown(item, &["authentication", "name"]) {
        "Has a member that is not known."
    } else {
        return None;
    };
    Some(reason.to_owned())
}

fn unsupported_mcp(item: &Value) -> Option<String> {
    let reason = if is_unknown(item, "type", |name| name == McpEndpoint::TYPE) {
        "Has a transport that is not known."
    } else if has_unknown(item, &["description", "name", "type", "url"]) {
        "Has a member that is not known."
    } else {
        return None;
    };
    Some(reason.to_owned())
}

/// Images only describe: their unknown members go. Branding needs both, so an image of unknown type takes it along.
fn branding(dropped: &mut Vec<Dropped>, place: &Place<'_>, map: &mut Map<String, Value>) {
    const ROLES: [&str; 2] = ["icon", "logo"];
    let Some(Value::Object(branding)) = map.get_mut("branding") else {
        return;
    };
    let is_known = |name: &str| ImageType::from_name(name).is_some_and(ImageType::is_for_branding);
    let images = || ROLES.iter();
    if images().any(|role| {
        branding
            .get(*role)
            .is_some_and(|image| is_unknown(image, "type", is_known))
    }) {
        drop_member(
            dropped,
            place,
            map,
            "branding",
            "Has an image of a media type that is not known.",
        );
        return;
    }
    let place = place.key("branding");
    strip(dropped, &place, branding, &ROLES);
    for role in images() {
        if let Some(Value::Object(image)) = branding.get_mut(*role) {
            strip(dropped, &place.key(role), image, &["src", "type"]);
        }
    }
}

fn protocols(dropped: &mut Vec<Dropped>, parent: &Place<'_>, map: &mut Map<String, Value>) {
    let Some(Value::Object(protocols)) = map.get_mut("protocols") else {
        return;
    };
    let place = parent.key("protocols");
    let was_empty = protocols.is_empty();
    let enrolls = protocols.contains_key("enrollment");
    strip(
        dropped,
        &place,
        protocols,
        &["enrollment", "payments", "trust"],
    );
    filter_list(
        dropped,
        &place,
        protocols,
        "enrollment",
        Emptied::Goes,
        |_, _, item| unsupported_single(item, "aep"),
    );
    filter_list(
        dropped,
        &place,
        protocols,
        "trust",
        Emptied::Goes,
        |_, _, item| unsupported_single(item, "tap"),
    );
    let cannot_enroll = enrolls && !protocols.contains_key("enrollment");
    filter_list(
        dropped,
        &place,
        protocols,
        "payments",
        Emptied::Goes,
        |dropped, place, item| {
            let reason = unsupported_payment(item, cannot_enroll);
            if let (None, Value::Object(payment)) = (&reason, item) {
                filter_list(
                    dropped,
                    place,
                    payment,
                    "options",
                    Emptied::Goes,
                    |_, _, option| {
                        let unknown = option
                            .as_str()
                            .is_some_and(|name| PaymentOption::from_name(name).is_none());
                        unknown.then(|| "Is a payment option that is not known.".to_owned())
                    },
                );
            }
            reason
        },
    );
    if protocols.is_empty() && !was_empty {
        map.shift_remove("protocols");
    }
}

fn unsupported_single(item: &Value, known: &str) -> Option<String> {
    let reason = if is_unknown(item, "name", |name| name == known) {
        "Is a protocol that is not known."
    } else if has_unknown(item, &["name"]) {
        "Has a member that is not known."
    } else {
        return None;
    };
    Some(reason.to_owned())
}

fn unsupported_payment(item: &Value, cannot_enroll: bool) -> Option<String> {
    let reason = if is_unknown(item, "name", |name| {
        PaymentProtocol::from_name(name).is_some()
    }) {
        "Is a protocol that is not known."
    } else if is_unknown(item, "authentication", |name| {
        Authentication::from_name(name).is_some()
    }) {
        "Wants an authentication that is not known."
    } else if has_unknown(item, &["authentication", "name", "options"]) {
        "Has a member that is not known."
    } else if cannot_enroll
        && item.get("authentication").and_then(Value::as_str)
            == Some(Authentication::Required.as_str())
    {
        "Wants an authentication by a protocol that is not known."
    } else {
        return None;
    };
    Some(reason.to_owned())
}
