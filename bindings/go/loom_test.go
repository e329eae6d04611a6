package loom

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const oneLayer = `{"loom": 1, "grid": [1,1,1,1], "input": [4], "cells": [
	{"at":[0,0,0,0],"type":"Dense","in":4,"out":3}]}`

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func network(t *testing.T) *Network {
	net := must[*Network](t)(NetworkFromJSON(oneLayer, LoadOptions{}))
	t.Cleanup(net.Close)
	return net
}

func fails(t *testing.T, err error, code Code, words string) {
	t.Helper()
	var found *Error
	if !errors.As(err, &found) || found.Code != code || !strings.Contains(found.Message, words) {
		t.Errorf("got %v, wanted %v with %q", err, code, words)
	}
}

func TestClosedAndNilValuesAreErrorsByCode(t *testing.T) {
	net := network(t)
	session := must[*Session](t)(net.Session(SessionOptions{}))
	session.Close()
	session.Close()
	x := NewTensor(make([]float32, 4), 1, 4)
	_, err := session.Run(x)
	fails(t, err, CodeInvalidArgument, "loom_session is null")
	trainer := must[*Trainer](t)(net.Trainer(TrainerOptions{}))
	net.Close()
	_, err = net.Predict(x)
	fails(t, err, CodeInvalidArgument, "loom_network is null")
	_, err = net.Trainer(TrainerOptions{})
	fails(t, err, CodeInvalidArgument, "loom_network is null")
	_, err = trainer.Fit(nil, nil, FitOptions{})
	fails(t, err, CodeInvalidArgument, "loom_dataset is null")
	var none *Model
	_, err = none.Generate("a", GenerateOptions{})
	fails(t, err, CodeInvalidArgument, "loom_model is null")
	array := must[*Array](t)(network(t).Predict(x))
	array.Close()
	_, err = array.Float32()
	fails(t, err, CodeInvalidArgument, "loom_array is null")
}

func TestWrongShapesAndFilesAreErrorsByCode(t *testing.T) {
	net := network(t)
	_, err := net.Predict(NewTensor(make([]float32, 5), 1, 5))
	fails(t, err, CodeInvalidArgument, "[1, 5]")
	_, err = net.Predict(NewTensor(make([]float32, 5), 2, 3))
	fails(t, err, CodeInvalidArgument, "do not fill")
	_, err = net.Predict(NewTensor(make([]float32, 4), -1, -4))
	fails(t, err, CodeInvalidArgument, "shape")
	_, err = net.Parameter("no\x00thing")
	fails(t, err, CodeInvalidArgument, "NUL")
	_, err = net.Parameter("nothing")
	fails(t, err, CodeNotFound, "nothing")
	_, err = LoadNetwork("/nowhere/net.entity", LoadOptions{})
	fails(t, err, CodeNotFound, "/nowhere")
	_, err = NetworkFromJSON(`{"loom": 1`, LoadOptions{})
	fails(t, err, CodeBadFile, "")
	_, err = NewEngine(EngineOptions{ISA: "abacus"})
	fails(t, err, CodeUnsupported, "abacus")
}

func TestANetworkIsTrainedByStepsSavedAndLoaded(t *testing.T) {
	engine := must[*Engine](t)(NewEngine(EngineOptions{Threads: 1}))
	if info := must[EngineInfo](t)(engine.Info()); info.Threads != 1 {
		t.Error(info)
	}
	net := must[*Network](t)(NetworkFromJSON(oneLayer, LoadOptions{Engine: engine}))
	engine.Close() // the network keeps it
	values := make([]float32, 32)
	for i := range values {
		values[i] = float32(i%7) / 7
	}
	x, y := NewTensor(values, 8, 4), NewTensor([]int32{0, 1, 2, 0, 1, 2, 0, 1}, 8)
	trainer := must[*Trainer](t)(net.Trainer(TrainerOptions{}))
	if step := must[Step](t)(trainer.Step(x, y)); !step.Updated || step.Loss <= 0 {
		t.Error(step)
	}
	before := must[string](t)(trainer.WeightsHash())
	must[Step](t)(trainer.Step(x, y))
	if before == must[string](t)(trainer.WeightsHash()) {
		t.Error("a step changed nothing")
	}
	place := make([]float32, 24)
	session := must[*Session](t)(net.Session(SessionOptions{MaxBatch: 8}))
	if err := session.RunInto(x, NewTensor(place, 8, 3)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "net.entity")
	if err := net.Save(file); err != nil {
		t.Fatal(err)
	}
	loaded := must[*Network](t)(LoadNetwork(file, LoadOptions{}))
	again := must[[]float32](t)(must[*Array](t)(loaded.Predict(x)).Float32())
	for i := range place {
		if place[i] != again[i] {
			t.Fatal("a loaded network gives other outputs")
		}
	}
	if info := must[NetworkInfo](t)(loaded.Info()); info.Output[0] != 3 || info.DType != DTypeFloat32 {
		t.Error(info)
	}
}

func panicOf(function func()) (found any) {
	defer func() { found = recover() }()
	function()
	return nil
}

