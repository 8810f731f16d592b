//! Lists: what to ask for, and as what it comes.

use crate::Error;
use crate::item::Item;
use crate::page::{Extent, Pages, Start};
use crate::service::Service;
use crate::transport::{Class, Fetch};
use futures_util::stream::BoxStream;
use purvey_odp::collection::{Collection, TerseCollection};
use purvey_odp::identity::LocalId;
use purvey_odp::offering::{Offering, Representation, TerseOffering};
use purvey_odp::service::Operation;
use std::marker::PhantomData;

/// Items as they come, over all pages. The items of a page come only when the whole page is valid; after an error nothing
/// follows, and what came before it stays.
pub type Items<T> = BoxStream<'static, Result<T, Error>>;

/// How much is wanted: the same for lists and searches.
macro_rules! extent {
    ($type:ident) => {
        impl<T> $type<T> {
            /// At most this many items over all pages; 50 unless the Agent or this says otherwise.
            pub fn limit(mut self, results: usize) -> Self {
                self.extent.results = Some(results);
                self
            }

            /// Every item, however many there are.
            pub fn all(mut self) -> Self {
                self.extent.results = None;
                self
            }

            /// Items that a page should have at most, 1 through 100, whatever is given; 100 unless set. Fewer are asked for
            /// when fewer are wanted (150 are two pages of 75), and the Service may give fewer.
            pub fn page_size(mut self, items: usize) -> Self {
                self.extent.page_size = items;
                self
            }
        }
    };
}
pub(crate) use extent;

/// How results are had: the same for lists and searches, which give the pages.
macro_rules! results {
    ($type:ident) => {
        impl<T: crate::item::Item> $type<T> {
            /// The first page alone.
            ///
            /// # Errors
            /// As [`Pages::next_page`], and [`InvalidRequest`](crate::Code::InvalidRequest) when no item is wanted.
            pub async fn first_page(self) -> Result<crate::Page<T>, crate::Error> {
                self.pages().first().await
            }

            /// The items of all pages, as they come.
            pub fn stream(self) -> crate::Items<T> {
                self.pages().into_items()
            }

            /// The items of all pages together.
            ///
            /// # Errors
            /// The first error; [`stream`](Self::stream) keeps what came before it.
            pub async fn collect(self) -> Result<Vec<T>, crate::Error> {
                self.pages().collect().await
            }
        }
    };
}
pub(crate) use results;

extent!(List);
results!(List);

/// A list that was not asked for yet. Nothing is fetched before an item or a page is awaited, and no page that is not needed.
#[derive(Clone, Debug)]
#[must_use = "nothing is fetched before an item or a page is awaited"]
pub struct List<T> {
    service: Service,
    operation: Operation,
    id: Result<Option<LocalId>, Error>,
    extent: Extent,
    item: PhantomData<fn() -> T>,
}

impl<T> List<T> {
    pub(crate) fn get(
        service: &Service,
        operation: Operation,
        id: Result<Option<LocalId>, Error>,
    ) -> Self {
        Self {
            extent: Extent::of(service.settings()),
            service: service.clone(),
            operation,
            id,
            item: PhantomData,
        }
    }

    fn of<U>(self) -> List<U> {
        List {
            service: self.service,
            operation: self.operation,
            id: self.id,
            extent: self.extent,
            item: PhantomData,
        }
    }
}

impl List<TerseCollection> {
    /// Full Representations.
    pub fn full(self) -> List<Collection> {
        self.of()
    }
}

impl List<TerseOffering> {
    /// Full Representations, as they are: see [`Service::enrich`] for what they refer to.
    pub fn full(self) -> List<Offering> {
        self.of()
    }
}

impl<T: Item> List<T> {
    /// The pages, one by one.
    pub fn pages(self) -> Pages<T> {
        let start = self.start();
        Pages::new(self.service, self.extent, Start::Get(start))
    }

    fn start(&self) -> Result<Box<Fetch>, Error> {
        let id = self.id.as_ref().map_err(Clone::clone)?;
        let mut url = self.service.url(self.operation, id.as_ref())?;
        let mut query = format!("limit={}", self.extent.first_limit());
        if T::REPRESENTATION == Representation::Full {
            query.push_str("&representation=full");
        }
        url.set_query(Some(&query));
        Ok(Box::new(Fetch::get(url, Class::Page)))
    }
}
