//! One step of a run: a call of the provider with its retries, or one use of a tool.

use super::{
    Node,
    conversation::{Conversation, refused},
    files::Workplace,
    output,
    run::{End, Provider},
    tools::{ToolUse, described},
};
use crate::{
    clock::{Chance, Timestamp},
    code::Code,
    error::Error,
    model::{StepKind, ToolName},
    provider::{CallError, LONGEST_WAIT, Prices, Reply, Request, Retry, ToolCall, Usage},
    runs::{self, Begun, CallOf, Claim, Last, Outcome, StepDone, What, Write},
};
use purvey_retry::{Backoff, Budget, Decision, Failure, Policy, Rule};
use serde_json::Value;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The first wait for a limit whose provider does not say when it passes; each further one in a row is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// How often a call that failed is made again within its step.
const POLICY: Policy = Policy {
    retries: 3,
    waiting: Duration::from_secs(60),
    backoff: Backoff {
        base: Duration::from_millis(500),
        cap: Duration::from_secs(8),
    },
    // What is transient was judged where the failure was met.
    rule: |_| Rule::Backoff,
};

/// What came of a step with the provider.
pub(super) enum Called {
    /// A reply, which is kept.
    Replied(Reply),
    /// The worker's time with the run is over.
    Ended(End),
}

/// Makes the provider's step that is next.
pub(super) async fn call(
    node: &Arc<Node>,
    claim: &Claim,
    provider: &Provider,
    conversation: &Conversation,
    limited: u32,
) -> Result<Called, Error> {
    let definition = &claim.definition;
    let prices = provider.prices(&definition.model);
    let mut request = Request {
        model: definition.model.clone(),
        instructions: conversation.instructions.clone(),
        messages: conversation.messages.clone(),
        tools: definition.tools.iter().copied().map(described).collect(),
        max_output_tokens: prices.max_output_tokens,
        place: None,
    };
    let step = Step {
        node,
        claim,
        seq: conversation.seq(),
        most: prices.micros(provider.most(&request)),
    };
    let mut budget = Budget::new().with_deadline(system_time(claim.deadline));
    loop {
        let number = budget.retries() + 1;
        // A new place for each call: what one that failed has left is nobody's.
        let workplace = match provider.provider().files() {
            None => None,
            Some(limits) => match Workplace::lay_out(node, claim, limits).await? {
                Ok(workplace) => Some(workplace),
                Err(outcome) => return Ok(Called::Ended(End::Outcome(outcome))),
            },
        };
        request.place = workplace.as_ref().map(Workplace::place);
        if let Begun::Refused(limit) = step.begin(number).await? {
            return Ok(Called::Ended(End::Outcome(Outcome::Failed {
                code: limit.code,
                detail: limit.code.detail().into(),
                limit: Some(limit),
            })));
        }
        let error = match provider.provider().call(&request).await {
            Ok(reply) => {
                let usage = reply.usage.unwrap_or_else(|| provider.most(&request));
                return step.keep(number, &prices, usage, reply, workplace).await;
            }
            Err(error) => error,
        };
        let (detail, retry, charged) = match error {
            CallError::Limited { wait, detail } => {
                tracing::info!(run = %claim.lease.run, detail, "a provider limits a run");
                step.pause(number, wait_for(wait, limited)).await?;
                return Ok(Called::Ended(End::Done));
            }
            CallError::Rejected { detail } => {
                step.settle(number, 0).await?;
                return Ok(failed(Code::ProviderRejected, detail));
            }
            CallError::Failed {
                detail,
                retry,
                charged,
            } => (detail, retry, charged),
        };
        step.settle(number, if charged { step.most } else { 0 })
            .await?;
        let told = match retry {
            Retry::Never => return Ok(failed(Code::ProviderFailed, detail)),
            Retry::Backoff => None,
            // Whole seconds, never sooner than was asked.
            Retry::After(wait) => Some(wait.as_millis().div_ceil(1_000).to_string()),
        };
        let now = system_time(node.parts.time.now());
        let chance = fraction(&*node.parts.chance);
        match POLICY.decide(Failure::Connection, told.as_deref(), &budget, chance, now) {
            Decision::Wait(wait) => {
                budget.spend(wait);
                node.sleep(wait).await;
            }
            Decision::GiveUp(_) => {
                let detail = format!("{detail} It was tried {number} times.");
                return Ok(failed(Code::ProviderFailed, detail));
            }
        }
    }
}

fn failed(code: Code, detail: String) -> Called {
    Called::Ended(End::Outcome(Outcome::Failed {
        code,
        detail,
        limit: None,
    }))
}

/// How long a limited run waits.
fn wait_for(told: Option<Duration>, limited: u32) -> Duration {
    let unsaid = || FIRST_WAIT.saturating_mul(2_u32.saturating_pow(limited));
    told.unwrap_or_else(unsaid).min(LONGEST_WAIT)
}

/// How the run ends whose last reply this is.
pub(super) async fn judge(claim: &Claim, reply: Reply) -> Result<Outcome, Error> {
    let definition = claim.definition.clone();
    // Without a contract there is nothing that takes its time.
    if definition.output_schema.is_none() {
        return Ok(output::outcome(&definition, reply));
    }
    tokio::task::spawn_blocking(move || output::outcome(&definition, reply))
        .await
        .map_err(|error| Error::Store {
            detail: error.to_string(),
        })
}

struct Step<'a> {
    node: &'a Arc<Node>,
    claim: &'a Claim,
    seq: u32,
    /// The most that one call can cost, in micro-cents.
    most: i64,
}

