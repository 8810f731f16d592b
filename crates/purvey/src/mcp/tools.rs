//! What each tool does.

use super::arguments::{
    Capabilities, GetOffering, Inspect, InvokeAction, ListCollections, ListOfferings,
    SearchCollections, SearchOfferings,
};
use super::output::{self, UNTRUSTED, clean, failure, fit, refused, size, success};
use super::sequences::{Beside, Sequence, Source};
use super::server::{Server, Settings};
use purvey_agent::{Answer, EnrichedOffering, Error, Input, Issue, Pages, Service};
use purvey_odp::identity::ServiceOrigin;
use purvey_odp::offering::Placement;
use rmcp::model::CallToolResult;
use serde_json::{Map, Value, json};

/// Items of a result unless the call says otherwise.
const ITEMS: usize = 20;
/// Bytes for what stands around the data.
const FRAME: usize = 900;
/// Bytes of that for pointers to what was left out.
const OMITTED: usize = 300;

/// A result, or the one that says why there is none.
type Outcome = Result<CallToolResult, CallToolResult>;

fn told(outcome: Outcome) -> CallToolResult {
    outcome.unwrap_or_else(|failed| failed)
}

impl Server {
    pub(super) async fn inspect(&self, Inspect { origin }: Inspect) -> CallToolResult {
        told(self.inspected(&origin).await)
    }

    async fn inspected(&self, origin: &str) -> Outcome {
        let service = self.service(origin).await?;
        let mut omitted = Vec::new();
        let met = self.issues(service.issues());
        let document = service.document().to_value();
        let document = self.fitted(document, &met, "", &mut omitted);
        let mut result = frame(&service, json!({"document": document}));
        note_omitted(&mut result, omitted, "");
        note_issues(&mut result, met);
        Ok(success(result.into()))
    }

    pub(super) async fn capabilities(&self, arguments: Capabilities) -> CallToolResult {
        told(self.capabilities_told(arguments).await)
    }

    async fn capabilities_told(&self, arguments: Capabilities) -> Outcome {
        let service = self.service(&arguments.origin).await?;
        if let Some(name) = arguments.continuation {
            return self.go_on(&service, &name).await;
        }
        let collection = arguments.collection.as_deref();
        let capabilities = service
            .capabilities(collection)
            .await
            .map_err(|error| self.failed(&error))?;
        let effective = &capabilities.effective;
        let filters = effective.filters().iter();
        let filters = filters.map(|filter| json!({"filter": filter.to_value()}));
        let sorts = effective.sorts().iter();
        let sorts = sorts.map(|sort| json!({"sort": sort.to_value()}));
        let mut sequence = Sequence::new(service.origin().as_str(), Source::Nothing);
        sequence.waiting.extend(filters.chain(sorts));
        let told = self.issues(&capabilities.issues);
        Ok(self.page(&service, sequence, Beside::default(), told))
    }

    pub(super) async fn list_collections(&self, arguments: ListCollections) -> CallToolResult {
        told(self.collections(arguments).await)
    }

    async fn collections(&self, arguments: ListCollections) -> Outcome {
        let service = self.service(&arguments.origin).await?;
        if let Some(name) = arguments.continuation {
            return self.go_on(&service, &name).await;
        }
        let limit = limit(arguments.limit).ok_or_else(beyond)?;
        let pages = service.collections().all().page_size(limit).pages();
        self.begin(&service, Source::Collections(pages)).await
    }

    pub(super) async fn list_offerings(&self, arguments: ListOfferings) -> CallToolResult {
        told(self.offerings(arguments).await)
    }

    async fn offerings(&self, arguments: ListOfferings) -> Outcome {
        let service = self.service(&arguments.origin).await?;
        if let Some(name) = arguments.continuation {
            return self.go_on(&service, &name).await;
        }
        let list = match &arguments.collection {
            Some(collection) => service.collection_offerings(collection),
            None => service.offerings(),
        };
        let pages = list
            .all()
            .page_size(limit(arguments.limit).ok_or_else(beyond)?)
            .pages();
        self.begin(&service, Source::Offerings(pages)).await
    }

    pub(super) async fn search_offerings(&self, arguments: SearchOfferings) -> CallToolResult {
        told(self.found_offerings(arguments).await)
    }

    async fn found_offerings(&self, arguments: SearchOfferings) -> Outcome {
        let service = self.service(&arguments.origin).await?;
        if let Some(name) = arguments.continuation {
            return self.go_on(&service, &name).await;
        }
        let mut search = service
            .search()
            .all()
            .page_size(limit(arguments.limit).ok_or_else(beyond)?);
        if let Some(query) = arguments.query {
            search = search.query(query);
        }
        for filter in arguments.filters {
            search = search.filter_named(&filter.id, &filter.operator, filter.value);
        }
        if let Some(sort) = &arguments.sort {
            search = search.sort(sort);
        }
        for refinement in &arguments.refinements {
            search = search.refine(refinement);
        }
        if let Some(collection) = &arguments.collection {
            search = search.in_collection(collection);
        }
        if arguments.include_descendants {
            search = search.descendants();
        }
        self.begin(&service, Source::Offerings(search.pages()))
            .await
    }

