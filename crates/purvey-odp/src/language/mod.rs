//! Languages: tags (RFC 5646), what a document is available in, and how one is chosen (RFC 4647 Lookup; ODP §2).

mod accept;
mod localizations;
mod tag;

pub use accept::AcceptLanguage;
pub use localizations::Localizations;
pub use tag::LanguageTag;
