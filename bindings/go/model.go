package loom

/*
#include <loom.h>
#include <stdlib.h>
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// GenerateOptions: how the next tokens are chosen; zeros are the defaults of the library.
type GenerateOptions struct {
	MaxTokens         int64   // 0 means 256
	Temperature       float32 // 0 takes the likeliest token; else logits are divided by it
	TopK              int64   // keep the k likeliest tokens; 0 keeps all
	TopP              float32 // keep the fewest tokens with this share of the probability; 0 means 1
	MinP              float32 // keep those with at least this share of the best one's
	RepetitionPenalty float32 // Keskar et al., 2019; 0 means 1
	Seed              uint64  // equal seeds give equal texts, on any machine
	Stop              []string
	IgnoreEOS         bool
	Logprobs          bool
	SpecialText       bool // marks of chats become text too, for ReadReply
}

// Token is one that was drawn.
type Token struct {
	ID      int32
	Text    string // what it adds, whole characters
	Logprob float32
}

// Generation is what was generated.
type Generation struct {
	Text         string
	TokenIDs     []int32
	Logprobs     []float32
	Stop         Stop
	PromptTokens int64
}

// ModelInfo is what a model is.
type ModelInfo struct {
	Layers, Vocab, Context, Parameters int64
	Architecture                       string
}

// Model is a language model with its weights, tokenizer and chat template. It never changes.
type Model struct{ *object }

// LoadModel reads an .entity file, a GGUF file, or a Hugging Face folder. engine nil: the shared one.
func LoadModel(path string, engine *Engine) (*Model, error) {
	words, err := text(path)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(words))
	defer runtime.KeepAlive(engine)
	var out *C.loom_model
	if err := call(func() C.loom_status { return C.loom_model_load(rawEngine(engine), words, nil, &out) }); err != nil {
		return nil, err
	}
	return &Model{own(unsafe.Pointer(out), func(p unsafe.Pointer) { C.loom_model_free((*C.loom_model)(p)) })}, nil
}

func (m *Model) c() *C.loom_model {
	if m == nil {
		return nil
	}
	return (*C.loom_model)(m.raw())
}

// Info tells layers, sizes and the architecture.
func (m *Model) Info() (ModelInfo, error) {
	defer runtime.KeepAlive(m)
	info := C.loom_model_info{struct_size: C.sizeof_loom_model_info}
	err := call(func() C.loom_status { return C.loom_model_get_info(m.c(), &info) })
	return ModelInfo{int64(info.layers), int64(info.vocab), int64(info.context), int64(info.parameters),
		C.GoString(&info.architecture[0])}, err
}

// Tokenize gives ids, with the tokens that the tokenizer puts around a text.
func (m *Model) Tokenize(words string) ([]int32, error) {
	raw, err := text(words)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(raw))
	defer runtime.KeepAlive(m)
	return takenIDs(func(ids **C.int32_t, count *C.int64_t) C.loom_status {
		return C.loom_model_tokenize(m.c(), raw, 1, ids, count)
	})
}

// first is the address of a list, or null.
func first(ids []int32) *C.int32_t {
	if len(ids) == 0 {
		return nil
	}
	return (*C.int32_t)(unsafe.Pointer(&ids[0]))
}

// Detokenize gives the text of ids, without special tokens.
func (m *Model) Detokenize(ids []int32) (string, error) {
	defer runtime.KeepAlive(m)
	return takenText(func(out **C.char) C.loom_status {
		return C.loom_model_detokenize(m.c(), first(ids), C.int64_t(len(ids)), 1, out)
	})
}

// Generate writes new text after a prompt, in a session of its own.
func (m *Model) Generate(prompt string, options GenerateOptions) (Generation, error) {
	return m.Stream(prompt, options, nil)
}

// Stream is the same, token by token; false stops.
func (m *Model) Stream(prompt string, options GenerateOptions, onToken func(Token) bool) (Generation, error) {
	session, err := m.Session(0)
	if err != nil {
		return Generation{}, err
	}
	defer session.Close()
	return session.Stream(prompt, options, onToken)
}

// ModelSession is one conversation, for one goroutine at a time.
type ModelSession struct{ *object }

// Session takes all memory a run needs. context: positions; 0 means the model's, at most 2048.
func (m *Model) Session(context int64) (*ModelSession, error) {
	defer runtime.KeepAlive(m)
	how := C.loom_model_session_options{struct_size: C.sizeof_loom_model_session_options}
	how.context = C.int64_t(context)
	var out *C.loom_model_session
	if err := call(func() C.loom_status { return C.loom_model_start(m.c(), &how, &out) }); err != nil {
		return nil, err
	}
	free := func(p unsafe.Pointer) { C.loom_model_session_free((*C.loom_model_session)(p)) }
	return &ModelSession{own(unsafe.Pointer(out), free)}, nil
}

func (s *ModelSession) c() *C.loom_model_session {
	if s == nil {
		return nil
	}
	return (*C.loom_model_session)(s.raw())
}

// Feed reads tokens.
func (s *ModelSession) Feed(ids []int32) error {
	defer runtime.KeepAlive(s)
	return call(func() C.loom_status {
		return C.loom_model_session_feed(s.c(), first(ids), C.int64_t(len(ids)))
	})
}

// Logits [vocab] after the last token fed; none before the first.
func (s *ModelSession) Logits() ([]float32, error) {
	defer runtime.KeepAlive(s)
	var values *C.float
	var count C.int64_t
	err := call(func() C.loom_status { return C.loom_model_session_logits(s.c(), &values, &count) })
	if err != nil || count == 0 {
		return nil, err
	}
	return append([]float32(nil), unsafe.Slice((*float32)(unsafe.Pointer(values)), int(count))...), nil
}

// Rewind forgets everything from position on.
func (s *ModelSession) Rewind(position int64) error {
	defer runtime.KeepAlive(s)
	return call(func() C.loom_status { return C.loom_model_session_rewind(s.c(), C.int64_t(position)) })
}

// Stream reads the prompt, then draws tokens; onToken may be nil, and stops by returning false.
func (s *ModelSession) Stream(prompt string, options GenerateOptions, onToken func(Token) bool) (Generation, error) {
	words, err := text(prompt)
	if err != nil {
		return Generation{}, err
	}
	defer C.free(unsafe.Pointer(words))
	return s.generate(options, onToken, func(how *C.loom_generate_options, out **C.loom_generation) C.loom_status {
		return C.loom_model_session_generate(s.c(), words, how, out)
	})
}

// StreamIDs is the same for a prompt of tokens.
func (s *ModelSession) StreamIDs(prompt []int32, options GenerateOptions, onToken func(Token) bool) (Generation, error) {
	return s.generate(options, onToken, func(how *C.loom_generate_options, out **C.loom_generation) C.loom_status {
		return C.loom_model_session_generate_ids(s.c(), first(prompt), C.int64_t(len(prompt)), how, out)
	})
}

type generateFn func(*C.loom_generate_options, **C.loom_generation) C.loom_status

func (s *ModelSession) generate(options GenerateOptions, onToken func(Token) bool, function generateFn) (Generation, error) {
	defer runtime.KeepAlive(s)
	how, free, err := options.raw()
	if err != nil {
		return Generation{}, err
	}
	defer free()
	w := &watch{onToken: onToken}
	user, done := w.user()
	defer done()
	how.user = user
	if onToken != nil {
		how.on_token = tokenFn()
	}
	var out *C.loom_generation
	err = call(func() C.loom_status { return function(&how, &out) })
	if out != nil {
		defer C.loom_generation_free(out)
	}
	if err = w.check(err); err != nil {
		return Generation{}, err
	}
	return generationOf(out)
}

func (options GenerateOptions) raw() (how C.loom_generate_options, free func(), err error) {
	how.struct_size = C.sizeof_loom_generate_options
	how.max_tokens = C.int64_t(options.MaxTokens)
	how.temperature = C.float(options.Temperature)
	how.top_k = C.int64_t(options.TopK)
	how.top_p = C.float(options.TopP)
	how.min_p = C.float(options.MinP)
	how.repetition_penalty = C.float(options.RepetitionPenalty)
	how.seed = C.uint64_t(options.Seed)
	how.ignore_eos = flag(options.IgnoreEOS)
	how.logprobs = flag(options.Logprobs)
	how.special_text = flag(options.SpecialText)
	how.stop_count = C.int32_t(len(options.Stop))
	list := (*[1 << 20]*C.char)(C.calloc(C.size_t(len(options.Stop)+1), C.size_t(unsafe.Sizeof(uintptr(0)))))
	free = func() {
		for i := range options.Stop {
			C.free(unsafe.Pointer(list[i]))
		}
		C.free(unsafe.Pointer(list))
	}
	for i, stop := range options.Stop {
		if list[i], err = text(stop); err != nil {
			free()
			return how, nil, err
		}
	}
	how.stop = (**C.char)(unsafe.Pointer(list))
	return how, free, nil
}

func generationOf(from *C.loom_generation) (Generation, error) {
	var words *C.char
	var ids *C.int32_t
	var scores *C.float
	var count, scored C.int64_t
	info := C.loom_generation_info{struct_size: C.sizeof_loom_generation_info}
	err := call(func() C.loom_status {
		if status := C.loom_generation_text(from, &words, nil); status != C.LOOM_OK {
			return status
		}
		if status := C.loom_generation_ids(from, &ids, &count); status != C.LOOM_OK {
			return status
		}
		if status := C.loom_generation_logprobs(from, &scores, &scored); status != C.LOOM_OK {
			return status
		}
		return C.loom_generation_get_info(from, &info)
	})
	if err != nil {
		return Generation{}, err
	}
	made := Generation{Text: C.GoString(words), Stop: Stop(info.stop), PromptTokens: int64(info.prompt_tokens)}
	if count > 0 {
		made.TokenIDs = append(made.TokenIDs, unsafe.Slice((*int32)(unsafe.Pointer(ids)), int(count))...)
	}
	if scored > 0 {
		made.Logprobs = append(made.Logprobs, unsafe.Slice((*float32)(unsafe.Pointer(scores)), int(scored))...)
	}
	return made, nil
}
