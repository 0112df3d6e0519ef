//! Requests for vectors and their answers, by the protocol of each provider.

use holdfast_shared::config::Provider;
use serde::Deserialize;
use serde_json::{Value, json};

/// The purpose of a text. Some models make other vectors for questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingPurpose {
    /// A passage that is to be found.
    Passage,
    /// A question for which passages are looked for.
    Question,
}

impl EmbeddingPurpose {
    /// Returns the name that Google's models have for it.
    fn task_type(self) -> &'static str {
        match self {
            Self::Passage => "RETRIEVAL_DOCUMENT",
            Self::Question => "RETRIEVAL_QUERY",
        }
    }
}

/// An answer of OpenAI, or of a compatible server.
#[derive(Deserialize)]
struct OpenAiVectors {
    data: Vec<OpenAiVector>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    /// The place of the text. A server that leaves it out keeps the order.
    #[serde(default)]
    index: usize,
    embedding: Vec<f32>,
}

/// An answer of Gemini.
#[derive(Deserialize)]
struct GeminiVectors {
    embeddings: Vec<GoogleVector>,
}

#[derive(Deserialize)]
struct GoogleVector {
    values: Vec<f32>,
}

/// An answer of Vertex AI.
#[derive(Deserialize)]
struct VertexPredictions {
    predictions: Vec<VertexPrediction>,
}

#[derive(Deserialize)]
struct VertexPrediction {
    embeddings: GoogleVector,
}

/// An answer of Ollama.
#[derive(Deserialize)]
struct OllamaVectors {
    embeddings: Vec<Vec<f32>>,
}

/// Returns the path of a request, after the provider's address.
pub fn path(provider: Provider, model: &str) -> String {
    match provider {
        Provider::Gemini => format!("{}:batchEmbedContents", super::gemini::path_of(model)),
        Provider::Vertex => format!("publishers/google/{}:predict", super::gemini::path_of(model)),
        Provider::Ollama => "api/embed".to_owned(),
        Provider::OpenAi | Provider::Anthropic | Provider::Scripted => "embeddings".to_owned(),
    }
}

/// Returns the body of a request for the vectors of some texts.
pub fn body(provider: Provider, model: &str, texts: &[String], purpose: EmbeddingPurpose) -> Value {
    match provider {
        Provider::Gemini => {
            let request = |text| json!({"model": super::gemini::path_of(model), "content": {"parts": [{"text": text}]}, "taskType": purpose.task_type()});
            json!({"requests": texts.iter().map(|text| not_empty(text)).map(request).collect::<Vec<_>>()})
        }
        Provider::Vertex => {
            let instance = |text| json!({"content": text, "task_type": purpose.task_type()});
            json!({"instances": texts.iter().map(|text| not_empty(text)).map(instance).collect::<Vec<_>>()})
        }
        _ => json!({"model": model, "input": texts}),
    }
}

/// Returns the vectors of an answer, in the order of the texts.
pub fn vectors(provider: Provider, answer: Value) -> serde_json::Result<Vec<Vec<f32>>> {
    let values = |vectors: Vec<GoogleVector>| vectors.into_iter().map(|vector| vector.values).collect();
    Ok(match provider {
        Provider::Gemini => values(serde_json::from_value::<GeminiVectors>(answer)?.embeddings),
        Provider::Vertex => {
            let predictions = serde_json::from_value::<VertexPredictions>(answer)?.predictions;
            values(predictions.into_iter().map(|prediction| prediction.embeddings).collect())
        }
        Provider::Ollama => serde_json::from_value::<OllamaVectors>(answer)?.embeddings,
        Provider::OpenAi | Provider::Anthropic | Provider::Scripted => {
            let mut data = serde_json::from_value::<OpenAiVectors>(answer)?.data;
            data.sort_by_key(|vector| vector.index);
            data.into_iter().map(|vector| vector.embedding).collect()
        }
    })
}

/// Google refuses a text of no characters as if there were too many requests.
fn not_empty(text: &str) -> &str {
    if text.trim().is_empty() { " " } else { text }
}
