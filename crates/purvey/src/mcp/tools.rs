//! What each tool does.

use super::arguments::{
    Arguments, Capabilities, Extent, GetOffering, Inspect, InvokeAction, ListCollections,
    ListOfferings, SearchCollections, SearchOfferings, Whose, parse, take,
};
use super::output::{self, UNTRUSTED, clean, failure, fit, refused, size, success};
use super::sequences::{Beside, Call, NoSuch, Sequence, Source};
use super::server::{Server, Settings};
use purvey_agent::{Answer, EnrichedOffering, Error, Input, Issue, Service};
use purvey_odp::identity::ServiceOrigin;
use purvey_odp::offering::Placement;
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::{Map, Value, json};

/// Items of a result unless the call says otherwise.
const ITEMS: usize = 20;
/// The same for definitions, which are wanted together.
const DEFINITIONS: usize = 100;
/// Bytes for what stands around the data.
const FRAME: usize = 900;
/// Bytes of that for pointers to what was left out.
const OMITTED: usize = 300;

/// A result, or the one that says why there is none.
type Outcome = Result<CallToolResult, Box<CallToolResult>>;

/// What a tool lists.
enum Listing {
    Capabilities(Capabilities),
    Collections(ListCollections),
    Offerings(ListOfferings),
    FoundCollections(SearchCollections),
    FoundOfferings(SearchOfferings),
}

impl Listing {
    /// Nothing when the tool is none that lists.
    fn read(tool: &str, arguments: JsonObject) -> Option<Result<Self, Box<CallToolResult>>> {
        Some(match tool {
            "list_capabilities" => own(arguments).map(Self::Capabilities),
            "list_collections" => own(arguments).map(Self::Collections),
            "list_offerings" => own(arguments).map(Self::Offerings),
            "search_collections" => own(arguments).map(Self::FoundCollections),
            "search_offerings" => own(arguments).map(Self::FoundOfferings),
            _ => return None,
        })
    }

    fn source(self, service: &Service, size: usize) -> Result<Source, Box<CallToolResult>> {
        Ok(match self {
            Self::Capabilities(_) => Source::Nothing,
            Self::Collections(ListCollections {}) => {
                Source::Collections(service.collections().all().page_size(size).pages())
            }
            Self::Offerings(ListOfferings { collection }) => {
                let list = match &collection {
                    Some(collection) => service.collection_offerings(collection),
                    None => service.offerings(),
                };
                Source::Offerings(list.all().page_size(size).pages())
            }
            Self::FoundCollections(asked) => {
                if asked.roots && asked.parent.is_some() {
                    let rule = "roots and parent exclude each other";
                    return Err(refused("INVALID_ARGUMENTS", rule));
                }
                let mut search = service.search_collections().all().page_size(size);
                if let Some(query) = asked.query {
                    search = search.query(query);
                }
                if let Some(parent) = &asked.parent {
                    search = search.children_of(parent);
                }
                if asked.roots {
                    search = search.roots();
                }
                Source::Collections(search.pages())
            }
            Self::FoundOfferings(asked) => {
                let mut search = service.search().all().page_size(size);
                if let Some(query) = asked.query {
                    search = search.query(query);
                }
                for filter in asked.filters {
                    search = search.filter_named(&filter.id, &filter.operator, filter.value);
                }
                if let Some(sort) = &asked.sort {
                    search = search.sort(sort);
                }
                for refinement in &asked.refinements {
                    search = search.refine(refinement);
                }
                if let Some(collection) = &asked.collection {
                    search = search.in_collection(collection);
                }
                if asked.include_descendants {
                    search = search.descendants();
                }
                Source::Offerings(search.pages())
            }
        })
    }
}

impl Server {
    /// Carries out a call; nothing when there is no such tool.
    pub(super) async fn call(&self, tool: &str, arguments: JsonObject) -> Option<CallToolResult> {
        let outcome = match tool {
            "inspect_service" => self.inspect(arguments).await,
            "get_offering" => self.offering(arguments).await,
            "invoke_action" if self.settings.allow_invoke => self.invoke(arguments).await,
            _ => self.list(tool, arguments).await?,
        };
        Some(outcome.unwrap_or_else(|failed| *failed))
    }