func TestAFunctionStopsAFitAndItsPanicStaysInGo(t *testing.T) {
	net := network(t)
	data := must[*Dataset](t)(NewDataset(NewTensor(make([]float32, 16), 4, 4), NewTensor([]int32{0, 1, 2, 0}, 4)))
	trainer := must[*Trainer](t)(net.Trainer(TrainerOptions{}))
	seen := 0
	_, err := trainer.Fit(data, nil, FitOptions{Epochs: 5, OnEpoch: func(Epoch) bool { seen++; return seen < 2 }})
	fails(t, err, CodeCancelled, "")
	if seen != 2 {
		t.Error(seen)
	}
	options := FitOptions{OnBatch: func(int64, int64, float64) bool { panic("mine") }}
	if found := panicOf(func() { _, _ = trainer.Fit(data, nil, options) }); found != "mine" {
		t.Error(found)
	}
	if epochs := must[[]Epoch](t)(trainer.Fit(data, nil, FitOptions{Epochs: 2})); len(epochs) != 2 {
		t.Error(epochs)
	}
}

func TestAModelStreamsChatsAndAPanicLeavesItWhole(t *testing.T) {
	model := must[*Model](t)(LoadModel(os.Getenv("LOOM_TEST_MODEL"), nil))
	options := GenerateOptions{MaxTokens: 8, Stop: []string{"never to be seen"}, Logprobs: true}
	whole := must[Generation](t)(model.Generate("One day", options))
	if len(whole.Logprobs) != len(whole.TokenIDs) {
		t.Error(whole)
	}
	found := panicOf(func() { _, _ = model.Stream("One day", options, func(Token) bool { panic("mine") }) })
	if found != "mine" {
		t.Error(found)
	}
	seen := ""
	stopped := must[Generation](t)(model.Stream("One day", options, func(token Token) bool {
		seen += token.Text
		return len(seen) < 8
	}))
	if stopped.Stop != StopCancelled || !strings.HasPrefix(whole.Text, seen) {
		t.Error(stopped.Stop, seen)
	}
	ids := must[[]int32](t)(model.Tokenize("One day"))
	if strings.TrimSpace(must[string](t)(model.Detokenize(ids))) != "One day" {
		t.Error(ids)
	}
	session := must[*ModelSession](t)(model.Session(64))
	if err := session.Feed(ids); err != nil {
		t.Fatal(err)
	}
	if info := must[ModelInfo](t)(model.Info()); int64(len(must[[]float32](t)(session.Logits()))) != info.Vocab {
		t.Error(info)
	}
	fails(t, session.Feed([]int32{1 << 30}), CodeOutOfRange, "")
	fails(t, session.Rewind(99), CodeOutOfRange, "99")
	_, err := session.Stream("a\x00b", options, nil)
	fails(t, err, CodeInvalidArgument, "NUL")
	turns := []Turn{{"user", "Hello"}}
	if !strings.Contains(must[string](t)(model.RenderChat(turns, ChatOptions{})), "Hello") {
		t.Error("the turn is not in the text")
	}
	must[Generation](t)(model.Chat(turns, ChatOptions{}, options, nil))
	_, err = model.Chat(nil, ChatOptions{}, options, nil)
	fails(t, err, CodeInvalidArgument, "messages must be a list")
	parts := []any{map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": 5}}}}
	_, err = model.RenderChat(parts, ChatOptions{})
	fails(t, err, CodeInvalidArgument, "messages[0].content[0].text must be a text; got 5")
	continued := append(turns, Turn{"assistant", "Once"})
	text := must[string](t)(model.RenderChat(continued, ChatOptions{ContinueFinalMessage: true}))
	if !strings.HasSuffix(text, "Once") {
		t.Error("the last message is not continued:", text)
	}
	reply := must[json.RawMessage](t)(model.ReadReply("Hi", text, nil))
	if string(reply) != `{"role":"assistant","content":"Hi"}` {
		t.Error(string(reply))
	}
}

// hashWith is what two epochs give a new network with these options.
func hashWith(t *testing.T, options TrainerOptions) (string, error) {
	values := make([]float32, 32)
	for i := range values {
		values[i] = float32(i%7) / 7
	}
	data := must[*Dataset](t)(NewDataset(NewTensor(values, 8, 4), NewTensor([]int32{0, 1, 2, 0, 1, 2, 0, 1}, 8)))
	trainer, err := network(t).Trainer(options)
	if err != nil {
		return "", err
	}
	if _, err := trainer.Fit(data, nil, FitOptions{Epochs: 2}); err != nil {
		return "", err
	}
	return trainer.WeightsHash()
}

func TestOptionsByNameChangeWhatIsLearnedOrAreRefused(t *testing.T) {
	plain := must[string](t)(hashWith(t, TrainerOptions{}))
	zero := float32(0)
	for _, options := range []TrainerOptions{
		{Freeze: []string{"*/bias"}},
		{RateFor: map[string]float64{"*/bias": 0.5}},
		{ClassWeights: []float32{1, 2, 3.5}},
		{Beta1: &zero},
	} {
		if must[string](t)(hashWith(t, options)) == plain {
			t.Errorf("%+v changed nothing", options)
		}
	}
	_, err := hashWith(t, TrainerOptions{Freeze: []string{`a "b" \`}})
	fails(t, err, CodeInvalidArgument, `a "b" \`)
	_, err = hashWith(t, TrainerOptions{LabelSmoothing: 2})
	fails(t, err, CodeInvalidArgument, "label_smoothing is 2, must be 0 to 1")
}
