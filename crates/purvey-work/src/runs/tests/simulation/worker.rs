//! Worker processes that follow a script of good and bad outcomes, crash, lag behind and hand over.

use super::Simulation;
use crate::{
    clock::Timestamp,
    code::Code,
    error::{Error, LimitDetail},
    id::RunId,
    model::{StepKind, StepState},
    runs::{self, Begun, CallOf, Claim, Outcome, Paused, StepDone},
};
use serde_json::{Value, json};

/// The most that a call of these histories is reserved with, in micro-cents.
const MOST: u64 = 4_000_000;

pub(super) struct Node {
    name: String,
    held: Vec<Held>,
}

/// A run that a worker believes it holds.
struct Held {
    claim: Claim,
    seq: u32,
    call: u32,
    /// Reserved for the call in flight.
    open: Option<i64>,
    /// Steps until it is done.
    left: u32,
}

impl Node {
    pub(super) fn is_busy(&self) -> bool {
        !self.held.is_empty()
    }
}

impl Simulation {
    pub(super) fn add_node(&mut self) {
        self.nodes_made += 1;
        self.nodes.push(Node {
            name: format!("node-{}", self.nodes_made),
            held: Vec::new(),
        });
    }

    fn some_node(&self) -> usize {
        self.dice.below(self.nodes.len() as u64) as usize
    }

    pub(super) fn claim(&mut self) {
        let node = self.some_node();
        let most = 1 + self.dice.below(4) as usize;
        self.claim_for(node, most);
    }

    pub(super) fn claim_for(&mut self, node: usize, most: usize) {
        let name = self.nodes[node].name.clone();
        let claims = self
            .world
            .at(|session, cx| runs::claim(session, cx, &name, most))
            .unwrap();
        assert!(claims.len() <= most);
        self.check_fair(&claims, most);
        for claim in claims {
            self.seen.check_claim(&claim);
            let run = claim.lease.run;
            self.take_charges(run);
            self.tell(&format!(
                "{name} claims {run} (attempt {})",
                claim.lease.attempt
            ));
            let done = claim
                .steps
                .iter()
                .filter(|step| step.state == StepState::Done)
                .count();
            let seq = u32::try_from(done).unwrap() + 1;
            let left = 1 + self.dice.below(3) as u32;
            self.nodes[node].held.push(Held {
                claim,
                seq,
                call: 0,
                open: None,
                left,
            });
        }
    }

    pub(super) fn work(&mut self) {
        let node = self.some_node();
        if self.nodes[node].is_busy() {
            let held = self.dice.below(self.nodes[node].held.len() as u64) as usize;
            self.work_on(node, held, false);
        }
    }

    /// One move of a worker; `well` lets it go on to a good end.
    pub(super) fn work_on(&mut self, node: usize, index: usize, well: bool) {
        let mut held = self.nodes[node].held.swap_remove(index);
        let run = held.claim.lease.run;
        match self.act(&mut held, well) {
            Ok(true) => self.nodes[node].held.push(held),
            Ok(false) => {}
            Err(Error::LeaseLost) => self.tell(&format!(
                "{run} is lost to attempt {}",
                held.claim.lease.attempt
            )),
            Err(error) => panic!("{error}"),
        }
    }

    /// Whether the worker still holds the run.
    fn act(&mut self, held: &mut Held, well: bool) -> Result<bool, Error> {
        let lease = held.claim.lease.clone();
        let (run, seq) = (lease.run, held.seq);
        if let Some(most) = held.open.take() {
            let call = CallOf {
                seq,
                call: held.call,
            };
            return match if well { 0 } else { self.dice.below(10) } {
                0..=5 => {
                    let cost = self.dice.below(most as u64 + 1) as i64;
                    self.settle(held, call, cost)?;
                    let result = json!([run, seq, lease.attempt]);
                    self.keep(held, &result)?;
                    self.tell(&format!("{run} has done step {seq} for {cost}"));
                    Ok(true)
                }
                6 => {
                    // A call that failed within the step: made again as another.
                    let cost = self.dice.below(most as u64 + 1) as i64;
                    self.settle(held, call, cost)?;
                    Ok(true)
                }
                7..=8 => {
                    self.settle(held, call, 0)?;
                    let wait = *self.dice.pick(&[0, 900, 4_000, 700_000, 5_000_000]);
                    let resets = Timestamp::from_millis(self.world.now.millis() + wait);
                    let paused = self
                        .world
                        .at(|session, cx| runs::pause(session, cx, &lease, seq, resets))?;
                    if let Paused::Until(until) = paused {
                        assert!(until.millis() - self.world.now.millis() <= 900_000);
                        assert!(until < held.claim.deadline);
                    }
                    self.tell(&format!("{run} is limited: {paused:?}"));
                    Ok(false)
                }
                _ => self.end(
                    held,
                    &Outcome::Failed {
                        code: Code::ProviderFailed,
                        detail: "it failed".into(),
                        limit: None,
                    },
                ),
            };
        }
        if self.world.now >= held.claim.deadline {
            return self.end(
                held,
                &Outcome::Failed {
                    code: Code::RunTimeLimit,
                    detail: "too long".into(),
                    limit: None,
                },
            );
        }
        if held.left == 0 {
            return self.end(
                held,
                &Outcome::Succeeded {
                    output: json!(run),
                    verified: false,
                },
            );
        }
        held.left -= 1;
        if !well && self.dice.below(5) == 0 {
            return self.tool(held);
        }
        held.call += 1;
        let most = self.dice.below(MOST) as i64;
        let met = self.limit_met(lease.workspace);
        let call = CallOf {
            seq,
            call: held.call,
        };
        let begun = self.world.at(|session, cx| {
            runs::begin_step(session, cx, &lease, seq, StepKind::Provider, Some("m"))?;
            runs::begin_call(session, cx, &lease, call, most)
        })?;
        match begun {
            Begun::Go => {
                assert_eq!(met, None, "{run} calls past a limit");
                held.open = Some(most);
                if most > 0 {
                    self.seen.open(run, seq, most);
                }
                Ok(true)
            }
            Begun::Refused(limit) => {
                assert_eq!(met, Some(limit.code), "{run} is refused a call");
                let LimitDetail { code, .. } = limit;
                let detail = code.detail().into();
                self.end(
                    held,
                    &Outcome::Failed {
                        code,
                        detail,
                        limit: Some(limit),
                    },
                )
            }
        }
    }

