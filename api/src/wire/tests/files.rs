//! The files of tools on the wires that have a place for them.

use holdfast_shared::file::ToolFile;

use super::*;

#[test]
fn the_files_of_a_call_come_with_its_result() {
    let file_id = Uuid::nil();
    let file = ToolFile { file_id, name: "draw.png".into(), media_type: "image/png".into(), bytes: 3 };
    let (call_id, name, output) = ("c".into(), "kb__draw".into(), Some("[image]".into()));
    let body = ToolCallCompleted { call_id, name, output, files: vec![file], ..Default::default() }.into();
    let url = format!("/v1/files/{file_id}");
    let event = Event::new(EventId::new(1, 5), DateTime::UNIX_EPOCH, &body);
    let before = LogPosition::after(&Event::new(EventId::new(1, 4), DateTime::UNIX_EPOCH, &call_started()));
    let chunks = json!(ai_sdk::wire::chunks(&view(Wire::AiSdk, Detail::All), before, &event));
    let facts = json!({"id": file_id, "name": "draw.png", "bytes": 3, "toolCallId": "c"});
    let expected = json!({
        "type": "file", "url": url, "mediaType": "image/png", "providerMetadata": {"holdfast": facts}
    });
    assert_eq!(chunks[1], expected);
    assert_eq!((&chunks[0]["type"], &chunks[2]["type"]), (&json!("tool-output-available"), &json!("data-call")));
    let files =
        format!(r#"[{{"fileId":"{file_id}","name":"draw.png","mediaType":"image/png","bytes":3,"url":"{url}"}}]"#);
    let named = r#""toolName":"kb__draw","toolCallId":"c""#;
    let result =
        format!(r#"{{"type":"tool_result","result":{{"success":true,"data":"[image]",{named},"files":{files}}}}}"#);
    let found = frames(Wire::Agent, Detail::All, ("1-4", "1-5"), &body);
    assert_eq!(found, text_of_frames("1-5", &[&result]));
}
