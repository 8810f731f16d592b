//! What an Agent makes of an Offering that refers to other documents.

use super::complete;
use crate::adapter::Role;
use crate::agent::{builder, built, guarded, run, visit};
use crate::case::{Fault, Input, Outcome};
use crate::peer::{self, Site};
use crate::service::MANIFEST;
use futures_util::future::BoxFuture;
use purvey_agent::transport::{Fetch, Fetched, Guarded, Operation, Transport};
use purvey_agent::{EnrichedOffering, Error, IssueCode, Scope, Service};
use purvey_catalog::manifest::Manifest;
use purvey_odp::media;
use serde_json::{Map, Value, json};
use url::Url;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
const SCHEMA: &str = "/schemas/item.json";
const OPENAPI: &str = "/openapi.json";

/// A Service without optional operations; its Service Document has these further members.
pub(super) fn site(members: Map<String, Value>) -> Site {
    let document = complete::service_document(&["list-offerings", "get-offering"], members);
    Site::new(&document)
}

/// An Offering with these members, under the identifier that [`offering_of`] reads.
pub(super) fn offering(members: Value) -> peer::Reply {
    let mut offering = json!({"odp_version": "1.0", "id": "item", "name": "Item"});
    if let (Value::Object(offering), Value::Object(members)) = (&mut offering, members) {
        offering.extend(members);
    }
    peer::Reply::document(&offering)
}

/// Where that Offering is.
pub(super) const OFFERING: &str = "/odp/offerings/item";

/// Reads that Offering with everything that it refers to.
pub(super) async fn offering_of(service: &Service) -> Result<EnrichedOffering, Fault> {
    let found = service.get_offering("item").await;
    found.map_err(Fault::of("Offering"))
}

fn read(site: Site) -> Result<EnrichedOffering, Fault> {
    let peer = site.start()?;
    visit(&peer, guarded(), async |service| {
        offering_of(&service).await
    })
}

/// Whether all is well. When it is not, there must be one issue, about that and for one of these reasons.
fn usable(
    found: &EnrichedOffering,
    usable: bool,
    scope: Scope,
    reasons: &[IssueCode],
) -> Result<bool, Fault> {
    match &found.issues[..] {
        [] if usable => Ok(true),
        [issue] if !usable && issue.scope == scope && reasons.contains(&issue.code) => Ok(false),
        issues => Err(Fault(format!("usable: {usable}, but {issues:?}"))),
    }
}

/// Whether an Action can be used whose operation is, or is not, in this OpenAPI document. A Service does not look into the
/// document, but publishes no Action without one.
pub(super) fn openapi(role: Role, input: &Input) -> Result<Outcome, Fault> {
    let target = input.member("target")?;
    let document: Map<String, Value> = input.read("document")?;
    let ids = document.get("operation_ids").and_then(Value::as_array);
    let paths: Map<String, Value> = ids
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(i, id)| {
            (
                format!("/{i}"),
                json!({"post": {"operationId": id, "responses": {}}}),
            )
        })
        .collect();
    let openapi = json!({
        "openapi": document.get("openapi"),
        "info": {"title": "Example", "version": "1"},
        "paths": paths,
    });
    let mut http = json!({"endpoint_base": "/odp/"});
    let inherited = input.get("service_openapi");
    if let Some(inherited) = inherited {
        http["openapi"] = json!({"url": inherited});
    }
    let action =
        json!({"id": "act", "rel": "invoke", "authentication": "required", "openapi": target});
    if role == Role::Service {
        let named = target.get("url").is_some() || inherited.is_some();
        if published(&action, inherited)? != named {
            return Err(Fault(format!("a Service may publish it: {}", !named)));
        }
    }
    let found = read(
        site(Map::from_iter([("http".to_owned(), http)]))
            .on(OFFERING, offering(json!({"actions": [action]})))
            .on(OPENAPI, peer::Reply::json("application/json", &openapi)),
    )?;
    let reasons = [
        IssueCode::OperationMissing,
        IssueCode::OperationAmbiguous,
        IssueCode::Unsupported,
    ];
    let valid = usable(
        &found,
        found.action("act").is_some(),
        Scope::Action,
        &reasons,
    )?;
    Ok(Outcome::valid(valid))
}

/// Whether our Service, with this OpenAPI document or none, takes an Offering with the Action.
fn published(action: &Value, openapi: Option<&Value>) -> Result<bool, Fault> {
    let mut manifest = MANIFEST.to_owned();
    if let Some(url) = openapi {
        manifest += &format!("openapi = {{ url = {url} }}\n");
    }
    let manifest = Manifest::parse_embedded(&manifest, &[]).map_err(Fault::of("manifest"))?;
    let offering = json!({"id": "item", "name": "Item", "actions": [action]});
    crate::service::Service::with_manifest(&manifest)?.put("offerings", &offering)
}

fn with_schema(url: &str) -> peer::Reply {
    offering(json!({"schema": {"url": url}, "attributes": {"model": "A100"}}))
}

/// Whether the attributes can be interpreted; without that, an Agent has none of them.
fn interpreted(found: &EnrichedOffering, reasons: &[IssueCode]) -> Result<bool, Fault> {
    let has_schema = found.schema.is_some();
    if found.offering.attributes().is_empty() == has_schema {
        return Err(Fault(format!(
            "a schema: {has_schema}, but {:?}",
            found.offering
        )));
    }
    usable(found, has_schema, Scope::Attributes, reasons)
}

