//! `purvey inspect`

use super::{connect::Connect, fault, notes, progress::Progress, row::joined};
use crate::{
    failure::Failure,
    output::{self, Style},
    table::{Table, fields},
    text,
};
use purvey_agent::Service;
use purvey_odp::{
    capability::{CapabilitySource, SearchCapabilities},
    identity::ServiceOrigin,
    language::LanguageTag,
    reference::ResourceReference,
    service::{Keyword, Payment, Protocols, ServiceDocument},
};
use serde_json::json;
use std::process::ExitCode;

/// Which Service.
#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    /// The Service
    #[arg(value_name = "ORIGIN")]
    origin: String,
    /// Print JSON: the Service Document, and what of it could not be used
    #[arg(long)]
    json: bool,
    /// Print the Service Document as the Service sent it, unchecked
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    connect: Connect,
}

impl Inspect {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        if self.raw {
            return self.raw().await;
        }
        let (service, progress) = self.connect.service(&self.origin).await?;
        let out = match self.json {
            true => output::json_line(&json!({
                "service": service.origin().as_str(),
                "content_language": service.content_language(),
                "document": service.document().to_value(),
                "issues": notes::issues_json(service.issues()),
            })),
            false => shown(&service),
        };
        progress.aside(|| {
            notes::issues("Service Document", service.issues());
            output::write(out).map(|_| ExitCode::SUCCESS)
        })
    }

    /// Also when it is of no use otherwise.
    async fn raw(&self) -> Result<ExitCode, Failure> {
        let origin = self.connect.origin(&self.origin)?;
        let agent = self.connect.agent(&origin)?;
        let progress = Progress::start();
        let fetched = agent.get_raw(origin.as_str()).await;
        let fetched = fetched.map_err(|error| fault::failure(&error))?;
        let out = output::as_received(&fetched.body);
        progress.aside(|| output::write(out).map(|_| ExitCode::SUCCESS))
    }
}

fn shown(service: &Service) -> String {
    let document = service.document();
    let name = Style::detect().bold(&text::line(document.name().as_str()));
    let description = text::line(document.description().as_str());
    let mut out = format!("{name}\n{description}\n\n");
    out.push_str(&fields(facts(document, service.origin())));
    let rows = document.operations().iter().map(|operation| {
        let name = operation.name.as_str().to_owned();
        vec![name, operation.authentication.as_str().to_owned()]
    });
    out.push('\n');
    out.push_str(&Table::new(&["OPERATION", "AUTHENTICATION"]).portion(rows));
    out
}

fn facts(document: &ServiceDocument, origin: &ServiceOrigin) -> Vec<(&'static str, String)> {
    let link = |reference: &Option<ResourceReference>| {
        let url = reference
            .as_ref()
            .map(|reference| reference.resolve(origin));
        url.map(String::from).unwrap_or_default()
    };
    let links = document.links();
    let languages = document
        .localizations()
        .tags()
        .iter()
        .map(LanguageTag::as_str);
    let keywords = document.keywords().as_slice().iter().map(Keyword::as_str);
    let mcp: Vec<String> = document
        .mcp()
        .iter()
        .map(|endpoint| endpoint.url.resolve(origin).into())
        .collect();
    let payment_origins = document.payment_origins().iter().map(ServiceOrigin::as_str);
    vec![
        ("Service", origin.as_str().to_owned()),
        ("Language", document.language().as_str().to_owned()),
        ("Languages", joined(languages)),
        ("Keywords", joined(keywords)),
        ("Website", link(&links.website_url)),
        ("Documentation", link(&links.documentation_url)),
        ("Support", link(&links.support_url)),
        ("Status", link(&links.status_url)),
        ("OpenAPI", link(&document.http().openapi)),
        ("MCP", joined(mcp.iter().map(String::as_str))),
        (
            "Protocols",
            document.protocols().map(protocols).unwrap_or_default(),
        ),
        ("Payment to", joined(payment_origins)),
        (
            "Search by",
            document
                .search_capabilities()
                .map(search)
                .unwrap_or_default(),
        ),
    ]
}

fn protocols(protocols: &Protocols) -> String {
    let mut names = Vec::new();
    if protocols.enrollment() {
        names.push("enrollment: aep".to_owned());
    }
    names.extend(protocols.payments().iter().map(payment));
    if protocols.trust() {
        names.push("trust: tap".to_owned());
    }
    names.join("; ")
}

fn payment(payment: &Payment) -> String {
    let options = payment.options().iter().map(|option| option.as_str());
    let mut text = format!("payment: {}", payment.name().as_str());
    let options = joined(options);
    if !options.is_empty() {
        text.push_str(&format!(" ({options})"));
    }
    if payment.authentication_required() {
        text.push_str(", authenticated");
    }
    text
}

fn search(capabilities: &SearchCapabilities) -> String {
    fn of<T>(source: Option<&CapabilitySource<T>>, kind: &str) -> Option<String> {
        Some(match source? {
            CapabilitySource::Inline(definitions) => match definitions.len() {
                1 => format!("1 {kind}"),
                n => format!("{n} {kind}s"),
            },
            CapabilitySource::Linked(_) => format!("linked {kind}s"),
        })
    }
    let parts = [
        of(capabilities.filters(), "filter"),
        of(capabilities.sorts(), "sort"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("{}: see `purvey capabilities`", parts.join(", ")),
    }
}