    async fn inspect(&self, mut arguments: JsonObject) -> Outcome {
        let Whose { origin } = shared(&mut arguments)?;
        let Inspect {} = own(arguments)?;
        let service = self.service(&origin).await?;
        let mut omitted = Vec::new();
        let met = self.issues(service.issues());
        let document = service.document().to_value();
        let document = self.fitted(document, &met, "", &mut omitted);
        let mut result = frame(&service, json!({"document": document}));
        note_omitted(&mut result, omitted, "");
        note_issues(&mut result, met);
        Ok(success(result.into()))
    }

    /// Nothing when the tool is none that lists.
    async fn list(&self, tool: &str, mut arguments: JsonObject) -> Option<Outcome> {
        let read = shared(&mut arguments)
            .and_then(|whose: Whose| Ok((whose, shared::<Extent>(&mut arguments)?)));
        let listing = Listing::read(tool, arguments.clone())?;
        let (Whose { origin }, extent) = match read {
            Ok(read) => read,
            Err(failed) => return Some(Err(failed)),
        };
        Some(match listing {
            Ok(listing) => self.listed(tool, &origin, extent, listing, arguments).await,
            Err(failed) => Err(failed),
        })
    }

    async fn listed(
        &self,
        tool: &str,
        origin: &str,
        extent: Extent,
        listing: Listing,
        arguments: JsonObject,
    ) -> Outcome {
        if extent.limit.is_some_and(|n| !(1..=100).contains(&n)) {
            return Err(refused("INVALID_ARGUMENTS", "limit must be 1 through 100"));
        }
        let service = self.service(origin).await?;
        let call = Call {
            tool: tool.to_owned(),
            origin: service.origin().as_str().to_owned(),
            arguments,
        };
        if let Some(name) = extent.continuation {
            return self.go_on(&service, &name, &call, extent.limit).await;
        }
        let (mut waiting, mut issues, mut usual) = (Vec::new(), Vec::new(), ITEMS);
        if let Listing::Capabilities(asked) = &listing {
            let found = service.capabilities(asked.collection.as_deref()).await;
            let found = found.map_err(|error| self.failed(&error))?;
            let filters = found.effective.filters().iter();
            waiting.extend(filters.map(|filter| json!({"filter": filter.to_value()})));
            let sorts = found.effective.sorts().iter();
            waiting.extend(sorts.map(|sort| json!({"sort": sort.to_value()})));
            issues = self.issues(&found.issues);
            usual = DEFINITIONS;
        }
        let limit = extent.limit.unwrap_or(usual);
        let mut sequence = Sequence::new(call, limit, listing.source(&service, limit)?);
        sequence.waiting.extend(waiting);
        let beside = sequence.fill().await.map_err(|error| self.failed(&error))?;
        Ok(self.page(&service, sequence, limit, beside, issues))
    }

    async fn offering(&self, mut arguments: JsonObject) -> Outcome {
        let Whose { origin } = shared(&mut arguments)?;
        let GetOffering { id, part } = own(arguments)?;
        let service = self.service(&origin).await?;
        let read = service.get_offering(&id).await;
        let EnrichedOffering {
            offering,
            actions,
            issues: met,
            ..
        } = read.map_err(|error| self.failed(&error))?;
        let usable: Vec<_> = actions.iter().map(|a| a.action().id.as_str()).collect();
        let document = offering.to_value(Placement::TopLevel);
        let part = part.unwrap_or_default();
        let Some(wanted) = document.pointer(&part).cloned() else {
            let why = format!("the Offering has no {part:?}");
            return Err(refused("NO_SUCH_PART", &why));
        };
        let mut omitted = Vec::new();
        let met = self.issues(&met);
        let fitted = self.fitted(wanted, &met, &part, &mut omitted);
        let name = if part.is_empty() { "offering" } else { "part" };
        let mut data = json!({name: fitted});
        if self.settings.allow_invoke && !usable.is_empty() {
            data["usable_actions"] = json!(usable);
        }
        let mut result = frame(&service, data);
        let how = "get_offering with part fetches one of those omitted; a text that is too long for any result cannot be had";
        note_omitted(&mut result, omitted, how);
        note_issues(&mut result, met);
        Ok(success(result.into()))
    }

