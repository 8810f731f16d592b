//! What stands on the pages of lists and searches.

use purvey_odp::collection::{Collection, TerseCollection};
use purvey_odp::identity::LocalId;
use purvey_odp::normalise::{self, Dropped};
use purvey_odp::offering::{Offering, Placement, Representation, TerseOffering};
use purvey_odp::report::{Place, Report};
use serde_json::Value;

/// A Collection or an Offering in one of its representations. Only this crate implements it.
pub trait Item: sealed::Sealed + Send + 'static {
    /// The identifier, unique at its Service among resources of its type.
    fn id(&self) -> &LocalId;
}

pub(crate) mod sealed {
    use super::{Dropped, Place, Report, Representation, Value};

    /// How pages of an item are read.
    pub trait Sealed: Sized {
        /// Which representation it is.
        const REPRESENTATION: Representation;
        /// Drops from a page what is not known (ODP §9).
        fn normalise(page: &mut Value) -> Vec<Dropped>;
        /// Reads an item of a page.
        fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self>;
    }
}

macro_rules! item {
    ($type:ty, $representation:ident, $normalise:expr) => {
        impl Item for $type {
            fn id(&self) -> &LocalId {
                self.id()
            }
        }

        impl sealed::Sealed for $type {
            const REPRESENTATION: Representation = Representation::$representation;

            fn normalise(page: &mut Value) -> Vec<Dropped> {
                $normalise(page)
            }

            fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
                <$type>::read(report, place, value, Placement::Embedded)
            }
        }
    };
}

item!(Collection, Full, normalise::collection_page);
item!(TerseCollection, Terse, normalise::collection_page);
item!(Offering, Full, |page| normalise::offering_page(
    page,
    Representation::Full
));
item!(TerseOffering, Terse, |page| normalise::offering_page(
    page,
    Representation::Terse
));
