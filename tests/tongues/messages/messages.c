/* Renders conversations for tests/outside/messages_check.py. A line of input has a model, flags, messages, tools and
 * variables, with tabs between them. A line of output has the prompt in hexadecimal digits, or the error. */
#include <loom.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *or_null(const char *text) { return text[0] != 0 ? text : NULL; }

int main(void) {
  char *line = NULL, *path = NULL;
  size_t size = 0;
  loom_model *model = NULL;
  while (getline(&line, &size, stdin) > 0) {
    char *fields[5], *rest = line;
    line[strcspn(line, "\n")] = 0;
    for (int i = 0; i < 5; ++i) fields[i] = strsep(&rest, "\t");
    if (path == NULL || strcmp(path, fields[0]) != 0) {
      loom_model_free(model);
      free(path);
      path = strdup(fields[0]);
      model = NULL;
      loom_model_load(NULL, path, NULL, &model);
    }
    loom_chat_options how = LOOM_CHAT_OPTIONS_INIT;
    how.no_reply = strchr(fields[1], 'n') != NULL;
    how.continue_final_message = strchr(fields[1], 'c') != NULL;
    how.tools = or_null(fields[3]);
    how.variables = or_null(fields[4]);
    char *text = NULL;
    if (loom_model_render_messages(model, fields[2], &how, &text) == LOOM_OK) {
      printf("ok ");
      for (const char *at = text; *at != 0; ++at) printf("%02x", (unsigned char)*at);
      printf("\n");
    } else {
      printf("error %s\n", loom_last_error());
    }
    fflush(stdout);
    loom_free(text);
  }
  loom_model_free(model);
  free(path);
  free(line);
  return 0;
}
