//! A platform with workspaces and agents, what callers do to it, and its workers.

use crate::{CALLERS, Outcome, place::Place};
use futures_util::future::BoxFuture;
use purvey_work::{
    Blobs, Platform, PlatformOptions, Principal, Store, SystemChance, UploadLimits,
    engine::{Engine, EngineParts, EngineSettings, NoTools, SystemSleeper},
    provider::{
        CallError, Content, Echo, Message, Priced, Prices, Provider, Providers, Reply, Request,
        Usage,
    },
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// What agents call and what holds them back.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) provider: &'static str,
    /// Runs of a workspace at work at once.
    pub(crate) concurrency: u32,
    /// Whether calls cost something, and the workspace, its owner and the platform have a budget for each day.
    pub(crate) budgets: bool,
}

impl Rules {
    /// As many at work as there are workers, no budgets.
    pub(crate) const PLAIN: Self = Self {
        provider: "echo",
        concurrency: CALLERS as u32,
        budgets: false,
    };
}

pub(crate) struct Stage {
    pub(crate) place: Place,
    store: Store,
    platform: Platform,
    caller: Principal,
    workspaces: Vec<String>,
    agents: Vec<String>,
    rules: Rules,
    next: Arc<AtomicU64>,
}

/// Starts, and how long they took.
pub(crate) struct Starts {
    /// Within the time that counts.
    pub(crate) rate: f64,
}

impl Stage {
    pub(crate) async fn new(place: Place, workspaces: usize, rules: Rules) -> Outcome<Self> {
        let store = place.open()?;
        let names = ["echo", "notice"].map(str::to_owned);
        let mut options = PlatformOptions::default();
        options.providers = BTreeSet::from(names);
        let platform = Platform::new(store.clone(), options);
        let made = platform
            .bootstrap()
            .await?
            .ok_or("the store is not empty")?;
        let caller = platform.authenticate(&made.token.secret).await?;
        let mut stage = Self {
            place,
            store,
            platform,
            caller: caller.clone(),
            workspaces: Vec::new(),
            agents: Vec::new(),
            rules,
            next: Arc::new(AtomicU64::new(0)),
        };
        let platform = &stage.platform;
        let budget = rules.budgets.then_some(1_000_000_000);
        let limits = json!({"platform_daily_cents": budget, "allowance_daily_cents": budget});
        platform.update_limits(Principal::Operator, limits).await?;
        let limits = json!({"concurrency_limit": rules.concurrency, "queue_limit": 1_000_000, "daily_cost_cents": budget});
        for number in 0..workspaces {
            let body = json!({"organization_id": made.organization.id, "owner_id": made.user.id, "name": format!("Workspace {number}")});
            let workspace = platform.create_workspace(caller.clone(), body).await?;
            let id = workspace.id.to_string();
            platform
                .update_workspace(caller.clone(), id.clone(), limits.clone())
                .await?;
            let body = json!({"name": "Greeter", "provider": rules.provider, "model": "m", "instructions": "Answer with what you were told."});
            let agent = platform
                .create_agent(caller.clone(), id.clone(), body)
                .await?;
            stage.workspaces.push(id);
            stage.agents.push(agent.id.to_string());
        }
        Ok(stage)
    }

