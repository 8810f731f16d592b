//! The seven operations: names, methods, paths, and how a Service advertises them.

use super::Authentication;
use crate::action::HttpMethod;
use crate::offering::Representation;
use crate::report::{Place, Report};
use crate::shape;
use serde_json::{Map, Value};

/// An operation of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// One Collection.
    GetCollection,
    /// One Offering.
    GetOffering,
    /// The direct members of one Collection.
    ListCollectionOfferings,
    /// Every Collection.
    ListCollections,
    /// Every Offering.
    ListOfferings,
    /// Collections by text and parent.
    SearchCollections,
    /// Offerings by text and filters.
    SearchOfferings,
}

impl Operation {
    /// Every operation, by name.
    pub const ALL: [Self; 7] = [
        Self::GetCollection,
        Self::GetOffering,
        Self::ListCollectionOfferings,
        Self::ListCollections,
        Self::ListOfferings,
        Self::SearchCollections,
        Self::SearchOfferings,
    ];

    /// The operation with the wire name `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.as_str() == name)
    }

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GetCollection => "get-collection",
            Self::GetOffering => "get-offering",
            Self::ListCollectionOfferings => "list-collection-offerings",
            Self::ListCollections => "list-collections",
            Self::ListOfferings => "list-offerings",
            Self::SearchCollections => "search-collections",
            Self::SearchOfferings => "search-offerings",
        }
    }

    /// The method of its first request; what follows through `next` is always GET.
    pub fn method(self) -> HttpMethod {
        match self {
            Self::SearchCollections | Self::SearchOfferings => HttpMethod::Post,
            _ => HttpMethod::Get,
        }
    }

    /// The path below the endpoint base, without a leading slash; `{id}` stands for a Local Resource Identifier, verbatim.
    pub fn path_template(self) -> &'static str {
        match self {
            Self::GetCollection => "collections/{id}",
            Self::GetOffering => "offerings/{id}",
            Self::ListCollectionOfferings => "collections/{id}/offerings",
            Self::ListCollections => "collections",
            Self::ListOfferings => "offerings",
            Self::SearchCollections => "collections/search",
            Self::SearchOfferings => "offerings/search",
        }
    }

    /// Whether its path names a resource.
    pub fn takes_id(self) -> bool {
        matches!(
            self,
            Self::GetCollection | Self::GetOffering | Self::ListCollectionOfferings
        )
    }

    /// What it answers without a `representation` parameter.
    pub fn default_representation(self) -> Representation {
        match self {
            Self::GetCollection | Self::GetOffering => Representation::Full,
            _ => Representation::Terse,
        }
    }

    fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let name = shape::string(report, place, value)?;
        let found = Self::from_name(&name);
        if found.is_none() {
            report.add(place, "Must be the name of an operation of the protocol.");
        }
        found
    }
}

/// One advertised operation. The object is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperationDescriptor {
    /// Which operation.
    pub name: Operation,
    /// Whether it wants authentication.
    pub authentication: Authentication,
}

impl OperationDescriptor {
    /// Reads one descriptor and notes every rule that it breaks.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        let authentication = shape::required(
            report,
            place,
            &mut map,
            "authentication",
            Authentication::read,
        );
        let name = shape::required(report, place, &mut map, "name", Operation::read);
        shape::closed(report, place, &map);
        let descriptor = Self {
            name: name?,
            authentication: authentication?,
        };
        (report.len() == before).then_some(descriptor)
    }

    /// Reads `operations`: each name once, `list-offerings` and `get-offering` always.
    pub fn read_list(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Vec<Self>> {
        let descriptors = shape::list(report, place, value, 2..=Operation::ALL.len(), Self::read)?;
        let before = report.len();
        for (i, descriptor) in descriptors.iter().enumerate() {
            if descriptors
                .iter()
                .take(i)
                .any(|earlier| earlier.name == descriptor.name)
            {
                report.add(&place.index(i).key("name"), "Must not be advertised twice.");
            }
        }
        for name in [Operation::ListOfferings, Operation::GetOffering] {
            if descriptors.iter().all(|descriptor| descriptor.name != name) {
                report.add(place, format!("Must advertise {}.", name.as_str()));
            }
        }
        (report.len() == before).then_some(descriptors)
    }

    /// The wire form.
    pub fn to_value(self) -> Value {
        let mut map = Map::new();
        map.insert("authentication".into(), self.authentication.as_str().into());
        map.insert("name".into(), self.name.as_str().into());
        Value::Object(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_names_methods_and_paths() {
        let table: Vec<_> = Operation::ALL
            .into_iter()
            .map(|o| {
                (
                    o.as_str(),
                    o.method().as_str(),
                    o.path_template(),
                    o.default_representation().as_str(),
                )
            })
            .collect();
        assert_eq!(
            table,
            [
                ("get-collection", "GET", "collections/{id}", "full"),
                ("get-offering", "GET", "offerings/{id}", "full"),
                (
                    "list-collection-offerings",
                    "GET",
                    "collections/{id}/offerings",
                    "terse"
                ),
                ("list-collections", "GET", "collections", "terse"),
                ("list-offerings", "GET", "offerings", "terse"),
                ("search-collections", "POST", "collections/search", "terse"),
                ("search-offerings", "POST", "offerings/search", "terse"),
            ]
        );
        for operation in Operation::ALL {
            assert_eq!(Operation::from_name(operation.as_str()), Some(operation));
            assert_eq!(
                operation.takes_id(),
                operation.path_template().contains("{id}")
            );
        }
        assert_eq!(Operation::from_name("buy-offering"), None);
    }
}
