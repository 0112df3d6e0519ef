//! Which model answers: `CHAT_MODEL_PROVIDER`, its name, keys, addresses and patience.
#[derive(Debug, Clone, clap::Args)]
pub struct ModelConfig {}
#[derive(Debug)]
pub struct ModelChoice;
#[derive(Debug)]
pub enum Provider {}
