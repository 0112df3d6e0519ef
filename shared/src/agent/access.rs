//! The callers that may use an agent, and the callers that answer the questions of its runs.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::InvalidDefinition;

/// The callers that an agent admits. Other callers find no such agent. Operators may use each agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged, expecting = "access is everybody, users, operators or a list of owners")]
pub enum Access {
    /// A group of callers.
    Group(AccessGroup),
    /// These owner ids: 1 to 1,000 of them.
    Owners(BTreeSet<String>),
}

/// Groups of callers that an agent can admit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessGroup {
    /// Each caller.
    #[default]
    Everybody,
    /// All callers but anonymous ones.
    Users,
    /// Operators only.
    Operators,
}

/// The callers that decide about the calls that a run asks about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged, expecting = "approvers is owner, operators or a list of owners")]
pub enum Approvers {
    /// A group of callers.
    Group(ApproverGroup),
    /// These owner ids: 1 to 1,000 of them.
    Owners(BTreeSet<String>),
}

/// Groups of callers that can decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApproverGroup {
    /// The owner of the run.
    #[default]
    Owner,
    /// Operators, for each owner's runs.
    Operators,
}

/// The properties of a caller that access and approvers depend on.
#[derive(Debug, Clone, Copy)]
pub struct CallerRights<'a> {
    /// Owner id.
    pub owner: &'a str,
    /// True for an anonymous user.
    pub is_anonymous: bool,
    /// True for an operator.
    pub is_operator: bool,
}

const MAX_OWNERS: usize = 1_000;
const MAX_OWNER_CHARS: usize = 128;

impl Access {
    /// Returns whether this caller may use the agent.
    pub fn admits(&self, caller: CallerRights<'_>) -> bool {
        caller.is_operator
            || match self {
                Self::Group(AccessGroup::Everybody) => true,
                Self::Group(AccessGroup::Users) => !caller.is_anonymous,
                Self::Group(AccessGroup::Operators) => false,
                Self::Owners(owners) => owners.contains(caller.owner),
            }
    }

    /// Returns whether an absent owner may be admitted, judged by the owner id. An id does not tell operators.
    pub fn may_admit(&self, owner: &str, is_anonymous: bool) -> bool {
        *self == Self::Group(AccessGroup::Operators)
            || self.admits(CallerRights { owner, is_anonymous, is_operator: false })
    }

    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn check(&self) -> Result<(), InvalidDefinition> {
        match self {
            Self::Owners(owners) => check_owners("access", owners),
            Self::Group(_) => Ok(()),
        }
    }
}

impl Approvers {
    /// Returns whether the caller decides about a run of `owner`.
    pub fn include(&self, caller: CallerRights<'_>, owner: &str) -> bool {
        match self {
            Self::Group(ApproverGroup::Owner) => caller.owner == owner,
            Self::Group(ApproverGroup::Operators) => caller.is_operator,
            Self::Owners(owners) => owners.contains(caller.owner),
        }
    }

    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn check(&self) -> Result<(), InvalidDefinition> {
        match self {
            Self::Owners(owners) => check_owners("approvers", owners),
            Self::Group(_) => Ok(()),
        }
    }
}

impl Default for Access {
    fn default() -> Self {
        Self::Group(AccessGroup::default())
    }
}

impl Default for Approvers {
    fn default() -> Self {
        Self::Group(ApproverGroup::default())
    }
}

fn check_owners(field: &str, owners: &BTreeSet<String>) -> Result<(), InvalidDefinition> {
    if owners.is_empty() || owners.len() > MAX_OWNERS {
        return Err(InvalidDefinition::new(field, format!("a list of 1 to {MAX_OWNERS} owners")));
    }
    let is_name = |owner: &String| {
        !owner.trim().is_empty() && owner.chars().count() <= MAX_OWNER_CHARS && !owner.chars().any(char::is_control)
    };
    if owners.iter().all(is_name) {
        Ok(())
    } else {
        let problem =
            format!("an owner has 1 to {MAX_OWNER_CHARS} characters, not only spaces and no control characters");
        Err(InvalidDefinition::new(field, problem))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    const ANONYMOUS: CallerRights<'_> = CallerRights { owner: "anonymous_1", is_anonymous: true, is_operator: false };
    const ANN: CallerRights<'_> = CallerRights { owner: "ann", is_anonymous: false, is_operator: false };
    const BOB: CallerRights<'_> = CallerRights { owner: "bob", is_anonymous: false, is_operator: false };
    const OLGA: CallerRights<'_> = CallerRights { owner: "olga", is_anonymous: false, is_operator: true };

    #[test]
    fn access_admits_operators_and_listed_owners() {
        let check = |access: Value, expected: [bool; 4]| {
            let read: Access = from_value(access.clone()).unwrap();
            assert_eq!([ANONYMOUS, ANN, BOB, OLGA].map(|caller| read.admits(caller)), expected, "{access}");
            assert_eq!(json!(read), access);
        };
        check(json!("everybody"), [true, true, true, true]);
        check(json!("users"), [false, true, true, true]);
        check(json!("operators"), [false, false, false, true]);
        check(json!(["ann"]), [false, true, false, true]);
        assert!(from_value::<Access>(json!("friends")).is_err());
    }

    #[test]
    fn an_owner_id_tells_whether_access_may_admit_but_not_whether_it_is_an_operator() {
        let check = |access: Value, [anonymous, ann, bob]: [bool; 3]| {
            let read: Access = from_value(access.clone()).unwrap();
            let found = [("anonymous_1", true), ("ann", false), ("bob", false)];
            let found = found.map(|(owner, is_anonymous)| read.may_admit(owner, is_anonymous));
            assert_eq!(found, [anonymous, ann, bob], "{access}");
        };
        check(json!("everybody"), [true, true, true]);
        check(json!("users"), [false, true, true]);
        check(json!("operators"), [true, true, true]);
        check(json!(["ann"]), [false, true, false]);
    }

    #[test]
    fn a_list_of_owners_has_valid_owner_ids() {
        let check = |owners: Vec<String>, is_accepted: bool| {
            let owners = json!(owners);
            let access: Access = from_value(owners.clone()).unwrap();
            let approvers: Approvers = from_value(owners.clone()).unwrap();
            assert_eq!([access.check().is_ok(), approvers.check().is_ok()], [is_accepted; 2], "{owners}");
        };
        check(vec!["ann".into(), "b".repeat(128)], true);
        check(vec![], false);
        check(vec!["ann".into(), String::new()], false);
        check(vec![" \t".into()], false);
        check(vec!["an\nn".into()], false);
        check(vec!["b".repeat(129)], false);
    }

    #[test]
    fn only_the_named_approvers_decide() {
        let check = |approvers: Value, expected: [bool; 4]| {
            let read: Approvers = from_value(approvers.clone()).unwrap();
            let found = [ANONYMOUS, ANN, BOB, OLGA].map(|caller| read.include(caller, "ann"));
            assert_eq!(found, expected, "{approvers}");
            assert_eq!(json!(read), approvers);
        };
        check(json!("owner"), [false, true, false, false]);
        check(json!("operators"), [false, false, false, true]);
        check(json!(["bob"]), [false, false, true, false]);
    }
}
