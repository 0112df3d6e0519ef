//! Which model answers: `CHAT_MODEL_PROVIDER`, its name, keys, addresses and patience.