impl Step<'_> {
    fn call(&self, number: u32) -> CallOf {
        CallOf {
            seq: self.seq,
            call: number,
        }
    }

    /// Begins the step with its first call, and reserves what a call can cost.
    async fn begin(&self, number: u32) -> Result<Begun, Error> {
        let lease = self.claim.lease.clone();
        let (call, most_micros) = (self.call(number), self.most);
        if number > 1 {
            let begin = move |session: &mut dyn crate::sql::Session, cx: crate::clock::Cx<'_>| {
                runs::begin_call(session, cx, &lease, call, most_micros)
            };
            return self.node.persist(self.claim.lease.workspace, begin).await;
        }
        let model = self.claim.definition.model.clone();
        let name = Some(model).filter(|name| !name.is_empty());
        let what = What::Begin { name, most_micros };
        self.node.gather(Write { lease, call, what }).await
    }

    async fn settle(&self, number: u32, micros: i64) -> Result<(), Error> {
        let lease = self.claim.lease.clone();
        let call = self.call(number);
        self.node
            .persist(self.claim.lease.workspace, move |session, _| {
                runs::settle_call(session, &lease, call, micros)
            })
            .await
    }

    async fn pause(&self, number: u32, wait: Duration) -> Result<(), Error> {
        let lease = self.claim.lease.clone();
        let (seq, call) = (self.seq, self.call(number));
        let resets_at = self.node.parts.time.now().after(wait);
        self.node
            .persist(self.claim.lease.workspace, move |session, cx| {
                runs::hold_workspace(session, &lease)?;
                runs::settle_call(session, &lease, call, 0)?;
                runs::pause(session, cx, &lease, seq, resets_at).map(|_| ())
            })
            .await
    }

    /// Keeps the reply with what it cost; when it is the last one the run ends with it, all in one transaction.
    async fn keep(
        &self,
        number: u32,
        prices: &Prices,
        usage: Usage,
        reply: Reply,
        workplace: Option<Workplace>,
    ) -> Result<Called, Error> {
        let mut outcome = match reply.tool_calls.is_empty() {
            true => Some(judge(self.claim, reply.clone()).await?),
            false => None,
        };
        let mut produced = Vec::new();
        if let (Some(Outcome::Succeeded { .. }), Some(workplace)) = (&outcome, workplace) {
            match workplace.take(self.node, self.claim).await? {
                Ok(taken) => produced = taken,
                Err(failed) => outcome = Some(failed),
            }
        }
        let result = serde_json::to_value(&reply).map_err(|error| Error::Store {
            detail: error.to_string(),
        })?;
        let lease = self.claim.lease.clone();
        let (seq, call, micros) = (self.seq, self.call(number), prices.micros(usage));
        if let Some(outcome) = outcome {
            let what = What::End(Box::new(Last {
                micros,
                result,
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                outcome,
                produced,
            }));
            self.node.gather(Write { lease, call, what }).await?;
            return Ok(Called::Ended(End::Done));
        }
        self.node
            .persist(self.claim.lease.workspace, move |session, cx| {
                let done = StepDone {
                    seq,
                    request: None,
                    result: &result,
                    input_tokens: usage.input_tokens,
                    output_tokens: usage.output_tokens,
                };
                runs::keep(session, cx, &lease, (call, micros), &done)
            })
            .await?;
        Ok(Called::Replied(reply))
    }
}

/// Uses a tool and keeps the result. A use that fails is a result too: the model decides what to make of it.
pub(super) async fn use_tool(
    node: &Arc<Node>,
    claim: &Claim,
    seq: u32,
    call: &ToolCall,
) -> Result<Value, Error> {
    let allowed = call.name.parse::<ToolName>().ok();
    let allowed = allowed.filter(|name| claim.definition.tools.contains(name));
    let lease = claim.lease.clone();
    // What a model wrote is as long as it likes; only names of tools are kept as such.
    let name = allowed.map_or("unknown", ToolName::text);
    node.persist(claim.lease.workspace, move |session, cx| {
        runs::begin_step(session, cx, &lease, seq, StepKind::Tool, Some(name))
    })
    .await?;
    let result = match allowed {
        None => refused("There is no tool of this name, or it is not allowed here."),
        Some(name) => {
            let tool_use = ToolUse {
                name,
                arguments: call.arguments.clone(),
                key: format!("{}-{seq}", claim.lease.run),
            };
            node.parts.tools.use_tool(tool_use).await
        }
    };
    let lease = claim.lease.clone();
    let (request, kept) = (call.arguments.clone(), result.clone());
    node.persist(claim.lease.workspace, move |session, cx| {
        let done = StepDone {
            seq,
            request: Some(&request),
            result: &kept,
            input_tokens: 0,
            output_tokens: 0,
        };
        runs::checkpoint(session, cx, &lease, &done)
    })
    .await?;
    Ok(result)
}

fn system_time(moment: Timestamp) -> SystemTime {
    let millis = u64::try_from(moment.millis()).unwrap_or(0);
    UNIX_EPOCH
        .checked_add(Duration::from_millis(millis))
        .unwrap_or(UNIX_EPOCH)
}

/// A number drawn evenly from 0 up to 1.
fn fraction(chance: &dyn Chance) -> f64 {
    let mut bytes = [0; 4];
    chance.fill(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_what_was_told_or_doubles_from_a_second_and_never_passes_fifteen_minutes() {
        let seconds = Duration::from_secs;
        assert_eq!(wait_for(Some(seconds(20)), 3), seconds(20));
        assert_eq!(wait_for(Some(seconds(5_000)), 0), seconds(900));
        let unsaid: Vec<_> = (0..5).map(|n| wait_for(None, n).as_secs()).collect();
        assert_eq!(unsaid, [1, 2, 4, 8, 16]);
        assert_eq!(wait_for(None, 40), seconds(900));
    }
}
