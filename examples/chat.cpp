// A chat of one turn, token by token, with the probability of each: chat MODEL [PROMPT]
#include <cmath>
#include <cstdio>
#include <loom/loom.hpp>

int main(int argc, char** argv) {
  using namespace loom;
  const Engine engine = Engine::shared().or_exit();
  const Model model = Model::load(engine, argc > 1 ? argv[1] : "models/stories.entity").or_exit();
  const char* text = argc > 2 ? argv[2] : "Once upon a time";
  const std::vector<ChatTurn> turns = {{"user", text}};
  const bool chats = model.info().has_chat_template;  // a model without one continues the text
  const std::vector<TokenId> prompt =
      (chats ? model.tokenize_chat(turns) : model.tokenize(text)).or_exit();
  ModelSession session = model.session().or_exit();
  double sum = 0;
  GenerateOptions options{.max_tokens = 40, .logprobs = true};
  options.on_token = [&](const Token& token) {
    sum += token.logprob;
    std::printf("%-12.*s %6.2f %%\n", static_cast<int>(token.text.size()), token.text.data(),
                100 * std::exp(token.logprob));
    return true;
  };
  const Generation reply = session.generate(prompt, options).or_exit();
  std::printf("%zu tokens, perplexity %.3f\n", reply.token_ids.size(),
              std::exp(-sum / static_cast<double>(reply.token_ids.size())));
}