    async fn invoke(&self, mut arguments: JsonObject) -> Outcome {
        let Whose { origin } = shared(&mut arguments)?;
        let arguments: InvokeAction = own(arguments)?;
        let service = self.service(&origin).await?;
        let offering = service.get_offering(&arguments.offering);
        let offering = offering.await.map_err(|error| self.failed(&error))?;
        let Some(action) = offering.action(&arguments.action) else {
            let why = format!("the Offering has no usable Action {:?}", arguments.action);
            return Err(refused("NO_SUCH_ACTION", &why));
        };
        let mut input = Input::new();
        if let Some(body) = arguments.input {
            input = input.json(body);
        }
        for (name, value) in arguments.parameters {
            input = input.parameter(name, value);
        }
        let answer = service
            .invoke(action, input)
            .await
            .map_err(|error| self.failed(&error))?;
        Ok(success(self.answer(&service, &answer).into()))
    }

    fn answer(&self, service: &Service, answer: &Answer) -> Map<String, Value> {
        let media_type = answer.headers.get(http::header::CONTENT_TYPE);
        let media_type = media_type.and_then(|field| field.to_str().ok());
        let mut omitted = Vec::new();
        let body = match serde_json::from_slice::<Value>(&answer.body) {
            Ok(value) => self.fitted(value, &[], "", &mut omitted),
            Err(_) => std::str::from_utf8(&answer.body)
                .ok()
                .map(|text| clean(json!(text)))
                .filter(|text| size(text) <= self.room()),
        };
        if body.is_none() && !answer.body.is_empty() && omitted.is_empty() {
            omitted.push(String::new());
        }
        let mut result = frame(service, json!({"media_type": media_type, "body": body}));
        result.insert("status".to_owned(), json!(answer.status.as_u16()));
        result.insert("bytes".to_owned(), json!(answer.body.len()));
        note_omitted(&mut result, omitted, "the Action was invoked all the same");
        result
    }

    /// The Service at an origin that may be asked.
    async fn service(&self, origin: &str) -> Result<Service, Box<CallToolResult>> {
        let Settings { reach, origins, .. } = &self.settings;
        let origin = reach
            .origin(origin)
            .map_err(|failure| refused("INVALID_ARGUMENTS", failure.message()))?;
        if !origins.is_empty() && !origins.contains(&origin) {
            let known: Vec<_> = origins.iter().map(ServiceOrigin::as_str).collect();
            let why = format!("only these Services can be asked: {}", known.join(", "));
            return Err(refused("ORIGIN_NOT_ALLOWED", &why));
        }
        self.agent
            .service(origin.as_str())
            .await
            .map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &Error) -> Box<CallToolResult> {
        failure(error, self.settings.max_bytes)
    }

    /// What could not be used, in a quarter of a result.
    fn issues(&self, issues: &[Issue]) -> Vec<Value> {
        output::issues(issues, self.settings.max_bytes / 4)
    }

    /// As much of a document as fits beside its issues.
    fn fitted(
        &self,
        document: Value,
        issues: &[Value],
        pointer: &str,
        omitted: &mut Vec<String>,
    ) -> Option<Value> {
        let room = self.room().saturating_sub(bytes(issues));
        fit(clean(document), room, pointer, omitted)
    }

    /// Bytes for data in one result.
    fn room(&self) -> usize {
        self.settings.max_bytes.saturating_sub(FRAME)
    }

    async fn go_on(
        &self,
        service: &Service,
        name: &str,
        call: &Call,
        limit: Option<usize>,
    ) -> Outcome {
        let taken = self.with_sequences(|sequences| sequences.take(name, call));
        let mut sequence = taken.map_err(|why| match why {
            NoSuch::Name => {
                let why = "the continuation is unknown or was used before; call again without it";
                refused("UNKNOWN_CONTINUATION", why)
            }
            NoSuch::Call => {
                let why = "the continuation is of another tool or Service; go on by the call that gave it";
                refused("UNKNOWN_CONTINUATION", why)
            }
            NoSuch::Argument(name) => {
                let why = format!(
                    "with this continuation, {name} must be what it was, or be left out; call without continuation to begin anew"
                );
                refused("INVALID_ARGUMENTS", &why)
            }
        })?;
        match sequence.fill().await {
            Ok(beside) => {
                let limit = limit.unwrap_or(sequence.limit);
                Ok(self.page(service, sequence, limit, beside, Vec::new()))
            }
            Err(error) => {
                // The page can be asked for again.
                if error.retryable() {
                    self.with_sequences(|s| s.put_back(name.to_owned(), sequence));
                }
                Err(self.failed(&error))
            }
        }
    }

