//! Searches that have to be refused, each for one reason.

use super::documents::Refusal;
use super::probe::{Ask, Exhausted, Probe};
use super::retrieve::UNKNOWN;
use super::search::Target;
use super::{Rule, rules};
use http::header;
use purvey_odp::filter::{FilterDefinition, Operator};
use purvey_odp::limits;
use purvey_odp::problem::In;
use purvey_odp::sort::SortDefinition;
use purvey_odp::value::ScalarType;
use serde_json::{Value, json};

/// What a search has to refuse whatever it is for.
pub(super) async fn shared(
    probe: &mut Probe<'_>,
    target: &Target,
    word: &str,
) -> Result<(), Exhausted> {
    let long = "a".repeat(limits::QUERY_CHARS + 1);
    let cases: [(&'static Rule, &str, Value); 7] = [
        (&rules::SEARCH_CONSTRAINT, "", json!({})),
        (&rules::SEARCH_QUERY, "/query", json!({"query": " \t"})),
        (&rules::SEARCH_QUERY, "/query", json!({"query": long})),
        (
            &rules::SEARCH_LIMIT,
            "/limit",
            json!({"query": word, "limit": 0}),
        ),
        (
            &rules::SEARCH_LIMIT,
            "/limit",
            json!({"query": word, "limit": 101}),
        ),
        (
            &rules::SEARCH_LIMIT,
            "/limit",
            json!({"query": word, "limit": "5"}),
        ),
        (
            &rules::SEARCH_VERSION,
            "/odp_version",
            json!({"query": word, "odp_version": "2.0"}),
        ),
    ];
    for (rule, pointer, members) in cases {
        invalid(probe, target, rule, pointer, &members).await?;
    }
    forms(probe, target, word).await
}

/// Bodies that are no request at all.
async fn forms(probe: &mut Probe<'_>, target: &Target, word: &str) -> Result<(), Exhausted> {
    let fine = target.body(&json!({"query": word})).to_string();
    let twice = format!(
        "{{\"query\":{q},{}",
        fine.get(1..).unwrap_or_default(),
        q = json!(word)
    );
    let deep = limits::JSON_DEPTH;
    let deep = format!(
        "{{\"odp_version\":\"1.0\",\"query\":{q},\"more\":{}{}}}",
        "[".repeat(deep),
        "]".repeat(deep),
        q = json!(word)
    );
    for malformed in [fine.trim_end_matches('}').to_owned(), twice, deep] {
        let ask = Ask::bytes(target.url.clone(), malformed);
        let refusal = Refusal::new(&rules::SEARCH_MALFORMED, &[400]);
        probe.refused(ask, refusal).await?;
    }
    let ask =
        Ask::bytes(target.url.clone(), fine.clone()).header(header::CONTENT_TYPE, "text/plain");
    let refusal = Refusal::new(&rules::SEARCH_MEDIA_TYPE, &[415]);
    probe.refused(ask, refusal).await?;
    // The same request, with white space that makes it one byte too large.
    let more = (limits::REQUEST_BYTES + 1).saturating_sub(fine.len());
    let large = fine.clone() + &" ".repeat(more);
    let refusal = Refusal::new(&rules::SEARCH_TOO_LARGE, &[413]);
    probe
        .refused(Ask::bytes(target.url.clone(), large), refusal)
        .await?;
    for query in [
        "representation=brief",
        "representation=terse&representation=full",
    ] {
        let ask = Ask::bytes(target.url.clone(), fine.clone()).query(query);
        let refusal = Refusal {
            param: Some((In::Query, "representation")),
            ..Refusal::new(&rules::REPRESENTATION_INVALID, &[400])
        };
        probe.refused(ask, refusal).await?;
    }
    Ok(())
}

async fn invalid(
    probe: &mut Probe<'_>,
    target: &Target,
    rule: &'static Rule,
    pointer: &str,
    members: &Value,
) -> Result<(), Exhausted> {
    let refusal = Refusal {
        param: Some((In::Body, pointer)),
        ..Refusal::new(rule, &[400])
    };
    let ask = target.ask(members);
    probe.refused(ask, refusal).await?;
    Ok(())
}

/// What a search for Offerings has to refuse.
pub(super) async fn offerings(
    probe: &mut Probe<'_>,
    target: &Target,
    word: &str,
    filters: &[FilterDefinition],
) -> Result<(), Exhausted> {
    shared(probe, target, word).await?;
    let unknown = json!({"id": UNKNOWN, "operator": "exists", "value": true});
    let many = vec![unknown.clone(); limits::FILTER_EXPRESSIONS + 1];
    let cases: [(&'static Rule, &str, Value); 5] = [
        (
            &rules::SEARCH_FILTER_UNKNOWN,
            "/filters/0/id",
            json!({"filters": [unknown]}),
        ),
        (
            &rules::SEARCH_FILTER_COUNT,
            "/filters",
            json!({"filters": many}),
        ),
        (
            &rules::SEARCH_SORT_UNKNOWN,
            "/sort",
            json!({"query": word, "sort": UNKNOWN}),
        ),
        (
            &rules::SEARCH_REFINEMENT_UNKNOWN,
            "/refinements/0",
            json!({"query": word, "refinements": [UNKNOWN]}),
        ),
        (
            &rules::SEARCH_DESCENDANTS,
            "/include_descendants",
            json!({"query": word, "include_descendants": true}),
        ),
    ];
    for (rule, pointer, members) in cases {
        invalid(probe, target, rule, pointer, &members).await?;
    }
    let members = json!({"query": word, "collection_id": UNKNOWN});
    let refusal = Refusal::new(&rules::SEARCH_COLLECTION_UNKNOWN, &[404]);
    let ask = target.ask(&members);
    probe.refused(ask, refusal).await?;
    of_filters(probe, target, word, filters).await
}

/// What a Collection advertises is unknown where it is not named.
pub(super) async fn unnamed(
    probe: &mut Probe<'_>,
    target: &Target,
    word: &str,
    filters: &[FilterDefinition],
    sorts: &[SortDefinition],
) -> Result<(), Exhausted> {
    for filter in filters.iter().take(probe.extent.samples) {
        let operator = filter.operators().first().copied().unwrap_or(Operator::Eq);
        let sample = sample(filter.scalar_type());
        let value = match operator {
            Operator::Exists => json!(true),
            Operator::In => json!([sample]),
            _ => sample,
        };
        let id = filter.id().as_str();
        let expression = json!({"id": id, "operator": operator.as_str(), "value": value});
        let members = json!({"filters": [expression]});
        let (rule, at) = (&rules::SEARCH_FILTER_UNKNOWN, "/filters/0/id");
        invalid(probe, target, rule, at, &members).await?;
    }
    for sort in sorts.iter().take(probe.extent.samples) {
        let members = json!({"query": word, "sort": sort.id().as_str()});
        let rule = &rules::SEARCH_SORT_UNKNOWN;
        invalid(probe, target, rule, "/sort", &members).await?;
    }
    Ok(())
}

/// What has to be refused of each of these filters.
pub(super) async fn of_filters(
    probe: &mut Probe<'_>,
    target: &Target,
    word: &str,
    filters: &[FilterDefinition],
) -> Result<(), Exhausted> {
    for definition in filters.iter().take(probe.extent.samples) {
        of_filter(probe, target, word, definition).await?;
    }
    Ok(())
}

async fn of_filter(
    probe: &mut Probe<'_>,
    target: &Target,
    word: &str,
    definition: &FilterDefinition,
) -> Result<(), Exhausted> {
    let id = definition.id().as_str();
    let wrong = match definition.scalar_type() {
        ScalarType::String => json!(1),
        ScalarType::Boolean => json!("true"),
        _ => json!("purvey-check"),
    };
    for operator in Operator::ALL {
        let advertised = definition.operators().contains(&operator);
        let value = match operator {
            Operator::Exists => json!("true"),
            Operator::In => json!([wrong]),
            _ => wrong.clone(),
        };
        let (rule, pointer) = match advertised {
            true => (&rules::SEARCH_FILTER_VALUE, "/filters/0/value"),
            false => (&rules::SEARCH_FILTER_OPERATOR, "/filters/0/operator"),
        };
        // Only the operator is to be wrong when that is what is looked at.
        let value = match (advertised, operator, sample(definition.scalar_type())) {
            (true, ..) => value,
            (false, Operator::Exists, _) => json!(true),
            (false, Operator::In, sample) => json!([sample]),
            (false, _, sample) => sample,
        };
        let expression = json!({"id": id, "operator": operator.as_str(), "value": value});
        invalid(
            probe,
            target,
            rule,
            pointer,
            &json!({"filters": [expression]}),
        )
        .await?;
    }
    if !definition.is_refinable() {
        let members = json!({"query": word, "refinements": [id]});
        let rule = &rules::SEARCH_REFINEMENT_UNKNOWN;
        invalid(probe, target, rule, "/refinements/0", &members).await?;
    }
    Ok(())
}

/// A value of a type.
fn sample(scalar_type: ScalarType) -> Value {
    match scalar_type {
        ScalarType::Boolean => json!(true),
        ScalarType::Integer | ScalarType::Number => json!(1),
        ScalarType::Decimal => json!("1"),
        ScalarType::Date => json!("2026-01-01"),
        ScalarType::DateTime => json!("2026-01-01T00:00:00Z"),
        _ => json!("purvey-check"),
    }
}
