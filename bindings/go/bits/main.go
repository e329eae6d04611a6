// Prints what a network, its training and a story come to, as tests/capi/bits.c does.
package main

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log"
	"math"
	"os"

	"loom"
)

const description = `{"loom": 1, "grid": [1,1,2,1], "input": [4], "cells": [
	{"at":[0,0,0,0],"type":"Dense","in":4,"out":16,"activation":"tanh"},
	{"at":[0,0,1,0],"type":"Dense","in":16,"out":3}]}`

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func points() (x []float32, y []int32) {
	state := uint64(88172645463325252)
	for i := 0; i < 240; i++ {
		var row [4]float32
		for k := range row {
			state = state*6364136223846793005 + 1442695040888963407
			row[k] = float32(state>>40)/float32(1<<23) - 1
		}
		x = append(x, row[:]...)
		switch {
		case row[0]+row[1] > 0.3:
			y = append(y, 0)
		case row[2]-row[3] > 0:
			y = append(y, 1)
		default:
			y = append(y, 2)
		}
	}
	return x, y
}

func printOutputs(net *loom.Network, x loom.Tensor) {
	array := must(net.Predict(x))
	defer array.Close()
	var bytes []byte
	for _, value := range must(array.Float32()) {
		bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(value))
	}
	fmt.Println("outputs", hex.EncodeToString(bytes))
}

func main() {
	values, labels := points()
	x, y := loom.NewTensor(values, 240, 4), loom.NewTensor(labels, 240)
	seed := uint64(7)
	net := must(loom.NetworkFromJSON(description, loom.LoadOptions{Seed: &seed}))
	defer net.Close()
	printOutputs(net, x)
	data := must(loom.NewDataset(x, y))
	defer data.Close()
	trainer := must(net.Trainer(loom.TrainerOptions{Rate: 1e-2}))
	defer trainer.Close()
	must(trainer.Fit(data, nil, loom.FitOptions{Epochs: 3}))
	fmt.Println("trained", must(trainer.WeightsHash()))
	printOutputs(net, x)
	path := os.Getenv("LOOM_TEST_MODEL")
	if path == "" {
		path = "models/stories.entity"
	}
	model := must(loom.LoadModel(path, nil))
	defer model.Close()
	story := ""
	must(model.Stream("Once upon a time", loom.GenerateOptions{MaxTokens: 60, Temperature: 0.8, Seed: 7},
		func(token loom.Token) bool { story += token.Text; return true }))
	fmt.Println("story", story)
}
