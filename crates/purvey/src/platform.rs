//! The run platform of `purvey serve`: its store, its first owner, its engine.

use crate::{
    failure::{Failure, say},
    settings::Settings,
    units::Time,
};
use purvey_catalog::catalog::Catalog;
use purvey_work::{
    Blobs, Bootstrapped, Chance, Clock, Platform, PlatformOptions, Store, SystemChance,
    SystemClock, UploadLimits, config,
    engine::{Engine, EngineParts, EngineSettings, OdpTools, SystemSleeper},
    provider::Providers,
};
use std::{
    ffi::OsString,
    io::{IsTerminal, Write},
    path::Path,
    sync::Arc,
    time::Duration,
};

/// The embedded store's file, in the data directory.
const FILE: &str = "work.db";
/// Where the first owner's token is written, in the data directory.
const OWNER_TOKEN: &str = "owner-token";
/// Where the bytes of artifacts are kept, in the data directory.
const ARTIFACTS: &str = "artifacts";
/// How often what is left of uploads is looked after.
const TEND: Duration = Duration::from_secs(5);

/// A platform that is open but does no work yet.
pub(crate) struct Opened {
    pub(crate) platform: Platform,
    store: Store,
    alone: bool,
    providers: Providers,
    blobs: Blobs,
    uploads: UploadLimits,
    settings: EngineSettings,
    keep_runs: Option<Duration>,
}

/// Opens the store that the settings name.
pub(crate) fn open(settings: &Settings, data: &Path) -> Result<Opened, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let environment = |name: &str| std::env::var_os(name);
    let configs = settings.providers.clone().unwrap_or_default();
    let providers = config::providers(&configs, &environment, &clock).map_err(Failure::usage)?;
    let store = match &settings.database {
        Some(url) => Store::postgres(url).map_err(|error| Failure::new(error).about("--database")),
        None => Store::sqlite(&data.join(FILE))
            .map_err(|error| Failure::new(error).about(&data.join(FILE).display().to_string())),
    }?;
    let mut options = PlatformOptions::default();
    options
        .providers
        .extend(providers.names().map(str::to_owned));
    let (blobs, objects) = match &settings.objects {
        Some(objects) => (Blobs::at(objects, &variables()), objects.clone()),
        None => {
            let directory = data.join(ARTIFACTS);
            (Blobs::local(&directory), directory.display().to_string())
        }
    };
    options.blobs = blobs.map_err(|error| match settings.objects {
        Some(_) => Failure::usage(format_args!("--objects: {error}")),
        None => Failure::new(error).about(&objects),
    })?;
    settings.bound_uploads(&mut options.uploads);
    if settings.database.is_some() && !options.blobs.shared() {
        tracing::warn!(
            objects,
            "the database can be shared, this directory of artifacts cannot: run one server only, mount one directory on all, or give --objects s3://…"
        );
    }
    let mut engine = EngineSettings::default();
    if let Some(workers) = settings.workers {
        engine.workers = workers.get() as usize;
    }
    Ok(Opened {
        blobs: options.blobs.clone(),
        uploads: options.uploads.clone(),
        platform: Platform::new(store.clone(), options),
        store,
        alone: settings.database.is_none(),
        providers,
        settings: engine,
        keep_runs: settings.keep_runs.map(|Time(time)| time),
    })
}

fn variables() -> Vec<(String, String)> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

impl Opened {
    /// Makes the first organization, user and workspace if there are none, and begins to work.
    pub(crate) async fn start(self, catalog: Catalog, data: &Path) -> Result<Engine, Failure> {
        let failed = |error: purvey_work::Error| Failure::new(error);
        let probed = self.platform.probe_artifacts().await;
        probed.map_err(|error| {
            Failure::new(error).about("--objects").hint(
                "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, and AWS_ENDPOINT unless the bucket is Amazon's",
            )
        })?;
        if let Some(made) = self.platform.bootstrap().await.map_err(failed)? {
            welcome(&made, data)?;
        }
        let chance: Arc<dyn Chance> = Arc::new(SystemChance);
        let tools = OdpTools::new(false).map_err(Failure::new)?;
        let mut settings = self.settings;
        settings.alone = self.alone;
        tokio::spawn(purvey_server::publish_agents(
            catalog,
            self.platform.clone(),
        ));
        if let Some(kept) = self.keep_runs {
            tokio::spawn(prune(self.platform.clone(), kept));
        }
        if self.alone {
            // Before the first caller: what is uploading now was so in the process before.
            self.platform.tend_artifacts(true).await.map_err(failed)?;
        }
        tokio::spawn(tend_artifacts(self.platform.clone()));
        tokio::spawn(fire_schedules(self.platform));
        Ok(Engine::start(EngineParts {
            blobs: self.blobs,
            uploads: self.uploads,
            store: self.store,
            providers: self.providers,
            tools: Arc::new(tools),
            time: Arc::new(SystemSleeper),
            chance,
            settings,
        }))
    }
}

/// Forgets runs that ended long ago.
async fn prune(platform: Platform, kept: Duration) {
    let mut tick = tokio::time::interval(Duration::from_secs(60));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        match platform.prune(kept).await {
            Ok(0) => {}
            Ok(runs) => tracing::info!(runs, "forgot runs that ended long ago"),
            Err(error) => tracing::warn!(%error, "old runs could not be forgotten; trying again"),
        }
    }
}

/// Ends what nobody uploads any more and throws away what is left of it; any node may.
async fn tend_artifacts(platform: Platform) {
    let mut tick = tokio::time::interval(TEND);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if let Err(error) = platform.tend_artifacts(false).await {
            tracing::warn!(%error, "uploads could not be looked after; trying again");
        }
    }
}

/// Fires schedules as they become due; any node may.
async fn fire_schedules(platform: Platform) {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if let Err(error) = platform.fire_schedules().await {
            tracing::warn!(%error, "schedules could not be looked at; trying again");
        }
    }
}

/// Keeps the first owner's token where only the server's user can read it, and says where.
fn welcome(made: &Bootstrapped, data: &Path) -> Result<(), Failure> {
    let path = data.join(OWNER_TOKEN);
    write_private(&path, &made.token.secret)
        .map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))?;
    tracing::info!(
        workspace = %made.workspace.id,
        user = %made.user.id,
        owner_token = %path.display(),
        "made the first workspace; its owner's token is in that file"
    );
    if std::io::stderr().is_terminal() {
        say(format_args!("owner's token: {}", made.token.secret));
    }
    Ok(())
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    // A file that was there before keeps its mode otherwise.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    writeln!(file, "{text}")?;
    file.sync_all()
}