    fn tool(&mut self, held: &mut Held) -> Result<bool, Error> {
        let (lease, seq) = (held.claim.lease.clone(), held.seq);
        self.world.at(|session, cx| {
            runs::begin_step(session, cx, &lease, seq, StepKind::Tool, Some("odp_get"))
        })?;
        let result = json!([lease.run, seq, lease.attempt]);
        self.keep(held, &result)?;
        Ok(true)
    }

    fn settle(&mut self, held: &Held, call: CallOf, cost: i64) -> Result<(), Error> {
        let lease = &held.claim.lease;
        // Sometimes the answer gets lost and the worker settles again.
        for _ in 0..1 + self.dice.below(2) {
            self.world
                .at(|session, _| runs::settle_call(session, lease, call, cost))?;
        }
        if self.seen.close(lease.run, call.seq) {
            *self.costs.entry(lease.run).or_default() += cost;
        }
        Ok(())
    }

    fn keep(&mut self, held: &mut Held, result: &Value) -> Result<(), Error> {
        let lease = &held.claim.lease;
        let done = StepDone {
            seq: held.seq,
            request: None,
            result,
            input_tokens: 1,
            output_tokens: 1,
        };
        self.world
            .at(|session, cx| runs::checkpoint(session, cx, lease, &done))?;
        self.seen.done(lease.run, held.seq, result);
        held.seq += 1;
        held.call = 0;
        Ok(())
    }

    fn end(&mut self, held: &Held, outcome: &Outcome) -> Result<bool, Error> {
        let lease = &held.claim.lease;
        let asked = self
            .world
            .at(|session, cx| runs::renew(session, cx, lease))?
            .cancel;
        let outcome = if asked { &Outcome::Cancelled } else { outcome };
        let status = self.world.finish(lease, outcome)?;
        self.tell(&format!("{} has {}", lease.run, status.text()));
        Ok(false)
    }

    /// Renews what a worker process holds, and stops what callers have cancelled.
    pub(super) fn renew(&mut self) {
        let node = self.some_node();
        let name = self.nodes[node].name.clone();
        let to_cancel = self
            .world
            .at(|session, _| runs::to_cancel(session, &name))
            .unwrap();
        let held = std::mem::take(&mut self.nodes[node].held);
        for held in held {
            let lease = held.claim.lease.clone();
            match self
                .world
                .at(|session, cx| runs::renew(session, cx, &lease))
            {
                Ok(renewal) => {
                    assert_eq!(renewal.cancel, to_cancel.contains(&lease.run));
                    if renewal.cancel {
                        self.world.finish(&lease, &Outcome::Cancelled).unwrap();
                        self.tell(&format!("{} is stopped", lease.run));
                    } else {
                        self.nodes[node].held.push(held);
                    }
                }
                Err(Error::LeaseLost) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// A process forgets everything it was doing.
    pub(super) fn crash(&mut self) {
        let node = self.some_node();
        let Node { name, .. } = self.nodes.swap_remove(node);
        self.tell(&format!("{name} crashes"));
        self.add_node();
    }

    /// A process shuts down and hands its runs over.
    pub(super) fn hand_over(&mut self) {
        let node = self.some_node();
        let Node { name, held } = self.nodes.swap_remove(node);
        self.tell(&format!("{name} hands over"));
        for held in held {
            let lease = &held.claim.lease;
            match self
                .world
                .at(|session, cx| runs::release(session, cx, lease))
            {
                Ok(()) => self.take_charges(lease.run),
                Err(Error::LeaseLost) => {}
                Err(error) => panic!("{error}"),
            }
        }
        self.add_node();
    }

    /// What calls in flight of a run were charged when its worker was lost or it ended.
    pub(super) fn take_charges(&mut self, run: RunId) {
        let charged = self.seen.close_all(run);
        if charged > 0 {
            *self.costs.entry(run).or_default() += charged;
        }
    }
}
