//! The abilities that a run needs from its worker: 6 if its client brings overrides, 5 if it ingests a document, 4 if it has documents to answer from, 3 if its
//! message has files, or since a tool has returned files, else those of its agent.

/// The abilities that a run of this agent's newest version needs from its worker: 1 for a definition with an extension, 2 for a
/// planner's, 3 for one with a memory, and 4 for one with documents. A run below another needs at least 1.
macro_rules! needs {
    ($agent:literal) => {
        needs!($agent, "0")
    };
    ($agent:literal, $least:literal) => {
        concat!(
            "(
                select coalesce(
                    max(
                        case
                            when v.extension->>'knowledge' is not null then 4
                            when v.extension->>'memory' is not null then 3
                            when v.extension->>'kind' is not null then 2
                            when v.extension is not null then 1
                            else ",
            $least,
            "
                        end
                    ),
                    ",
            $least,
            "
                )
                from agent_definitions a
                join agent_definition_versions v
                    on v.agent_definition_id = a.id and v.version = a.version
                where a.id = ",
            $agent,
            "
            )"
        )
    };
}
pub(in crate::storage) use needs;