    /// As many items as fit, and `limit` at most; the rest waits under a name.
    fn page(
        &self,
        service: &Service,
        mut sequence: Sequence,
        limit: usize,
        beside: Beside,
        issues: Vec<Value>,
    ) -> CallToolResult {
        let Beside {
            refinements,
            auth_expands,
        } = beside;
        let mut left = self.room();
        let mut omitted = Vec::new();
        let counted = match refinements.is_empty() {
            true => None,
            // Half of the room at most: the items are what was asked for first.
            false => fit(
                clean(refinements.into()),
                left / 2,
                "/refinements",
                &mut omitted,
            ),
        };
        left = left.saturating_sub(counted.as_ref().map_or(0, size));
        left = left.saturating_sub(bytes(&issues));
        let mut items = Vec::new();
        while items.len() < limit
            && let Some(item) = sequence.waiting.pop_front()
        {
            let item = clean(item);
            let size = size(&item) + 1;
            if size > left && !items.is_empty() {
                sequence.waiting.push_front(item);
                break;
            }
            let item = match size > left {
                true => reduced(&item),
                false => item,
            };
            left = left.saturating_sub(size);
            items.push(item);
        }
        let mut data = json!({"items": items});
        if let (Some(counted), Value::Object(map)) = (counted, &mut data) {
            map.insert("refinements".to_owned(), counted);
        }
        let mut result = frame(service, data);
        if auth_expands {
            result.insert("authentication_shows_more".to_owned(), json!(true));
        }
        note_omitted(&mut result, omitted, "");
        note_issues(&mut result, issues);
        let complete = sequence.is_over();
        result.insert("complete".to_owned(), json!(complete));
        if !complete {
            let name = self.with_sequences(|sequences| sequences.keep(sequence));
            result.insert("continuation".to_owned(), json!(name));
            let note = "There is more: call the same tool with origin and continuation.";
            result.insert("note".to_owned(), json!(note));
        }
        success(result.into())
    }
}

/// Arguments that several tools have.
fn shared<T: Arguments>(arguments: &mut JsonObject) -> Result<T, Box<CallToolResult>> {
    take(arguments).map_err(|error| unfit(&error))
}

/// The tool's own arguments: what is left.
fn own<T: Arguments>(arguments: JsonObject) -> Result<T, Box<CallToolResult>> {
    parse(arguments).map_err(|error| unfit(&error))
}

fn unfit(error: &serde_json::Error) -> Box<CallToolResult> {
    refused("INVALID_ARGUMENTS", &error.to_string())
}

/// What a result begins with.
fn frame(service: &Service, data: Value) -> Map<String, Value> {
    let mut result = Map::new();
    result.insert("service".to_owned(), json!(service.origin().as_str()));
    result.insert(UNTRUSTED.to_owned(), data);
    result
}

/// Adds to what the Service said, or what is made of it.
fn note(result: &mut Map<String, Value>, name: &str, value: Value) {
    if let Some(Value::Object(data)) = result.get_mut(UNTRUSTED) {
        data.insert(name.to_owned(), value);
    }
}

/// Pointers to what was left out: they are made of the Service's names.
fn note_omitted(result: &mut Map<String, Value>, omitted: Vec<String>, how: &str) {
    if omitted.is_empty() {
        return;
    }
    let (all, mut left) = (omitted.len(), OMITTED);
    let told: Vec<_> = omitted
        .into_iter()
        .take_while(|pointer| {
            let fits = pointer.len() <= left;
            left = left.saturating_sub(pointer.len() + 3);
            fits
        })
        .collect();
    if told.len() < all {
        note(result, "omitted_besides", json!(all - told.len()));
    }
    note(result, "omitted", json!(told));
    if !how.is_empty() {
        result.insert("note".to_owned(), json!(how));
    }
}

/// What could not be used. The sentences may quote the Service.
fn note_issues(result: &mut Map<String, Value>, issues: Vec<Value>) {
    if !issues.is_empty() {
        note(result, "issues", issues.into());
    }
}

/// Bytes of a list.
fn bytes(values: &[Value]) -> usize {
    values.iter().map(|value| size(value) + 1).sum()
}

/// What is left of an item that is larger than a whole result.
fn reduced(item: &Value) -> Value {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let name = Some(text("name")).filter(|name| name.len() <= 256);
    json!({"id": text("id"), "name": name, "reduced": true})
}