    /// How many runs were started.
    pub(crate) fn started(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Callers start one run after the other, each with a key of its own, for `time` after a warm-up of a fifth of it.
    pub(crate) async fn starts(&self, callers: usize, time: Duration) -> Outcome<Starts> {
        self.call(callers, u64::MAX, Instant::now() + time / 5)
            .await?;
        let begin = Instant::now();
        let before = self.started();
        self.call(callers, u64::MAX, begin + time).await?;
        let count = self.started() - before;
        Ok(Starts {
            rate: count as f64 / begin.elapsed().as_secs_f64(),
        })
    }

    /// Starts so many runs.
    pub(crate) async fn fill(&self, count: u64) -> Outcome<()> {
        let far = Instant::now() + Duration::from_secs(3_600);
        self.call(CALLERS, self.started() + count, far).await
    }

    async fn call(&self, callers: usize, last: u64, end: Instant) -> Outcome<()> {
        let tasks: Vec<_> = (0..callers)
            .map(|_| {
                let (platform, caller) = (self.platform.clone(), self.caller.clone());
                let (next, agents) = (self.next.clone(), self.agents.clone());
                tokio::spawn(async move {
                    while Instant::now() < end {
                        let more = |n| (n < last).then_some(n + 1);
                        let Ok(n) = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
                        else {
                            break;
                        };
                        let agent = agents.get(n as usize % agents.len()).ok_or("no agent")?;
                        let started = platform
                            .start_run(caller.clone(), agent.clone(), body(n), Some(key(n)))
                            .await?;
                        if started.replayed {
                            return Err(format!("{} was there before", key(n)).into());
                        }
                    }
                    Outcome::Ok(())
                })
            })
            .collect();
        for task in tasks {
            task.await??;
        }
        Ok(())
    }

    /// Begins to work on runs; `notice` tells when it is called.
    fn engine(&self, noticed: mpsc::UnboundedSender<Instant>) -> Engine {
        let price = u32::from(self.rules.budgets);
        let prices = Prices {
            input: price,
            output: price,
            ..Prices::default()
        };
        let priced = BTreeMap::from([("m".to_owned(), prices)]);
        Engine::start(EngineParts {
            blobs: Blobs::nowhere(),
            uploads: UploadLimits::default(),
            store: self.store.clone(),
            providers: Providers::default()
                .with("echo", Priced::new(Echo, priced))
                .with("notice", Priced::new(Notice(noticed), BTreeMap::new())),
            tools: Arc::new(NoTools),
            time: Arc::new(SystemSleeper),
            chance: Arc::new(SystemChance),
            settings: EngineSettings {
                workers: CALLERS,
                alone: !self.place.is_shared(),
                ..EngineSettings::default()
            },
        })
    }

    /// Works on what waits until `count` more runs have ended; runs per second.
    pub(crate) async fn work(&self, count: u64) -> Outcome<f64> {
        let before = self.place.unfinished()?;
        let begin = Instant::now();
        let engine = self.engine(mpsc::unbounded_channel().0);
        let (done, took) = loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let done = before.saturating_sub(self.place.unfinished()?);
            if done >= count {
                break (done, begin.elapsed());
            }
            if begin.elapsed() > Duration::from_secs(120) {
                return Err(format!("{done} of {count} runs ended in two minutes").into());
            }
        };
        engine.shutdown(Duration::from_secs(5)).await;
        Ok(done as f64 / took.as_secs_f64())
    }

    /// Milliseconds from each of `count` single starts to the call of its provider, each when the run before has ended.
    pub(crate) async fn idle(&self, count: u64) -> Outcome<Vec<f64>> {
        let (sender, mut noticed) = mpsc::unbounded_channel();
        let engine = self.engine(sender);
        let agent = self.agents.first().ok_or("no agent")?;
        let mut times = Vec::new();
        for _ in 0..count {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            let sent = Instant::now();
            let started = self
                .platform
                .start_run(self.caller.clone(), agent.clone(), body(n), Some(key(n)))
                .await?;
            let called = noticed.recv().await.ok_or("the workers are gone")?;
            times.push(called.duration_since(sent).as_secs_f64() * 1e3);
            let id = started.run.id.to_string();
            let wait = Duration::from_secs(10);
            let run = self.platform.run(self.caller.clone(), id, wait).await?;
            if !run.status.is_terminal() {
                return Err(format!("{} has not ended", run.id).into());
            }
        }
        engine.shutdown(Duration::from_secs(5)).await;
        Ok(times)
    }

    /// Holds the store to what was done: every start is one run and one key, and at least `ended` of them succeeded. `copied` are there beside.
    pub(crate) fn check(&self, ended: u64, copied: u64) -> Outcome<()> {
        let counts = self.place.counts()?;
        let all = self.started() + copied;
        if counts.runs != all || counts.keys != all {
            return Err(format!("{all} runs were started, the store has {counts:?}").into());
        }
        if counts.succeeded < ended + copied || counts.failed > 0 {
            return Err(format!("{ended} runs should have ended, the store has {counts:?}").into());
        }
        Ok(())
    }
}

/// What every start asks for, here and over HTTP.
pub(crate) fn body(n: u64) -> Value {
    json!({"input": {"text": "hello", "n": n}})
}

pub(crate) fn key(n: u64) -> String {
    format!("key-{n}")
}

/// Tells when it is called, and answers with what it was asked.
struct Notice(mpsc::UnboundedSender<Instant>);

impl Provider for Notice {
    fn call<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, CallError>> {
        let _ = self.0.send(Instant::now());
        let said = match request.messages.first() {
            Some(Message::User { content }) => content.clone(),
            _ => Value::Null,
        };
        Box::pin(std::future::ready(Ok(Reply {
            content: Content::Json(said),
            tool_calls: Vec::new(),
            usage: Some(Usage::default()),
            cut: false,
        })))
    }
}