    pub(super) async fn search_collections(&self, arguments: SearchCollections) -> CallToolResult {
        told(self.found_collections(arguments).await)
    }

    async fn found_collections(&self, arguments: SearchCollections) -> Outcome {
        let service = self.service(&arguments.origin).await?;
        if let Some(name) = arguments.continuation {
            return self.go_on(&service, &name).await;
        }
        if arguments.roots && arguments.parent.is_some() {
            let rule = "roots and parent exclude each other";
            return Err(refused("INVALID_ARGUMENTS", rule));
        }
        let mut search = service
            .search_collections()
            .all()
            .page_size(limit(arguments.limit).ok_or_else(beyond)?);
        if let Some(query) = arguments.query {
            search = search.query(query);
        }
        if let Some(parent) = &arguments.parent {
            search = search.children_of(parent);
        }
        if arguments.roots {
            search = search.roots();
        }
        let pages: Pages<_> = search.pages();
        self.begin(&service, Source::Collections(pages)).await
    }

    pub(super) async fn get_offering(&self, arguments: GetOffering) -> CallToolResult {
        told(self.offering(arguments).await)
    }

    async fn offering(&self, arguments: GetOffering) -> Outcome {
        let service = self.service(&arguments.origin).await?;
        let read = service
            .get_offering(&arguments.id)
            .await
            .map_err(|error| self.failed(&error))?;
        let EnrichedOffering {
            offering,
            actions,
            issues: met,
            ..
        } = read;
        let usable: Vec<_> = actions.iter().map(|a| a.action().id.as_str()).collect();
        let document = offering.to_value(Placement::TopLevel);
        let part = arguments.part.unwrap_or_default();
        let Some(wanted) = document.pointer(&part).cloned() else {
            let why = format!("the Offering has no {part:?}");
            return Err(refused("NO_SUCH_PART", &why));
        };
        let mut omitted = Vec::new();
        let met = self.issues(&met);
        let fitted = self.fitted(wanted, &met, &part, &mut omitted);
        let name = if part.is_empty() { "offering" } else { "part" };
        let mut result = frame(&service, json!({name: fitted}));
        if self.settings.allow_invoke && !usable.is_empty() {
            result.insert("usable_actions".to_owned(), json!(usable));
        }
        let how = "get_offering with part fetches one of them; a text that is too long for any result cannot be had";
        note_omitted(&mut result, omitted, how);
        note_issues(&mut result, met);
        Ok(success(result.into()))
    }

    pub(super) async fn invoke_action(&self, arguments: InvokeAction) -> CallToolResult {
        told(self.invoked(arguments).await)
    }

    async fn invoked(&self, arguments: InvokeAction) -> Outcome {
        let service = self.service(&arguments.origin).await?;
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
    async fn service(&self, origin: &str) -> Result<Service, CallToolResult> {
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

    fn failed(&self, error: &Error) -> CallToolResult {
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

    async fn begin(&self, service: &Service, source: Source) -> Outcome {
        let mut sequence = Sequence::new(service.origin().as_str(), source);
        let beside = sequence.fill().await.map_err(|error| self.failed(&error))?;
        Ok(self.page(service, sequence, beside, Vec::new()))
    }

    async fn go_on(&self, service: &Service, name: &str) -> Outcome {
        let origin = service.origin().as_str();
        let taken = self.with_sequences(|sequences| sequences.take(name, origin));
        let Some(mut sequence) = taken else {
            let why = "the continuation is unknown, was used before, or is of another Service; call again without it";
            return Err(refused("UNKNOWN_CONTINUATION", why));
        };
        match sequence.fill().await {
            Ok(beside) => Ok(self.page(service, sequence, beside, Vec::new())),
            Err(error) => {
                // The page can be asked for again.
                if error.retryable() {
                    self.with_sequences(|s| s.put_back(name.to_owned(), sequence));
                }
                Err(self.failed(&error))
            }
        }
    }

    /// As many items as fit; the rest waits under a name.
    fn page(
        &self,
        service: &Service,
        mut sequence: Sequence,
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
        while let Some(item) = sequence.waiting.pop_front() {
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

fn limit(limit: Option<usize>) -> Option<usize> {
    Some(limit.unwrap_or(ITEMS)).filter(|limit| (1..=100).contains(limit))
}

fn beyond() -> CallToolResult {
    refused("INVALID_ARGUMENTS", "limit must be 1 through 100")
}

/// What a result begins with.
fn frame(service: &Service, data: Value) -> Map<String, Value> {
    let mut result = Map::new();
    result.insert("service".to_owned(), json!(service.origin().as_str()));
    result.insert(UNTRUSTED.to_owned(), data);
    result
}

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
        result.insert("omitted_besides".to_owned(), json!(all - told.len()));
    }
    result.insert("omitted".to_owned(), json!(told));
    if !how.is_empty() {
        result.insert("note".to_owned(), json!(how));
    }
}

/// What could not be used. The sentences may quote the Service.
fn note_issues(result: &mut Map<String, Value>, issues: Vec<Value>) {
    if let (false, Some(Value::Object(data))) = (issues.is_empty(), result.get_mut(UNTRUSTED)) {
        data.insert("issues".to_owned(), issues.into());
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
