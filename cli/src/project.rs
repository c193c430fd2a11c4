//! `waymark project`: makes and lists projects.

use clap::Subcommand;
use shared::app::{Clock, Ids};
use shared::models::project::{Organization, Project, ProjectId, ProjectName, Slug};
use shared::store::{ProjectCreation, Store};

use crate::failure::Failure;
use crate::output::{Output, card, minute, note, table};

#[derive(Debug, Subcommand)]
pub(crate) enum ProjectCommand {
    /// Make a project.
    Create {
        /// Its name for people.
        #[arg(long, value_parser = ProjectName::parse)]
        name: ProjectName,
        /// Its name in paths, such as `my-shop`; no other project may have it.
        #[arg(long, value_parser = Slug::parse)]
        slug: Slug,
        /// The organization that owns it.
        #[arg(long, default_value = "default", value_parser = Organization::parse)]
        org: Organization,
    },
    /// List the projects of all organizations, oldest first.
    List,
}

/// Runs a command on the tables.
pub(crate) async fn run(
    command: ProjectCommand,
    store: &Store,
    output: &Output,
) -> Result<(), Failure> {
    match command {
        ProjectCommand::Create { name, slug, org } => {
            let now = Clock::System.now();
            let project = Project {
                id: ProjectId::new(Ids::Random.new_uuid(now)),
                slug,
                name,
                organization: org,
                created_at: now,
            };
            create(&project, store, output).await
        }
        ProjectCommand::List => list(store, output).await,
    }
}

async fn create(project: &Project, store: &Store, output: &Output) -> Result<(), Failure> {
    match store.create_project(project).await? {
        ProjectCreation::SlugTaken => Err(Failure::SlugTaken(project.slug.clone())),
        ProjectCreation::Created => {
            let text = card([
                ("slug", project.slug.to_string()),
                ("name", project.name.as_str().to_owned()),
                ("organization", project.organization.to_string()),
                ("id", project.id.to_string()),
                ("created", minute(project.created_at)),
            ]);
            Ok(output.show(project, &text)?)
        }
    }
}

async fn list(store: &Store, output: &Output) -> Result<(), Failure> {
    let projects = store.list_projects().await?;
    if projects.is_empty() && !output.is_json() {
        note("There are no projects yet; `waymark project create` makes one.");
        return Ok(());
    }
    let rows = projects.iter().map(|project| {
        [
            project.slug.to_string(),
            project.name.as_str().to_owned(),
            project.organization.to_string(),
            project.id.to_string(),
            minute(project.created_at),
        ]
    });
    let text = table(["slug", "name", "organization", "id", "created"], rows);
    Ok(output.show(&projects, &text)?)
}
