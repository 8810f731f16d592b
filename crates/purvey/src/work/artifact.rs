//! `purvey artifact`

use super::{
    connect::{Connect, InWorkspace, Part, escaped},
    fault, show,
    transfer::Bars,
};
use crate::failure::{Failure, say};
use clap::Subcommand;
use futures_util::{StreamExt, stream};
use http::Method;
use purvey_client::{Client, Download, Upload, Uploaded};
use serde_json::{Value, json};
use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// What can be done with artifacts.
#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactCommand {
    /// Upload files
    #[command(
        after_help = "An artifact is there once its line is printed, whole and durable. The same upload made again, also after it was interrupted, \
        makes no second artifact: its key is made of the workspace, the names, the size and the digest.\n\n\
        What a failure means, and what to do:\n\
        \x20 artifact.size_mismatch, artifact.checksum_mismatch   the file changed meanwhile: upload it again\n\
        \x20 artifact.metadata_mismatch                           --key names another upload: give another key\n\
        \x20 artifact.upload_active                               the same upload is still under way: try again later\n\
        \x20 artifact.upload_failed, artifact.deleted             --key names what failed or is gone: give another key\n\
        \x20 request.too_large                                    it is larger than the server takes: make it smaller\n\
        \x20 rate.limited, artifact.capacity                      too much at once: try again later\n\
        \x20 artifact.storage_quota                               no room: delete artifacts, or ask the operator for more"
    )]
    Upload(Files),
    /// Download an artifact
    #[command(
        after_help = "The file has its name only once all of its bytes are there and are those that were uploaded. An interrupted download goes on \
        from where it was when the same command is run again."
    )]
    Download(Get),
    /// List artifacts, the newest first
    List(List),
    /// Show an artifact
    Show(One),
    /// Delete an artifact; runs that name it keep its record
    Delete(One),
}

/// Files to upload.
#[derive(Debug, clap::Args)]
pub(crate) struct Files {
    /// The files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// What the artifact is called, for a single file [default: the file's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// What it is
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Idempotency key, for a single file: 1 to 255 visible ASCII characters [default: made of the upload]
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Files uploaded at once
    #[arg(long, value_name = "N", default_value = "4")]
    parallel: NonZeroUsize,
    #[command(flatten)]
    workspace: InWorkspace,
    #[command(flatten)]
    connect: Connect,
}

/// An artifact to download.
#[derive(Debug, clap::Args)]
pub(crate) struct Get {
    /// The artifact
    #[arg(value_name = "ARTIFACT")]
    artifact: String,
    /// Where to put it: a file or a directory [default: a file of its name here]
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    connect: Connect,
}

/// Which artifacts.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Only artifacts with this status: uploading, ready, failed or deleted
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    #[command(flatten)]
    workspace: InWorkspace,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    connect: Connect,
}

/// One artifact.
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    /// The artifact
    #[arg(value_name = "ARTIFACT")]
    artifact: String,
    #[command(flatten)]
    connect: Connect,
}

