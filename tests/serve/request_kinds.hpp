// A request of every kind that the server answers: each route, whole and streamed, with its fields.
#pragma once

namespace loom::core::test {

struct Kind {
  const char* method;
  const char* path;
  const char* body;
};

#define TWO_TOKENS R"("seed":3,"max_tokens":2,"temperature":0)"
#define HELLO R"("messages":[{"role":"user","content":"Hi"}])"
#define TOOLS \
  R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":) \
  R"("object","properties":{"a":{"type":"integer"}}}}}])"

inline const Kind kKinds[] = {
    {"POST", "/v1/completions", R"({"prompt":"Once",)" TWO_TOKENS "}"},
    {"POST", "/v1/completions", R"({"prompt":"Once","stream":true,)" TWO_TOKENS "}"},
    {"POST", "/v1/completions", R"({"prompt":["Once","Tom"],"n":2,)" TWO_TOKENS "}"},
    {"POST", "/v1/completions", R"({"prompt":[7,8,9],"logprobs":2,)" TWO_TOKENS "}"},
    {"POST", "/v1/completions", R"({"prompt":"Once","echo":true,)" TWO_TOKENS "}"},
    {"POST", "/v1/completions",
     R"({"prompt":"Once upon","echo":true,"logprobs":1,)" TWO_TOKENS "}"},
    {"POST", "/v1/completions", R"({"prompt":"Once","logit_bias":{"a":1},)" TWO_TOKENS "}"},
    {"POST", "/v1/completions",
     R"({"prompt":"Once","json_schema":{"type":"integer"},)" TWO_TOKENS "}"},
    {"POST", "/v1/completions", R"({"prompt":"Once","grammar":"root ::= [a-z]+",)" TWO_TOKENS "}"},
    {"POST", "/v1/completions", R"({"prompt":"Once","stop":["x"],)" TWO_TOKENS "}"},
    {"POST", "/v1/completions", R"({"prompt":3})"},
    {"POST", "/v1/completions", R"({"prompt":)"},
    {"POST", "/v1/chat/completions", "{" HELLO "," TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions", "{" HELLO R"(,"stream":true,)" TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions",
     "{" HELLO R"(,"stream":true,"resumable":true,)" TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions",
     "{" HELLO R"(,"stream":true,"stream_options":{"include_usage":true},)" TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions",
     "{" HELLO R"(,"logprobs":true,"top_logprobs":2,)" TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions", "{" HELLO "," TOOLS "," TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions", "{" HELLO "," TOOLS R"(,"stream":true,)" TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions",
     "{" HELLO "," TOOLS R"(,"tool_choice":"required",)" TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions",
     "{" HELLO R"(,"response_format":{"type":"json_object"},)" TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions",
     "{" HELLO R"(,"return_progress":true,"stream":true,)"
     R"("timings_per_token":true,)" TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions/input_tokens", "{" HELLO "}"},
    {"POST", "/v1/responses", R"({"input":"Hi","max_output_tokens":2,"temperature":0})"},
    {"POST", "/v1/responses",
     R"({"input":"Hi","max_output_tokens":2,"temperature":0,"stream":true})"},
    {"POST", "/v1/responses/input_tokens", R"({"input":"Hi"})"},
    {"POST", "/v1/messages", "{" HELLO "," TWO_TOKENS "}"},
    {"POST", "/v1/messages", "{" HELLO R"(,"stream":true,)" TWO_TOKENS "}"},
    {"POST", "/v1/messages",
     "{" HELLO R"(,"tools":[{"name":"f","input_schema":{}}],)" TWO_TOKENS "}"},
    {"POST", "/v1/messages/count_tokens", "{" HELLO "}"},
    {"POST", "/api/generate",
     R"({"prompt":"Hi","stream":false,"options":{"num_predict":2,"temperature":0}})"},
    {"POST", "/api/generate", R"({"prompt":"Hi","options":{"num_predict":2,"temperature":0}})"},
    {"POST", "/api/generate",
     R"({"prompt":"Hi","raw":true,"options":{"num_predict":2,"temperature":0}})"},
    {"POST", "/api/chat",
     "{" HELLO R"(,"stream":false,"options":{"num_predict":2,"temperature":0}})"},
    {"POST", "/api/chat", "{" HELLO R"(,"options":{"num_predict":2,"temperature":0}})"},
    {"POST", "/api/chat", R"({"messages":[]})"},
    {"POST", "/api/show", "{}"},
    {"GET", "/api/tags", ""},
    {"GET", "/api/ps", ""},
    {"GET", "/api/version", ""},
    {"POST", "/completion", R"({"prompt":"Once","n_predict":2,"temperature":0})"},
    {"POST", "/completion", R"({"prompt":"Once","n_predict":2,"temperature":0,"stream":true})"},
    {"POST", "/completion", R"({"prompt":"Once","n_predict":2,"temperature":0,"n_probs":3})"},
    {"POST", "/tokenize", R"({"content":"Once upon","with_pieces":true})"},
    {"POST", "/detokenize", R"({"tokens":[7,8,9]})"},
    {"POST", "/apply-template", "{" HELLO "}"},
    {"POST", "/v1/embeddings", R"({"input":["Once","Tom"]})"},
    {"POST", "/v1/embeddings", R"({"input":"Once","encoding_format":"base64"})"},
    {"POST", "/api/embed", R"({"input":"Once"})"},
    {"POST", "/embedding", R"({"content":"Once"})"},
    {"POST", "/predict",
     R"({"instances":[{"@requestFormat":"chatCompletions",)" HELLO "," TWO_TOKENS "}]}"},
    {"GET", "/v1/models", ""},
    {"GET", "/props", ""},
    {"GET", "/slots", ""},
    {"GET", "/metrics", ""},
    {"GET", "/health", ""},
    {"GET", "/openapi.json", ""},
    {"GET", "/", ""},
    {"GET", "/nothing", ""},
    {"DELETE", "/v1/models", ""},
};

}  // namespace loom::core::test
