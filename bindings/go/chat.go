package loom

/*
#include <loom.h>
#include <stdlib.h>
*/
import "C"

import (
	"bytes"
	"encoding/json"
	"runtime"
	"unsafe"
)

// Turn is a message of text: "system", "user" or "assistant", and its text.
type Turn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// ChatOptions are the further inputs of a chat template.
type ChatOptions struct {
	Tools                any    // functions that the model may call, in the shape of OpenAI; nil: none
	Documents            any    // a list that some templates quote
	Variables            any    // an object of template variables: {"enable_thinking": false}
	Date                 string // the day that a template may tell, "2024-07-26"; empty means today, in UTC
	NoReply              bool   // the prompt does not end where the assistant's reply begins
	ContinueFinalMessage bool   // the prompt ends after the last message, which the model continues
}

// jsonText is a value as JSON; json.RawMessage is taken as it is.
func jsonText(value any) (string, error) {
	if raw, ok := value.(json.RawMessage); ok {
		return string(raw), nil
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", invalid(err.Error())
	}
	return out.String(), nil
}

// raw are texts of C; free releases them.
func (options ChatOptions) raw() (how C.loom_chat_options, free func(), err error) {
	how.struct_size = C.sizeof_loom_chat_options
	how.no_reply = flag(options.NoReply)
	how.continue_final_message = flag(options.ContinueFinalMessage)
	var texts []*C.char
	free = func() {
		for _, one := range texts {
			C.free(unsafe.Pointer(one))
		}
	}
	put := func(words string, to **C.char) error {
		made, err := text(words)
		if err == nil {
			texts = append(texts, made)
			*to = made
		}
		return err
	}
	if options.Date != "" {
		err = put(options.Date, &how.date)
	}
	for _, one := range []struct {
		value any
		to    **C.char
	}{{options.Tools, &how.tools}, {options.Documents, &how.documents}, {options.Variables, &how.variables}} {
		if one.value == nil || err != nil {
			continue
		}
		var words string
		if words, err = jsonText(one.value); err == nil {
			err = put(words, one.to)
		}
	}
	if err != nil {
		free()
	}
	return how, free, err
}

// RenderChat is the conversation as the model's chat template writes it. messages are a list of Turn or of maps, or
// json.RawMessage. A message has role, content (text, null or a list of parts), tool_calls, tool_call_id, name and
// reasoning_content. The template sees all other members too.
func (m *Model) RenderChat(messages any, options ChatOptions) (string, error) {
	words, err := jsonText(messages)
	if err != nil {
		return "", err
	}
	list, err := text(words)
	if err != nil {
		return "", err
	}
	defer C.free(unsafe.Pointer(list))
	how, free, err := options.raw()
	if err != nil {
		return "", err
	}
	defer free()
	defer runtime.KeepAlive(m)
	return takenText(func(out **C.char) C.loom_status {
		return C.loom_model_render_messages(m.c(), list, &how, out)
	})
}

// ReadReply is a reply to the prompt of RenderChat as a message of JSON: {"role", "content", "reasoning_content",
// "tool_calls"}. tools: those of the conversation; nil: none.
func (m *Model) ReadReply(reply, prompt string, tools any) (json.RawMessage, error) {
	options, free, err := ChatOptions{Tools: tools}.raw()
	if err != nil {
		return nil, err
	}
	defer free()
	words, err := text(reply)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(words))
	before, err := text(prompt)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(before))
	defer runtime.KeepAlive(m)
	message, err := takenText(func(out **C.char) C.loom_status {
		return C.loom_model_read_reply(m.c(), words, before, options.tools, out)
	})
	return json.RawMessage(message), err
}

// Chat writes the next turn of a conversation with the model's own template. With tools the text is one for ReadReply.
func (m *Model) Chat(messages any, chat ChatOptions, options GenerateOptions, onToken func(Token) bool) (Generation, error) {
	prompt, err := m.RenderChat(messages, chat)
	if err != nil {
		return Generation{}, err
	}
	words, err := text(prompt)
	if err != nil {
		return Generation{}, err
	}
	defer C.free(unsafe.Pointer(words))
	defer runtime.KeepAlive(m)
	ids, err := takenIDs(func(ids **C.int32_t, count *C.int64_t) C.loom_status {
		return C.loom_model_tokenize(m.c(), words, 0, ids, count)
	})
	if err != nil {
		return Generation{}, err
	}
	session, err := m.Session(0)
	if err != nil {
		return Generation{}, err
	}
	defer session.Close()
	options.SpecialText = options.SpecialText || chat.Tools != nil
	return session.StreamIDs(ids, options, onToken)
}