/// Whether an Agent uses a schema that comes like this.
pub(super) fn response(input: &Input) -> Result<Outcome, Fault> {
    let (status, content_type): (u16, String) =
        (input.read("status")?, input.read("content_type")?);
    let schema = peer::Reply::new(status)
        .with("content-type", &content_type)
        .body(input.member("document")?.to_string());
    let found = read(
        site(Map::new())
            .on(OFFERING, with_schema(SCHEMA))
            .on(SCHEMA, schema),
    )?;
    let reasons = [IssueCode::Unavailable, IssueCode::Unsupported];
    Ok(Outcome::valid(interpreted(&found, &reasons)?))
}

/// A network in which every host is one peer. What is asked for goes there under its path, and what comes is of the URL that was
/// asked for.
struct Everywhere {
    peer: Url,
    transport: Guarded,
}

impl Transport for Everywhere {
    fn fetch<'a>(
        &'a self,
        operation: &'a Operation,
        mut fetch: Fetch,
    ) -> BoxFuture<'a, Result<Fetched, Error>> {
        Box::pin(async move {
            let asked = fetch.url.clone();
            fetch.url = self.peer.clone();
            fetch.url.set_path(asked.path());
            fetch.url.set_query(asked.query());
            let mut fetched = self.transport.fetch(operation, fetch).await?;
            fetched.url = asked;
            Ok(fetched)
        })
    }
}

/// Whether an Agent uses the first of schemas that refer to each other like this.
pub(super) fn profile(input: &Input) -> Result<Outcome, Fault> {
    let documents: Vec<Value> = input.read("documents")?;
    let mut served = site(Map::new());
    for (i, document) in documents.iter().enumerate() {
        let id = document.get("$id").and_then(Value::as_str);
        let url = match id {
            Some(id) => id.to_owned(),
            None => format!("https://schemas.example/{i}.json"),
        };
        let path = Url::parse(&url)
            .map_err(Fault::of("$id"))?
            .path()
            .to_owned();
        served = served.on(&path, peer::Reply::json(media::SCHEMA, document));
        if i == 0 {
            served = served.on(OFFERING, with_schema(&url));
        }
    }
    let peer = served.start()?;
    let everywhere = Everywhere {
        peer: peer.url("/")?,
        transport: built(guarded())?,
    };
    let agent = builder(everywhere).build().map_err(Fault::of("Agent"))?;
    let found = run(async {
        let service = agent.service("https://market.example").await;
        offering_of(&service.map_err(Fault::of("Service"))?).await
    })?;
    Ok(Outcome::valid(interpreted(
        &found,
        &[IssueCode::Unsupported],
    )?))
}

/// Whether attributes that lack a required member are held to the whole schema. Those of a Terse Representation are used as they
/// are, and nobody even asks for the schema.
pub(super) fn scope(input: &Input) -> Result<Outcome, Fault> {
    let schema = json!({"$schema": DIALECT, "type": "object", "required": ["model", "colour"]});
    let item = json!({
        "id": "item", "name": "Item", "schema": {"url": SCHEMA}, "attributes": {"model": "A100"},
    });
    let site = site(Map::new())
        .on(OFFERING, with_schema(SCHEMA))
        .on(
            "/odp/offerings",
            peer::Reply::document(&json!({"odp_version": "1.0", "items": [item]})),
        )
        .on(SCHEMA, peer::Reply::json(media::SCHEMA, &schema));
    let representation: String = input.read("representation")?;
    let complete = match representation.as_str() {
        "full" => !interpreted(&read(site)?, &[IssueCode::Mismatch])?,
        "terse" => listed(site)?,
        _ => {
            return Err(Fault(format!(
                "the representation {representation} is not known"
            )));
        }
    };
    Ok(Outcome::new().with("complete_instance_validation", complete))
}

/// Whether anything was done to the attributes of the one item of a list.
fn listed(site: Site) -> Result<bool, Fault> {
    let peer = site.start()?;
    let items = visit(&peer, guarded(), async |service| {
        service
            .offerings()
            .collect()
            .await
            .map_err(Fault::of("list"))
    })?;
    let [item] = &items[..] else {
        return Err(Fault(format!("there is not one item: {items:?}")));
    };
    let same = item
        .attributes()
        .get("model")
        .is_some_and(|model| model == "A100");
    Ok(!same || !peer.at(SCHEMA).is_empty())
}

/// What is left of an Offering whose schema cannot be had.
pub(super) fn failure(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let status: String = input.read("schema_status")?;
    if status != "unavailable" {
        return Err(Fault(format!("the schema status {status} is not known")));
    }
    let found = read(
        site(Map::new())
            .on(OFFERING, with_schema(SCHEMA))
            .on(SCHEMA, peer::Reply::problem(503, "SERVICE_UNAVAILABLE")),
    )?;
    let told = found
        .issues
        .iter()
        .any(|issue| issue.scope == Scope::Attributes && issue.code == IssueCode::Unavailable);
    let expected = json!({
        "offering_usable": found.offering.name().as_str() == "Item",
        "attributes_usable": !found.offering.attributes().is_empty(),
        "report_issue": told,
    });
    Ok(Outcome::new().with("expected", expected))
}

/// Whether an Agent uses a schema that needs all these documents, the first of which is the schema.
pub(super) fn graph(documents: &[String]) -> Result<bool, Fault> {
    let mut served = site(Map::new()).on(OFFERING, with_schema("/0.json"));
    for (i, document) in documents.iter().enumerate() {
        let reply = peer::Reply::new(200).with("content-type", media::SCHEMA);
        served = served.on(&format!("/{i}.json"), reply.body(document.as_str()));
    }
    interpreted(&read(served)?, &[IssueCode::ResponseLimitExceeded])
}
