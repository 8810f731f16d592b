//! `purvey get`

use super::{
    action,
    connect::Connect,
    explain, fault, notes,
    row::{ids, joined, price},
};
use crate::{
    failure::Failure,
    output::{self, Style},
    table::{Table, fields},
    text,
};
use purvey_agent::{EnrichedCollection, EnrichedOffering, Service};
use purvey_odp::{
    identity::{ResourceType, ServiceOrigin},
    image::ResourceImage,
    language::{LanguageTag, Localizations},
    offering::Placement,
    reference::ResourceReference,
    text::Description,
};
use serde_json::json;
use std::process::ExitCode;

/// What to show, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Get {
    /// The Service
    #[arg(value_name = "ORIGIN")]
    origin: String,
    /// Identifier of the Offering, or of the Collection with --collection
    #[arg(value_name = "ID")]
    id: String,
    /// Show a Collection, not an Offering
    #[arg(long)]
    collection: bool,
    /// Print JSON: the document, the schema of its attributes, its Actions, and what could not be used
    #[arg(long)]
    json: bool,
    /// Print the document as the Service sent it, unchecked
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    connect: Connect,
}

impl Get {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        let (service, progress) = self.connect.service(&self.origin).await?;
        let origin = service.origin();
        let out = if self.raw {
            self.raw(&service).await?
        } else if self.collection {
            let found = service.get_collection(&self.id).await;
            let found = found.map_err(|error| fault::failure(&error))?;
            progress.aside(|| notes::issues(&self.id, &found.issues));
            match self.json {
                true => collection_json(&found, origin),
                false => collection(&found, origin),
            }
            .into_bytes()
        } else {
            let found = service.get_offering(&self.id).await;
            let found = found.map_err(|error| fault::failure(&error))?;
            progress.aside(|| notes::issues(&self.id, &found.issues));
            match self.json {
                true => offering_json(&found, origin),
                false => offering(&found, origin),
            }
            .into_bytes()
        };
        progress.aside(|| output::write(out).map(|_| ExitCode::SUCCESS))
    }

    async fn raw(&self, service: &Service) -> Result<Vec<u8>, Failure> {
        let resource = match self.collection {
            true => ResourceType::Collection,
            false => ResourceType::Offering,
        };
        let fetched = service.get_raw(resource, &self.id).await;
        let fetched = fetched.map_err(|error| fault::failure(&error))?;
        Ok(output::as_received(&fetched.body))
    }
}

fn offering_json(found: &EnrichedOffering, origin: &ServiceOrigin) -> String {
    output::json_line(&json!({
        "service": origin.as_str(),
        "content_language": found.content_language,
        "offering": found.offering.to_value(Placement::TopLevel),
        "schema": found.schema.as_ref().map(purvey_agent::Schema::document),
        "actions": found.actions.iter().map(action::json).collect::<Vec<_>>(),
        "issues": notes::issues_json(&found.issues),
    }))
}

fn collection_json(found: &EnrichedCollection, origin: &ServiceOrigin) -> String {
    output::json_line(&json!({
        "service": origin.as_str(),
        "content_language": found.content_language,
        "collection": found.collection.to_value(Placement::TopLevel),
        "issues": notes::issues_json(&found.issues),
    }))
}

fn offering(found: &EnrichedOffering, origin: &ServiceOrigin) -> String {
    let offering = &found.offering;
    let mut out = heading(offering.name().as_str(), offering.description());
    out.push_str(&fields([
        ("Offering", offering.id().to_string()),
        ("Service", origin.as_str().to_owned()),
        ("Price", price(offering.price())),
        ("Collections", ids(offering.collection_ids())),
        (
            "Language",
            language(offering.language(), found.content_language.as_deref()),
        ),
        ("Languages", languages(offering.localizations())),
        ("Page", link(offering.web_url(), origin)),
        ("More", more(offering.auth_expands())),
    ]));
    out.push_str(&images(offering.images(), origin));
    let attributes = explain::attributes(offering.attributes(), found.schema.as_ref());
    if !attributes.is_empty() {
        out.push('\n');
        out.push_str(&Table::new(&["ATTRIBUTE", "VALUE", "MEANING"]).portion(attributes));
    }
    if !found.actions.is_empty() {
        out.push('\n');
        out.push_str(&action::table(&found.actions));
    }
    out
}

fn collection(found: &EnrichedCollection, origin: &ServiceOrigin) -> String {
    let collection = &found.collection;
    let mut out = heading(collection.name().as_str(), collection.description());
    out.push_str(&fields([
        ("Collection", collection.id().to_string()),
        ("Service", origin.as_str().to_owned()),
        ("In", ids(collection.parent_ids())),
        (
            "Language",
            language(collection.language(), found.content_language.as_deref()),
        ),
        ("Languages", languages(collection.localizations())),
        ("Page", link(collection.web_url(), origin)),
        ("More", more(collection.auth_expands())),
    ]));
    out.push_str(&images(collection.images(), origin));
    out
}

fn heading(name: &str, description: Option<&Description>) -> String {
    let mut out = Style::detect().bold(&text::line(name)) + "\n";
    if let Some(description) = description {
        out.push_str(&text::line(description.as_str()));
        out.push('\n');
    }
    out.push('\n');
    out
}

fn language(own: Option<&LanguageTag>, sent: Option<&str>) -> String {
    own.map(LanguageTag::as_str)
        .or(sent)
        .unwrap_or_default()
        .to_owned()
}

fn languages(localizations: Option<&Localizations>) -> String {
    let tags = localizations.map(Localizations::tags).unwrap_or_default();
    joined(tags.iter().map(LanguageTag::as_str))
}

fn link(reference: Option<&ResourceReference>, origin: &ServiceOrigin) -> String {
    reference.map_or_else(String::new, |reference| reference.resolve(origin).into())
}

fn more(auth_expands: bool) -> String {
    match auth_expands {
        true => "authentication shows more".to_owned(),
        false => String::new(),
    }
}

fn images(images: &[ResourceImage], origin: &ServiceOrigin) -> String {
    if images.is_empty() {
        return String::new();
    }
    let rows = images.iter().map(|image| {
        let size = match (image.width, image.height) {
            (Some(width), Some(height)) => format!("{}x{}", width.get(), height.get()),
            _ => String::new(),
        };
        let alt = image.alt.as_ref().map(ToString::to_string);
        vec![
            image.src.resolve(origin).into(),
            size,
            alt.unwrap_or_default(),
        ]
    });
    format!(
        "\n{}",
        Table::new(&["IMAGE", "SIZE", "SHOWS"]).portion(rows)
    )
}
