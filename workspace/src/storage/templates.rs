//! Templates: six that are always there, those of an owner, and those of others that an operator has published.

use std::sync::LazyLock;

use chrono::DateTime;
use holdfast_shared::{
    database::{Error, args},
    page::{Page, PageSize},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Workspace,
    deletion::published,
    page_of,
    rows::{EntityRow, entity},
};
use crate::{
    author::Author,
    entity::Entity,
    input::{InvalidField, Patch},
    kind::Kind,
};

holdfast_shared::statements! {
    /// Lists the templates that an owner may use, newest first.
    USABLE = "
        select e.id, cast(null as uuid) as project_id,
            {object}('props', {json:e.props}, 'name', e.name, 'key', e.key, 'kind', e.kind,
                'description', e.description, 'body', {json:e.body}, 'state', e.state) as fields,
            e.version, e.created_at, e.updated_at, e.deleted_at
        from onto_templates e
        where (e.owner_id = $1 or e.state = 'published')
          and e.deleted_at is null
          and (cast($2 as text) is null or e.state = $2)
          and (cast($3 as text) is null or e.key = $3)
          and (cast($4 as uuid) is null or e.id < $4)
        order by e.id desc
        limit $5
    ",
    /// Lists the requested templates of all owners, newest first.
    REQUESTED = "
        select e.id, cast(null as uuid) as project_id,
            {object}('props', {json:e.props}, 'name', e.name, 'key', e.key, 'kind', e.kind,
                'description', e.description, 'body', {json:e.body}, 'state', e.state) as fields,
            e.version, e.created_at, e.updated_at, e.deleted_at
        from onto_templates e
        where e.state = 'requested'
          and e.deleted_at is null
          and (cast($1 as uuid) is null or e.id < $1)
        order by e.id desc
        limit $2
    ",
    /// Returns the owner of a requested or published template.
    OWNER = "
        select owner_id
        from onto_templates
        where id = $1 and deleted_at is null and state in ('requested', 'published')
    ",
}

/// The templates that are always there. Their ids are smaller than others, so they come last in a list.
static BUILT_IN: LazyLock<Vec<Entity>> = LazyLock::new(|| {
    let files = [
        include_str!("../../templates/software_product.json"),
        include_str!("../../templates/website.json"),
        include_str!("../../templates/book.json"),
        include_str!("../../templates/event.json"),
        include_str!("../../templates/research.json"),
        include_str!("../../templates/business_launch.json"),
    ];
    files
        .iter()
        .rev()
        .enumerate()
        .map(|(place, file)| built_in(place, file))
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect()
});

fn built_in(place: usize, file: &str) -> Entity {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(file) else { panic!("a template is a JSON object") };
    fields.insert("state".to_owned(), json!("published"));
    fields.insert("props".to_owned(), json!({}));
    let at = DateTime::UNIX_EPOCH;
    Entity {
        kind: Kind::Template,
        id: Uuid::from_u128(0x7000_8000_0000_0000_0000 + place as u128 + 1),
        project_id: None,
        fields,
        version: 1,
        created_at: at,
        updated_at: at,
        deleted_at: None,
    }
}

impl Workspace {
    /// Lists the templates that an owner may use, newest first, after the template `cursor`; of one state and of one key, if
    /// given.
    pub async fn templates(
        &self,
        owner: &str,
        state: Option<&str>,
        key: Option<&str>,
        cursor: Option<Uuid>,
        size: PageSize,
    ) -> Result<Page<Entity>, Error> {
        let size = bounded(size);
        let args = args![owner, state.map(str::to_owned), key.map(str::to_owned), cursor, size.items + 1];
        let rows = self.database.fetch_all::<EntityRow>("list templates", USABLE, args).await?;
        let is_listed = |template: &&Entity| {
            cursor.is_none_or(|cursor| template.id < cursor)
                && state.is_none_or(|state| state == "published")
                && key.is_none_or(|key| template.fields["key"] == key)
        };
        let built_in = BUILT_IN.iter().filter(is_listed).cloned();
        let mut templates: Vec<Entity> =
            rows.into_iter().map(|row| entity(Kind::Template, row)).chain(built_in).collect();
        templates.truncate(size.items + 1);
        Ok(page_of(templates, size, |template| template.state().to_string().len(), |last| last.id.to_string()))
    }

    /// Returns the template with a key: one that is always there, or else the newest that the owner may use.
    pub async fn template_of_key(&self, owner: &str, key: &str) -> Result<Option<Entity>, Error> {
        if let Some(template) = BUILT_IN.iter().find(|template| template.fields["key"] == key) {
            return Ok(Some(template.clone()));
        }
        Ok(self.templates(owner, None, Some(key), None, PageSize::from(1)).await?.items.pop())
    }

    /// Returns a template that is always there, or a published one that its owner has not deleted.
    pub(super) async fn public_template(&self, id: Uuid) -> Result<Option<Entity>, Error> {
        if let Some(template) = BUILT_IN.iter().find(|template| template.id == id) {
            return Ok(Some(template.clone()));
        }
        let Some(owner) = self.owner_of_template(id).await? else { return Ok(None) };
        let template = super::read(&self.database, &owner, Kind::Template, id).await?;
        Ok(template.filter(|template| template.is_live() && template.is_published()))
    }

    /// Lists the requested templates of all owners, newest first, for an operator.
    pub async fn requested_templates(&self, cursor: Option<Uuid>, size: PageSize) -> Result<Page<Entity>, Error> {
        let size = bounded(size);
        let args = args![cursor, size.items + 1];
        let rows = self.database.fetch_all::<EntityRow>("list requested templates", REQUESTED, args).await?;
        let templates = rows.into_iter().map(|row| entity(Kind::Template, row)).collect();
        Ok(page_of(templates, size, |template: &Entity| template.state().to_string().len(), |last| last.id.to_string()))
    }

    /// Returns the owner of a requested or published template, for an operator who publishes it.
    pub async fn owner_of_template(&self, id: Uuid) -> Result<Option<String>, Error> {
        let row = self.database.fetch_optional::<(String,)>("find a template", OWNER, args![id]).await?;
        Ok(row.map(|row| row.0))
    }
}

/// Most templates of a page, because each has its body.
const MAX_PAGE: usize = 20;

fn bounded(size: PageSize) -> PageSize {
    PageSize { items: size.items.min(MAX_PAGE), ..size }
}

impl Entity {
    /// Returns whether this is a template that all users may use.
    pub fn is_published(&self) -> bool {
        self.kind == Kind::Template && self.fields.get("state").is_some_and(|state| state == "published")
    }
}

/// Returns the refusal of a publication, or of a change of what is published, unless an operator makes it.
pub fn refused_publication(author: Author<'_>, before: Option<&Entity>, patch: &Patch) -> Option<InvalidField> {
    let publishes = patch.kind == Kind::Template && patch.fields.get("state").is_some_and(|state| state == "published");
    let is_refused = !author.is_operator && (publishes || before.is_some_and(Entity::is_published));
    is_refused.then(published)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::read_contents;

    #[test]
    fn the_templates_that_are_always_there_make_projects() {
        let keys: Vec<&str> = BUILT_IN.iter().map(|template| template.fields["key"].as_str().unwrap()).collect();
        assert_eq!(keys, ["software_product", "website", "book", "event", "research", "business_launch"]);
        for template in BUILT_IN.iter() {
            let body = template.fields["body"].as_object().unwrap().clone();
            let contents = read_contents("body", &body).unwrap();
            assert!(contents.len() > 8, "{}", template.title());
        }
        assert!(BUILT_IN.is_sorted_by(|one, other| one.id > other.id));
    }
}