impl ArtifactCommand {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Upload(files) => return files.run().await,
            Self::Download(get) => get.run().await?,
            Self::List(list) => list.run().await?,
            Self::Show(one) => {
                let artifact = one.connect.get(&one.path()).await?;
                show::one(&artifact, one.connect.json)?;
            }
            Self::Delete(one) => {
                one.connect.send(Method::DELETE, &one.path(), None).await?;
                if !one.connect.json {
                    say(format_args!("{} deleted", one.artifact));
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Uploads a file with a bar.
pub(super) async fn upload(
    client: &Client,
    workspace: &str,
    bars: &Bars,
    upload: Upload,
) -> Result<Uploaded<Value>, Failure> {
    let bar = bars.file(&upload.path);
    let upload = Upload {
        hashed: bar.progress("hashing"),
        sent: bar.progress("sending"),
        ..upload
    };
    let uploaded = client.upload(workspace, &upload).await;
    uploaded.map_err(|error| {
        let failure = fault::failure(&error);
        match error {
            // It names the file already.
            purvey_client::Error::File { .. } => failure,
            _ => failure.about(&upload.path.display().to_string()),
        }
    })
}

impl Files {
    async fn run(self) -> Result<ExitCode, Failure> {
        if self.files.len() > 1 {
            for (flag, set) in [
                ("--name", self.name.is_some()),
                ("--key", self.key.is_some()),
            ] {
                if set {
                    return Err(Failure::usage(format_args!(
                        "{flag}: it is for a single file, and there are {}",
                        self.files.len()
                    )));
                }
            }
        }
        let client = self.connect.client()?;
        let workspace = self.workspace.id(&self.connect).await?;
        let bars = Bars::new();
        let all = self.files.iter().map(|file| {
            let what = Upload {
                path: file.clone(),
                filename: self.name.clone(),
                description: self.description.clone(),
                key: self.key.clone(),
                ..Upload::default()
            };
            let (client, workspace, bars) = (&client, &workspace, &bars);
            async move { (file, upload(client, workspace, bars, what).await) }
        });
        let mut uploads = stream::iter(all).buffered(self.parallel.get());
        let mut worst = None;
        while let Some((file, uploaded)) = uploads.next().await {
            match uploaded {
                Ok(uploaded) => bars.aside(|| self.show(file, &uploaded))?,
                // The others go on; each that failed is named.
                Err(failure) => {
                    if let Some(before) = worst.replace(failure) {
                        bars.aside(|| before.print());
                    }
                }
            }
        }
        worst.map_or(Ok(ExitCode::SUCCESS), Err)
    }

    fn show(&self, file: &Path, uploaded: &Uploaded<Value>) -> Result<(), Failure> {
        if self.connect.json || self.files.len() == 1 {
            return show::one(&uploaded.artifact, self.connect.json);
        }
        let id = uploaded.artifact["id"].as_str().unwrap_or_default();
        crate::failure::print(format_args!("{id}  {}", file.display()))
    }
}

impl Get {
    async fn run(self) -> Result<(), Failure> {
        let client = self.connect.client()?;
        let path = format!("/v1/artifacts/{}", escaped(&self.artifact));
        let artifact: Value = client
            .get(&path)
            .await
            .map_err(|error| fault::failure(&error))?;
        let to = self.place(artifact["filename"].as_str().unwrap_or_default())?;
        let bars = Bars::new();
        let bar = bars.sized(&to, artifact["size"].as_u64().unwrap_or(0));
        let download = Download {
            to,
            replace: self.force,
            progress: bar.progress("receiving"),
        };
        let got = client.download(&self.artifact, &download).await;
        let got = got.map_err(|error| {
            let failure = fault::failure(&error);
            match error {
                purvey_client::Error::File { .. } if !self.force && download.to.exists() => {
                    failure.hint("--output names another file, --force replaces this one")
                }
                _ => failure,
            }
        })?;
        drop(bar);
        if self.connect.json {
            let shown = json!({
                "id": self.artifact, "path": got.path.to_string_lossy(), "size": got.size, "sha256": got.sha256, "resumed": got.resumed,
            });
            return show::one(&shown, true);
        }
        let resumed = match got.resumed {
            0 => String::new(),
            bytes => format!(", {} of them came before", indicatif::HumanBytes(bytes)),
        };
        say(format_args!(
            "{}: {}{resumed}",
            got.path.display(),
            indicatif::HumanBytes(got.size)
        ));
        Ok(())
    }

    /// Where it goes; what the uploader called it is a name and no path.
    fn place(&self, filename: &str) -> Result<PathBuf, Failure> {
        let named = || {
            let usable =
                !matches!(filename, "" | "." | "..") && !filename.contains(['/', '\\', '\0']);
            usable.then(|| PathBuf::from(filename)).ok_or_else(|| {
                Failure::usage(format_args!(
                    "{:?} cannot be the name of a file",
                    crate::text::line(filename)
                ))
                .hint("name one with --output")
            })
        };
        match &self.output {
            None => named(),
            Some(output) if output.is_dir() => Ok(output.join(named()?)),
            Some(output) => Ok(output.clone()),
        }
    }
}

impl List {
    async fn run(&self) -> Result<(), Failure> {
        let workspace = self.workspace.id(&self.connect).await?;
        let mut path = format!("/v1/workspaces/{workspace}/artifacts");
        if let Some(status) = &self.status {
            path += &format!("?status={}", escaped(status));
        }
        let listed = self.connect.list(&path, &self.part).await?;
        let columns = [
            ("ID", "id"),
            ("STATUS", "status"),
            ("FILENAME", "filename"),
            ("SIZE", "size"),
            ("CREATED", "created_at"),
            ("DESCRIPTION", "description"),
        ];
        show::list(&listed, &columns, self.connect.json)
    }
}

impl One {
    fn path(&self) -> String {
        format!("/v1/artifacts/{}", escaped(&self.artifact))
    }
}
